/** The text in the canvas while there is nothing to draw. */

import type { ComponentChildren, VNode } from "preact";
import { Prose } from "../page/glyphs.tsx";
import type { Graph } from "../picture/model.ts";
import type { Show } from "../state/state.ts";
import { Button, type PanelProps } from "./parts.tsx";

function WhatIsRecorded(): VNode {
  return (
    <>
      A graph is recorded where you compute with a tensor that has <code>requires_grad=True</code>, outside of{" "}
      <code>torch.no_grad()</code>.
    </>
  );
}

/** Whether there was a graph before: then it is gone, or the newer tensors have none. */
function hadOne({ calls, events }: Graph): boolean {
  return calls.length > 0 || events.some(({ held }) => (held ?? 0) > 0);
}

function Saying({ title, children }: { title: string; children: ComponentChildren }): VNode {
  return (
    <>
      <b>{title}</b>
      <p>{children}</p>
    </>
  );
}

/** The facts that are certain; the findings explain them. */
function Reasons({ graph }: { graph: Graph }): VNode {
  const [finding] = graph.findings;
  if (finding)
    return (
      <Saying title="No autograd graph">
        <Prose text={finding.headline || finding.text} />
      </Saying>
    );
  if (hadOne(graph))
    return (
      <Saying title="No autograd graph now">
        Nothing keeps one any more. <WhatIsRecorded />
      </Saying>
    );
  return (
    <Saying title="No autograd graph yet">
      <WhatIsRecorded />
    </Saying>
  );
}

function Waiting({ gone }: { gone: boolean }): VNode {
  if (gone) return <Saying title="Nothing to show">There is no kernel: run the notebook first.</Saying>;
  return <Saying title="Waiting for the kernel">The picture comes with the first answer.</Saying>;
}

/** Why a part of a graph is empty. */
const NO_PART: Partial<Record<Show["what"], [string, string]>> = {
  freed: ["Nothing has been freed", "Every saved tensor that was needed is still held."],
  cell: ["Nothing of this cell", "No node that is alive was made by it."],
};

function NoPart({ what, press }: { what: Show["what"]; press(): void }): VNode {
  const [title, words] = NO_PART[what] ?? ["Nothing to show", "What was chosen is not in the graph any more."];
  return (
    <>
      <Saying title={title}>{words}</Saying>
      <Button class="gw-btn" press={press}>
        Show everything
      </Button>
    </>
  );
}

/** `boxes`: number of boxes drawn; null: there is no drawing yet. */
export function Empty({ context: { act, state }, graph, boxes }: PanelProps & { boxes: number | null }): VNode {
  const isPart = graph !== null && graph.n > 0;
  const hidden = isPart && !(boxes === 0 && state.show.what !== "auto");
  return (
    <div class="gw-empty" hidden={hidden}>
      <svg width={120} height={80} aria-hidden="true">
        <path class="g-ghost" d="M3 5h114v22H3zM60 27v22M3 49h114v22H3z" />
      </svg>
      <div>
        {!hidden && isPart && <NoPart what={state.show.what} press={() => act.show("auto")} />}
        {!isPart && (graph ? <Reasons graph={graph} /> : <Waiting gone={state.link === "gone"} />)}
      </div>
    </div>
  );
}
