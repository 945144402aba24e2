/** The row over the drawing: older graphs as one quiet chip, and the buttons that zoom. It covers nothing. */

import type { VNode } from "preact";
import type { Canvas } from "../canvas/canvas.ts";
import { ZOOM_STEP } from "../canvas/viewport.ts";
import { presentOf } from "../picture/fold/index.ts";
import type { Graph } from "../picture/model.ts";
import { count } from "../state/say.ts";
import { Button, type PanelProps, Tool } from "./parts.tsx";

const MOST_NAMES = 3;
/** Names that IPython gives to results, and what has none but in an error: nobody would know them. */
const UNCHOSEN = /^_+\d*$|^Out\[|^sys\.|\(kept by the last error\)$/;

/** "3 older graphs: product, total, x_out". */
export function olderWords(graph: Graph): string {
  const { older } = presentOf(graph);
  const names = [...new Set(older.map((root) => root.path))].filter((path) => path && !UNCHOSEN.test(path));
  const shown = names.length > MOST_NAMES ? [...names.slice(0, MOST_NAMES), "…"] : names;
  return [count(older.length, "older graph"), shown.join(", ")].filter(Boolean).join(": ");
}

/** Opens the older graphs; there is none while a part is chosen in the menu, which may be an older one. */
function OlderChip({ context: { act, state }, graph }: PanelProps): VNode | null {
  if (!graph || state.show.from !== null || !presentOf(graph).older.length) return null;
  const words = olderWords(graph);
  return (
    <Button
      class="gw-older"
      press={() => act.showOlder(!state.older)}
      title={state.older ? "Show only what the newest cell made or ran" : "Show these graphs, too"}
      expanded={state.older}
      data-role="older"
    >
      {state.older ? `hide ${words} ◂` : `${words} ▸`}
    </Button>
  );
}

export function StageBar({ context, graph, canvas }: PanelProps & { canvas: Canvas }): VNode {
  return (
    <div class="gw-stagebar">
      <OlderChip context={context} graph={graph} />
      <span class="gw-space" />
      <Tool name="plus" label="Zoom in" press={() => canvas.viewport.zoom(ZOOM_STEP)} shortcut="+" />
      <Tool name="minus" label="Zoom out" press={() => canvas.viewport.zoom(1 / ZOOM_STEP)} shortcut="-" />
    </div>
  );
}
