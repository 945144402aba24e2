/** The two dialogs: what every mark means, and which keys there are. */
import { attr, type Child, h, s } from "./dom.ts";
import { drawMarks } from "./draw.ts";
import { octagonGlyph, slotGlyph } from "./glyphs.ts";
import { callNumberMark, leaf, pencil, rect, tag, wire } from "./picture/marks.ts";
import type { Mark } from "./picture/scene.ts";

function mark(marks: Mark[], width: number, height: number): SVGSVGElement {
  return s(
    "svg",
    { class: "gw-glyph", width, height, viewBox: `-1 -1 ${width} ${height}`, "aria-hidden": "true" },
    ...drawMarks(marks),
  );
}

const line = (order: number, look: "" | "gone" = "") => mark(wire("M0 5H46", order, `r${order}`, look), 48, 12);

function legendRows(): [string, [Child, string][]][] {
  const card = (c: string) => mark([rect(0, 0, 44, 18, c, 5)], 48, 21);
  return [
    [
      "Saved tensor",
      [
        [slotGlyph("held"), "held"],
        [slotGlyph("freed"), "freed; the number beside it: by which call"],
        [slotGlyph("will"), "would be freed (forecast)"],
        [slotGlyph("stale"), "stale: modified in place since it was saved"],
        [slotGlyph("packed"), "packed by a saved-tensor hook"],
        [slotGlyph("none"), "none needed by this op"],
        [slotGlyph("unknown"), "unknown: built before tracking"],
      ],
    ],
    [
      "Graph",
      [
        [card("node"), "node: a grad_fn"],
        [card("ghost"), "gone: nothing keeps it"],
        [mark(leaf(0, 0, "w", 38, true), 40, 20), "leaf, AccumulateGrad; the bowl is full when .grad is there"],
        [mark(tag(0, 0, "y", 30, ""), 32, 21), "variable: its grad_fn is above it"],
        [mark(tag(0, 0, "y", 30, "carrier"), 32, 21), "carrier: ties the new graph to the old one"],
        [line(1), "reached by the first root"],
        [line(2), "reached by the second root"],
        [line(3), "reached by the third root"],
        [line(4), "reached by the fourth root"],
        [line(1, "gone"), "this root is gone"],
      ],
    ],
    [
      "Calls",
      [
        [mark(callNumberMark(7, 7, 1, "r1", true), 16, 16), "backward call, in order"],
        [octagonGlyph(false), "raised here"],
        [octagonGlyph(true), "would raise here (forecast)"],
        [mark(pencil(1, 1), 13, 12), "in-place write: step(), add_()"],
      ],
    ],
  ];
}

const KEYS: [string, string][] = [
  ["↑ ↓", "along the edges: towards the inputs, towards the losses"],
  ["← →", "the neighbour in the same row or lane"],
  ["Home End", "first and last node"],
  ["Enter, Space", "select; Enter opens a group"],
  ["f", "the failing node, or the next finding"],
  ["r 1 … 9, r 0", "bring out one root; all again"],
  ["[ ] { }", "one step, one cell back or forth in time"],
  ["n", "now; while searching: next hit (N: previous)"],
  ["/", "search"],
  ["t", "table view"],
  ["l", "legend"],
  ["+ − 0", "zoom in, out, fit (also Ctrl + wheel)"],
  ["Shift + arrows", "move the picture (also drag)"],
  ["Esc", "close, deselect, leave the search"],
  ["?", "this help"],
];

export interface Dialogs {
  el: HTMLElement;
  open(which: "legend" | "help" | "ask", content?: Child[]): void;
  close(): void;
  isOpen(): boolean;
}

const TITLES = { legend: "Legend", help: "Keys", ask: "Please confirm" } as const;

/** One dialog at a time; the focus stays inside and goes back where it was. */
export function makeDialogs(signal: AbortSignal): Dialogs {
  const body = h("div", { class: "gw-dialogbody" });
  const title = h("h3", {});
  const shut = h("button", { type: "button", class: "gw-ib", "aria-label": "Close" }, "✕");
  const box = h(
    "div",
    { class: "gw-dialog", role: "dialog", "aria-modal": "true", tabindex: -1 },
    h("div", { class: "gw-dialoghead" }, title, shut),
    body,
  );
  const el = h("div", { class: "gw-veil", hidden: true }, box);
  let back: HTMLElement | null = null;
  const focusable = () =>
    [...box.querySelectorAll<HTMLElement>("button, input, [tabindex='0']")].filter(
      (each) => !each.hasAttribute("disabled"),
    );
  const close = () => {
    if (el.hidden) return;
    el.hidden = true;
    body.replaceChildren();
    back?.focus({ preventScroll: true });
  };
  shut.addEventListener("click", close, { signal });
  el.addEventListener("click", (event) => event.target === el && close(), { signal });
  box.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Tab") {
        const all = focusable();
        const at = all.indexOf((box.getRootNode() as Document).activeElement as HTMLElement);
        all[(at + (event.shiftKey ? all.length - 1 : 1)) % all.length]?.focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
  return {
    el,
    close,
    isOpen: () => !el.hidden,
    open(which, content = []) {
      back = (el.getRootNode() as Document).activeElement as HTMLElement | null;
      title.textContent = TITLES[which];
      attr(box, "aria-label", TITLES[which]);
      body.replaceChildren();
      if (which === "legend") {
        for (const [name, rows] of legendRows()) {
          body.append(
            h("h4", {}, name),
            h(
              "dl",
              { class: "gw-legend" },
              rows.map(([what, words]) => [h("dt", {}, what), h("dd", {}, words)]),
            ),
          );
        }
      } else if (which === "help") {
        body.append(
          h(
            "dl",
            { class: "gw-keys" },
            KEYS.map(([key, words]) => [h("dt", {}, key), h("dd", {}, words)]),
          ),
        );
      } else body.append(h("div", {}, content));
      el.hidden = false;
      (which === "ask" ? (body.querySelector<HTMLElement>("button") ?? shut) : shut).focus({ preventScroll: true });
    },
  };
}
