/** The text in the canvas while there is nothing to draw. */

import type { ComponentChildren, VNode } from "preact";
import { Prose } from "../page/glyphs.tsx";
import type { Graph } from "../picture/model.ts";
import type { PanelProps } from "./parts.tsx";

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

export function Empty({ context: { state }, graph }: PanelProps): VNode {
  const hidden = graph !== null && graph.n > 0;
  return (
    <div class="gw-empty" hidden={hidden}>
      <svg width={120} height={80} aria-hidden="true">
        <path class="g-ghost" d="M3 5h114v22H3zM60 27v22M3 49h114v22H3z" />
      </svg>
      <div>{!hidden && (graph ? <Reasons graph={graph} /> : <Waiting gone={state.link === "gone"} />)}</div>
    </div>
  );
}
