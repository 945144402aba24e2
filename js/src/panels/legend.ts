/** The dialogs: what every mark means, the other tools and the keys, and a question before something runs. */

import { attrs, button, type Child, flat, h, list } from "../page/dom.ts";
import { glyph } from "../page/marks.ts";
import { callNumberMark, leaf, type Mark, pencil, rect, type SlotLook, tag, wire } from "../picture/marks.ts";
import type { Actions, Context } from "../state/state.ts";
import { octagonGlyph, slotGlyph } from "./glyphs.ts";

type Rows = [Child, string][];

const SLOTS: [SlotLook, string][] = [
  ["held", "held"],
  ["freed", "freed; the number beside it: by which call"],
  ["will", "would be freed (forecast)"],
  ["stale", "stale: modified in place since it was saved"],
  ["packed", "packed by a saved-tensor hook"],
  ["none", "none needed by this op"],
  ["unknown", "unknown: built before tracking"],
];

function legend(): Child[] {
  const mark = (width: number, height: number, marks: Mark[]) => glyph(marks, width, height, "-1 -1");
  const card = (look: string) => mark(48, 21, [rect(0, 0, 44, 18, look, 5)]);
  const line = (order: number, look: "" | "gone" = "") => mark(48, 12, wire("M0 5H46", order, `r${order}`, look));
  const graph: Rows = [
    [card("node"), "node: a grad_fn"],
    [card("ghost"), "gone: nothing keeps it"],
    [mark(40, 20, leaf(0, 0, "w", 38, true)), "leaf, AccumulateGrad; full bowl: .grad is there"],
    [mark(32, 21, tag(0, 0, "y", 30, "")), "variable: its grad_fn is above it"],
    [mark(32, 21, tag(0, 0, "y", 30, "carrier")), "carrier: ties the new graph to the old one"],
    ...[1, 2, 3, 4].map((n): Rows[0] => [line(n), `reached by root ${n}`]),
    [line(1, "gone"), "this root is gone"],
  ];
  const calls: Rows = [
    [mark(16, 16, callNumberMark(7, 7, 1, "r1", true)), "backward call, in order"],
    [octagonGlyph(), "raised here"],
    [octagonGlyph(true), "would raise here (forecast)"],
    [mark(13, 12, pencil(1, 1)), "in-place write: step(), add_()"],
  ];
  return [
    h("h4", "Saved tensor"),
    list(SLOTS.map(([look, words]) => [slotGlyph(look), words])),
    h("h4", "Graph"),
    list(graph),
    h("h4", "Calls"),
    list(calls),
  ];
}

const KEYS: Rows = [
  ["↑ ↓", "along the edges: to the inputs, to the losses"],
  ["← →", "next in a row or lane"],
  ["Home End", "first and last node"],
  ["Enter, Space", "select; Enter opens a group"],
  ["f", "the failing node, or the next finding"],
  ["r 1 … 9, r 0", "one root; all again"],
  ["[ ] { }", "one step, one cell back or on"],
  ["n", "now; while searching: next hit (N: previous)"],
  ["/", "search"],
  ["t", "table view"],
  ["l", "legend"],
  ["+ − 0", "zoom in, out, fit (also Ctrl + wheel)"],
  ["Shift + arrows", "move the picture (also drag)"],
  ["Esc", "close, deselect, leave the search"],
  ["?", "tools and keys"],
];

export interface Dialogs {
  el: HTMLDialogElement;
  acts: Pick<Actions, "legend" | "more" | "ask" | "close">;
}

/** One dialog at a time; the browser keeps the focus inside and gives it back, and closes it on Escape. */
export function makeDialogs({ act, set, state }: Context): Dialogs {
  const close = () => el.close();
  const body = h("div");
  const title = h("h3.gw-space");
  const head = h("div.gw-row", title, button("gw-ib", close, { "aria-label": "Close" }, "✕"));
  const outside = (event: MouseEvent) => event.target === el && close();
  const el = h("dialog.gw-dialog", { click: outside }, h("div", head, body)) as HTMLDialogElement;
  const open = (name: string, content: Child[], asks = false) => {
    title.textContent = name;
    body.replaceChildren(...flat(content));
    const words = asks && [...body.querySelectorAll("p")].map((each) => each.textContent).join(" ");
    attrs(el, { "aria-label": name, role: asks && "alertdialog", "aria-description": words });
    el.showModal();
  };
  const tool = (words: string, run: () => void) =>
    button(
      "gw-btn",
      () => {
        close();
        run();
      },
      words,
    );
  const tools = h(
    "div.gw-row",
    tool("Table view", () => set({ table: !state.table })),
    tool("Export SVG", () => act.export("svg")),
    tool("Copy as text", () => act.export("text")),
    tool("Tidy: lay out afresh", () => act.tidy()),
  );
  return {
    el,
    acts: {
      close,
      legend: () => open("Legend", legend()),
      more: () => open("More", [tools, h("h4", "Keys"), list(KEYS.map(([key, words]) => [h("code", key), words]))]),
      ask: (name, content) => open(name, content, true),
    },
  };
}
