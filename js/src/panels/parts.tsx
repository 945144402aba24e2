/** Small parts that several panels are made of: buttons, lists, tables. */

import type { ComponentChildren, VNode } from "preact";
import { Icon, type IconName } from "../page/icons.tsx";
import type { Graph } from "../picture/model.ts";
import type { Context } from "../state/state.ts";

/** Properties of every panel. `graph`: the graph on screen. */
export interface PanelProps {
  context: Context;
  graph: Graph | null;
}

interface ButtonProps {
  class: string;
  press(): void;
  label?: string;
  title?: string | undefined;
  hidden?: boolean;
  disabled?: boolean;
  /** Whether what it opens is open. */
  expanded?: boolean;
  "data-role"?: string;
  /** Gets the focus when its dialog opens. */
  autofocus?: boolean;
  children?: ComponentChildren;
}

export function Button({ press, label, expanded, children, ...rest }: ButtonProps): VNode {
  return (
    <button type="button" onClick={press} aria-label={label} aria-expanded={expanded} {...rest}>
      {children}
    </button>
  );
}

interface ToolProps {
  name: IconName;
  label: string;
  press(): void;
  /** The key that does the same. */
  shortcut?: string;
  disabled?: boolean;
}

/** A button that is an icon. */
export function Tool({ name, label, press, shortcut, disabled = false }: ToolProps): VNode {
  return (
    <button
      type="button"
      class="gw-ib"
      onClick={press}
      disabled={disabled}
      aria-label={label}
      title={shortcut ? `${label} (${shortcut})` : label}
      aria-keyshortcuts={shortcut}
    >
      <Icon name={name} />
    </button>
  );
}

export function Mute({ children }: { children: ComponentChildren }): VNode {
  return <p class="gw-mute">{children}</p>;
}

/** A list of terms with descriptions. */
export function Terms({ rows }: { rows: readonly (readonly [ComponentChildren, ComponentChildren])[] }): VNode {
  return (
    <dl>
      {rows.map(([term, words]) => (
        <>
          <dt>{term}</dt>
          <dd>{words}</dd>
        </>
      ))}
    </dl>
  );
}

interface TableProps {
  class?: string;
  /** Titles of the columns; none: the table has no head. */
  titles?: readonly string[];
  caption?: string;
  children: ComponentChildren;
}

export function Table({ titles = [], caption, children, class: name }: TableProps): VNode {
  return (
    <table class={name}>
      {caption && <caption>{caption}</caption>}
      {titles.length > 0 && (
        <thead>
          <tr>
            {titles.map((title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>{children}</tbody>
    </table>
  );
}

/** A row: the first cell is its header; numbers are aligned right. */
export function Row({ head, cells }: { head: ComponentChildren; cells: readonly ComponentChildren[] }): VNode {
  return (
    <tr>
      <th scope="row">
        <code>{head}</code>
      </th>
      {cells.map((cell) => (
        <td class={typeof cell === "string" && /^\d/.test(cell) ? "gw-num" : undefined}>{cell}</td>
      ))}
    </tr>
  );
}
