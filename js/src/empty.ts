/** What stands in the canvas while there is nothing to draw. */
import { attr, h, redraw, s } from "./dom.ts";
import type { Context, Part } from "./state.ts";

export function emptyPart({ state }: Context): Part {
  const skeleton = s(
    "svg",
    { width: 120, height: 80, "aria-hidden": "true" },
    s("path.g-ghost", { d: "M3 5h114v22H3zM60 27v22M3 49h114v22H3z" }),
  );
  const words = h("div");
  const el = h("div.gw-empty", { hidden: true }, skeleton, words);
  let waits = true;
  const paint = redraw(words, () =>
    waits
      ? [h("b", "Waiting for the kernel"), h("p", "The picture comes with the first answer.")]
      : [
          h("b", "No autograd graph yet"),
          h("p", "Run a cell that computes with a tensor that has ", h("code", "requires_grad=True"), "."),
        ],
  );
  return {
    el,
    update(graph) {
      attr(el, "hidden", graph && graph.n > 0);
      waits = !graph && state.link !== "gone";
      paint(waits);
    },
  };
}
