/** What stands in the canvas while there is nothing to draw. */
import { attr, h, s, text } from "./dom.ts";
import { type Context, type Part, shown } from "./state.ts";

export function emptyPart(context: Context): Part {
  const title = h("b", {});
  const words = h("p", {});
  const skeleton = s(
    "svg",
    { class: "gw-skeleton", width: 120, height: 80, "aria-hidden": "true" },
    s("path", { d: "M3 5h114v22H3zM60 27v22M3 49h114v22H3z" }),
  );
  const el = h("div", { class: "gw-empty", hidden: true }, skeleton, h("div", {}, title, words));
  return {
    el,
    update() {
      const graph = shown(context.state);
      attr(el, "hidden", graph !== null && graph.n > 0);
      if (graph === null && context.state.link !== "gone") {
        text(title, "Waiting for the kernel");
        text(words, "The picture comes with the first answer.");
      } else {
        text(title, "No autograd graph yet");
        words.replaceChildren(
          "Run a cell that computes with a tensor that has ",
          h("code", {}, "requires_grad=True"),
          ".",
        );
      }
    },
  };
}
