/** What an audience sees beside the picture: the headline of the first finding, and its first fix. */

import type { VNode } from "preact";
import { OctagonGlyph, Prose, WarningGlyph } from "../page/glyphs.tsx";
import { isPast } from "../picture/fold/index.ts";
import { type Finding, type Graph, orderOfCall } from "../picture/model.ts";

/** The finding that is presented: the first about what is on screen; an error before a warning. */
export function presented(graph: Graph | null): Finding | null {
  const all = graph?.findings.filter((finding) => finding.severity !== "info" && !isPast(finding, graph)) ?? [];
  return all.find(({ severity }) => severity === "error") ?? all[0] ?? null;
}

export function PresentPanel({ graph, finding }: { graph: Graph; finding: Finding }): VNode {
  const order = (n: number) => orderOfCall(graph, n);
  const [fix] = finding.fixes;
  const bad = finding.severity === "error";
  return (
    <section class="gw-presented" aria-label="Finding">
      <h3>
        {bad ? <OctagonGlyph /> : <WarningGlyph />} <Prose text={finding.headline || finding.text} orderOf={order} />
      </h3>
      {fix && (
        <div class="gw-box gw-best">
          <p>
            <Prose text={fix.text} orderOf={order} />
          </p>
          {fix.edit.length > 0 && (
            <pre>
              {fix.edit.map((line) => (
                <div class={line.startsWith("+ ") ? "gw-ok" : line.startsWith("- ") ? "gw-err" : undefined}>{line}</div>
              ))}
            </pre>
          )}
        </div>
      )}
    </section>
  );
}
