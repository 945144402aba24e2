/** The dialogs: the legend of all marks, more tools and the keys, and a question before something runs. */

import { type ComponentChildren, render, type VNode } from "preact";
import { html, setAttributes } from "../page/elements.ts";
import { OctagonGlyph, SlotGlyph } from "../page/glyphs.tsx";
import { Glyph } from "../page/marks.tsx";
import { callNumberMark, leaf, type Mark, pencil, rect, type SlotLook, shape, tag, wire } from "../picture/marks.ts";
import type { Context, DialogActions } from "../state/state.ts";
import { Button, Terms } from "./parts.tsx";

type Rows = [ComponentChildren, string][];

const SLOTS: [SlotLook, string][] = [
  ["held", "held"],
  ["freed", "freed; the number beside it: by which call"],
  ["will", "would be freed (forecast)"],
  ["stale", "stale: modified in place since it was saved"],
  ["packed", "packed by a saved-tensor hook"],
  ["none", "none needed by this op"],
  ["unknown", "unknown: built before tracking"],
];

function Sign({ width, height, marks }: { width: number; height: number; marks: Mark[] }): VNode {
  return <Glyph marks={marks} width={width} height={height} origin="-1 -1" />;
}

function CardSign({ look, more = [] }: { look: string; more?: Mark[] }): VNode {
  return <Sign width={48} height={21} marks={[rect(0, 0, 44, 18, look, 5), ...more]} />;
}

function LineSign({ order, look = "" }: { order: number; look?: "" | "gone" }): VNode {
  return <Sign width={48} height={12} marks={wire("M0 5H46", order, `r${order}`, look)} />;
}

const GRAPH: Rows = [
  [<CardSign look="node" />, "node: a grad_fn"],
  [<CardSign look="ghost" />, "gone: nothing keeps it"],
  [
    <Sign width={48} height={21} marks={[rect(0, 0, 44, 18, "node", 5), rect(6, 13, 20, 3, "bytebar", 1.5)]} />,
    "in large graphs: bytes held, next to the card that holds most",
  ],
  [
    <Sign width={40} height={20} marks={leaf(0, 0, "w", 38, true)} />,
    "leaf, AccumulateGrad; full bowl: .grad is there",
  ],
  [<Sign width={32} height={21} marks={tag(0, 0, "y", 30, "")} />, "variable: its grad_fn is above it"],
  [<Sign width={32} height={21} marks={tag(0, 0, "y", 30, "carrier")} />, "carrier: ties the new graph to the old one"],
  ...[1, 2, 3, 4].map((n): Rows[0] => [<LineSign order={n} />, `reached by root ${n}`]),
  [<LineSign order={1} look="gone" />, "this root is gone"],
];

const CALLS: Rows = [
  [<Sign width={16} height={16} marks={callNumberMark(7, 7, 1, "r1", { solid: true })} />, "backward call, in order"],
  [<OctagonGlyph />, "raised here"],
  [<OctagonGlyph forecast />, "would raise here (forecast)"],
  [<Sign width={13} height={12} marks={pencil(1, 1)} />, "in-place write: step(), add_()"],
  [<CardSign look="node" more={[shape("M6 18H38", "ran")]} />, "step by step: it has run (of a group: so far)"],
  [<CardSign look="node" more={[rect(-2, -2, 48, 22, "running", 6)]} />, "step by step: it runs now"],
];

function Legend(): VNode {
  return (
    <>
      <h4>Saved tensor</h4>
      <Terms rows={SLOTS.map(([look, words]) => [<SlotGlyph state={look} />, words])} />
      <h4>Graph</h4>
      <Terms rows={GRAPH} />
      <h4>Calls</h4>
      <Terms rows={CALLS} />
    </>
  );
}

const KEYS: [string, string][] = [
  ["↑ ↓", "along the edges: to the inputs, to the losses"],
  ["← →", "next in a row or lane"],
  ["Home End", "first and last node"],
  ["Enter, Space", "select; Enter opens a group"],
  ["f", "the failing node, or the next finding"],
  ["r 1 … 9, r 0", "one root; all again"],
  ["[ ] { }", "one step, one cell back or on"],
  ["p", "present: large, for an audience; again: with all panels"],
  ["q", "predict first what a call does; then 1 … 9 marks a slot of the focused card"],
  ["s , .", "step through one call: open, one node back, one node on (also arrows on the slider)"],
  ["n", "now; while searching: next hit (N: previous)"],
  ["/", "search"],
  ["c", "compare with this moment: then choose another; end it"],
  ["b", "bytes over time, by the name that keeps them"],
  ["k", "keep the forecast, or let it go"],
  ["t", "table view"],
  ["l", "legend"],
  ["+ − 0", "zoom in, out, fit (also Ctrl + wheel, two fingers)"],
  ["Shift + arrows", "move the picture (also drag)"],
  ["Esc", "close, deselect, leave the search"],
  ["?", "tools and keys"],
];

function More({ context: { act, set, state } }: { context: Context }): VNode {
  const tool = (words: string, run: () => void) => {
    const press = () => {
      act.close();
      run();
    };
    return (
      <Button class="gw-btn" press={press}>
        {words}
      </Button>
    );
  };
  // The pictures of this view, and its text, need no kernel.
  const written = state.formats.filter(([name]) => !["svg", "png", "text"].includes(name));
  return (
    <>
      <div class="gw-row">
        {tool(state.presents ? "End presenting" : "Present: large, for an audience", act.present)}
        {tool("Show beside the notebook", act.dock)}
        {tool("Table view", () => set({ table: !state.table }))}
        {tool("Export SVG", () => act.export("svg"))}
        {tool("Export PNG", () => act.export("png"))}
        {written.map(([name, label]) => tool(`Export ${label}`, () => act.save(name)))}
        {tool("Copy as text", () => act.export("text"))}
        {tool("Tidy: lay out again", act.tidy)}
      </div>
      <h4>Keys</h4>
      <Terms rows={KEYS.map(([key, words]) => [<code>{key}</code>, words])} />
    </>
  );
}

interface Dialogs {
  element: HTMLDialogElement;
  actions: DialogActions;
}

/** One dialog at a time; the browser keeps the focus inside and gives it back, and closes it on Escape. */
export function makeDialogs(context: Context): Dialogs {
  const element = html("dialog", { class: "gw-dialog" });
  const close = () => element.close();
  element.addEventListener("click", (event) => {
    if (event.target === element) close(); // a click outside its content
  });

  const open = (title: string, content: ComponentChildren, isQuestion = false) => {
    // A new element, so that the browser applies `autofocus` in it.
    render(null, element);
    render(
      <div>
        <div class="gw-row">
          <h3 class="gw-space">{title}</h3>
          <Button class="gw-ib" press={close} label="Close">
            ✕
          </Button>
        </div>
        <div>{content}</div>
      </div>,
      element,
    );
    const sentences = [...element.querySelectorAll("p")].map((each) => each.textContent);
    setAttributes(element, {
      "aria-label": title,
      role: isQuestion && "alertdialog",
      "aria-description": isQuestion && sentences.join(" "),
    });
    element.showModal();
  };

  const actions: DialogActions = {
    close,
    legend: () => open("Legend", <Legend />),
    more: () => open("More", <More context={context} />),
    ask: (title, content) => open(title, content, true),
  };
  return { element, actions };
}
