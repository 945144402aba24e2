/** What stands in the canvas while there is nothing to draw. */

import { attr, type Child, h, redraw, s } from "../page/dom.ts";
import type { Graph } from "../picture/model.ts";
import type { Context, Part } from "../state/state.ts";
import { prose } from "./glyphs.ts";

const records = () => [
  "A graph is recorded where you compute with a tensor that has ",
  h("code", "requires_grad=True"),
  ", outside of ",
  h("code", "torch.no_grad()"),
  ".",
];

/** Whether a graph was there before: then it is gone, or what was computed since has none. */
const hadOne = ({ calls, events }: Graph) => calls.length > 0 || events.some(({ held }) => (held ?? 0) > 0);

/** What can be said for certain; the findings know why. */
function reasons(graph: Graph): Child {
  const [finding] = graph.findings;
  if (finding) return [h("b", "No autograd graph"), h("p", prose(finding.headline || finding.text))];
  if (hadOne(graph)) return [h("b", "No autograd graph now"), h("p", "Nothing keeps one any more. ", records())];
  return [h("b", "No autograd graph yet"), h("p", records())];
}

const waiting = (gone: boolean): Child =>
  gone
    ? [h("b", "Nothing to show"), h("p", "There is no kernel: run the notebook first.")]
    : [h("b", "Waiting for the kernel"), h("p", "The picture comes with the first answer.")];

export function emptyPart({ state }: Context): Part {
  const skeleton = s(
    "svg",
    { width: 120, height: 80, "aria-hidden": "true" },
    s("path.g-ghost", { d: "M3 5h114v22H3zM60 27v22M3 49h114v22H3z" }),
  );
  const words = h("div");
  const el = h("div.gw-empty", { hidden: true }, skeleton, words);
  let shown: Graph | null = null;
  const paint = redraw(words, () => {
    if (el.hidden) return null;
    return shown ? reasons(shown) : waiting(state.link === "gone");
  });
  return {
    el,
    update(graph) {
      const hidden = graph !== null && graph.n > 0;
      attr(el, "hidden", hidden);
      shown = graph;
      paint(hidden, hidden || graph?.findings[0], graph && hadOne(graph), state.link);
    },
  };
}
