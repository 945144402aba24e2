/** Title, facts, status, and the tools. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { Logo } from "../page/icons.tsx";
import { isPast } from "../picture/fold/index.ts";
import { isForecast } from "../picture/model.ts";
import { count, facts } from "../state/say.ts";
import type { Show, State } from "../state/state.ts";
import { Button, type PanelProps, Tool } from "./parts.tsx";
import { SearchBox } from "./search.tsx";

type Shape = "ok" | "warn" | "raised" | "busy" | "queued" | "readonly" | "past";

/** Shape and text of the one status pill. */
function status({ now, past, pastEvent, link, running, drawing, busy }: State): [Shape, string] {
  if (past || pastEvent !== null) return ["past", "a picture of the past"];
  if (link === "gone") return ["readonly", "read-only: no kernel"];
  if (link === "recorded") return ["readonly", now ? `recording · ${now.status.text}` : "recording"];
  if (running) return running.behind ? ["queued", "queued"] : ["busy", `running ${running.what}`];
  if (drawing !== null) return ["busy", `drawing ${count(drawing, "node")} …`];
  if (busy) return ["busy", busy];
  if (!now) return ["ok", "waiting for the kernel"];
  const { state, text } = now.status;
  const warns = now.findings.some(
    (finding) => (finding.severity === "warning" || isForecast(finding)) && !isPast(finding, now),
  );
  const shapes = { idle: warns ? "warn" : "ok", raised: "raised", busy: "busy", off: "readonly" } as const;
  return [shapes[state], text];
}

const SHOWS: Record<Show["what"], string> = {
  auto: "Group: auto",
  all: "Every node",
  freed: "Only freed",
  around: "Around selection",
  root: "One root",
  cell: "One cell",
};

function ShowMenu({ context: { act, state } }: Pick<PanelProps, "context">): VNode {
  return (
    <select
      class="gw-group"
      aria-label="What to show"
      title="What to show"
      value={state.show.what}
      onChange={(event) => act.show(event.currentTarget.value as Show["what"])}
    >
      {Object.entries(SHOWS).map(([value, words]) => (
        <option value={value}>{words}</option>
      ))}
    </select>
  );
}

interface HeaderProps extends PanelProps {
  /** Number of boxes drawn; 0 while there is no drawing. */
  boxes: number;
  /** The timeline of a low view. */
  spark: VNode | null;
}

export function Header({ context, graph, boxes, spark }: HeaderProps): VNode {
  const { act, state } = context;
  const steps = state.walk?.steps;
  const about = useMemo(() => {
    if (steps) return `step by step: ${steps.call}`;
    if (!graph) return "";
    return graph.n > 0 ? facts(graph, boxes) : "nothing to show yet";
  }, [graph, boxes, steps]);
  const [shape, words] = status(state);
  const found = graph?.findings.length ?? 0;
  const low = context.root.dataset.low !== undefined;
  const isLive = state.link !== "recorded" && state.link !== "gone";
  return (
    <div class="gw-head">
      <Logo />
      <b>Autograd graph</b>
      <span class="gw-facts" title={about}>
        {about}
      </span>
      <SearchBox context={context} graph={graph} />
      {low && spark}
      <span
        class="gw-pill"
        role="status"
        aria-label="State"
        data-shape={shape}
        title={found > 0 ? `${words} · ${count(found, "finding")}` : words}
      >
        <i aria-hidden="true" />
        <span>{words}</span>
      </span>
      <ShowMenu context={context} />
      <Tool
        name="step"
        label="Step through a call"
        press={() => act.walk(state.walk ? null : undefined)}
        shortcut="s"
        disabled={!graph || graph.n === 0}
      />
      {isLive && (
        <Tool
          name="guess"
          label="Predict first"
          press={() => act.guess(state.guess ? null : undefined)}
          shortcut="q"
          disabled={!graph?.roots.some((root) => root.alive && !root.lost)}
        />
      )}
      <Tool name="search" label="Search" press={() => act.search(state.search ? null : "")} shortcut="/" />
      <Tool name="fit" label="Fit" press={act.fit} shortcut="0" />
      <Tool name="legend" label="Legend" press={act.legend} shortcut="l" />
      {state.presents && (
        <Button class="gw-btn gw-onstage" press={act.present} title="End presenting (p)">
          End presenting
        </Button>
      )}
      {low && (
        <Button class="gw-link" press={act.full} title="As high as its content">
          full view
        </Button>
      )}
      <Tool name="more" label="More: table view, export, tidy, keys" press={act.more} shortcut="?" />
    </div>
  );
}
