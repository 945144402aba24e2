/** The footer: stepper, cells, calls, bytes held over time, and the scrubber. Steps have equal width: order, not wall time. */

import { attr, attrs, button, type Child, h, redraw, s, text } from "../page/dom.ts";
import { drawMarks } from "../page/marks.ts";
import { type Graph, orderOfCall, type TimelineEvent } from "../picture/model.ts";
import { bytes, eventText, eventTitle } from "../state/say.ts";
import { type Context, type Part, position } from "../state/state.ts";
import { callMarks } from "./glyphs.ts";
import { tool } from "./header.ts";

const LEFT = 56;
const RIGHT = 30;
const HEIGHT = 84;
const TOP = 34;
const BASE = 74;
/** With more events than this, and with letters so wide, words do not fit. */
const BRIEF = 10;
const LETTER = 7;

export interface Segment {
  from: number;
  to: number;
  label: string;
  bad: boolean;
}

/**
 * Neighbouring events of one cell and iteration are one segment; the end of a cell belongs to the iteration before it.
 * In a long loop there is room for numbers only.
 */
export function segments(events: TimelineEvent[]): Segment[] {
  const brief = events.length > BRIEF;
  const out: (Segment & { cell: number | null; iteration: number | null; call: boolean })[] = [];
  events.forEach(({ cell, kind, iteration, ok }, i) => {
    const last = out.at(-1);
    const call = kind === "call";
    if (last?.cell === cell && (!call || (last.call && last.iteration === iteration))) {
      last.to = i;
      last.bad ||= !ok;
      return;
    }
    const place = cell === null ? "this view" : `${brief ? "" : "In"}[${cell}]`;
    const label = iteration === null ? place : brief ? `${iteration}` : `it ${iteration} · ${place}`;
    out.push({ from: i, to: i, label, bad: !ok, cell, iteration, call });
  });
  return out;
}

/** Bytes after each event; where nobody looked, those of the event before it. */
export function levels(events: TimelineEvent[]): number[] {
  let level = 0;
  return events.map(({ held }) => {
    level = held ?? level;
    return level;
  });
}

/** Bytes over the events as a path; `top`: the most there are. */
export function area(events: TimelineEvent[], place: (i: number) => number, top: number, right: number): string {
  let d = `M${LEFT} ${BASE}`;
  const to = (at: number, held: number) => {
    d += `H${place(at).toFixed(1)}V${(BASE - ((BASE - TOP - 12) * held) / top).toFixed(1)}`;
  };
  const held = levels(events);
  events.forEach(({ freed = 0 }, i) => {
    // What the lines before it built up, and what is left of it.
    to(i - 0.5, held[i]! + freed);
    to(i, held[i]!);
  });
  return `${d}H${right}`;
}

const axis = (x: number, y: number, words: string) => s("text.g-note", { x, y, "text-anchor": "end" }, words);
const line = (kind: string, d: string) => s(`path.${kind}` as "path.", { d });

function drawLine(graph: Graph, at: number, place: (i: number) => number, right: number): Child[] {
  const { events } = graph;
  const held = levels(events);
  const top = Math.max(...events.map(({ freed = 0 }, i) => held[i]! + freed));
  return [
    line("g-band", `M${LEFT} ${TOP + 12}H${right}`),
    line("gw-area", `${area(events, place, top || 1, right)}V${BASE}Z`),
    top > 0 && axis(LEFT - 8, TOP + 15.5, bytes(top)),
    axis(LEFT - 8, BASE + 3, "0 B"),
    line("gw-marker", `M${place(at) - 5} 2h10v6l-4 3v${BASE - 4}h-2v${4 - BASE}l-4-3z`),
    ...chips(graph, place),
  ];
}

/** Numbered calls, as many as do not touch: those that raised come first, then the latest. */
function chips(graph: Graph, place: (i: number) => number): SVGElement[] {
  const { events, calls } = graph;
  const shown: { x: number; ok: boolean; n: number }[] = [];
  const all = events.flatMap(({ call: n, kind, ok }, i) =>
    kind === "call" && n !== null ? [{ x: place(i), ok, n }] : [],
  );
  for (const each of all.sort((a, b) => Number(a.ok) - Number(b.ok) || b.x - a.x))
    if (shown.every(({ x }) => Math.abs(x - each.x) >= 30)) shown.push(each);
  return shown.flatMap(({ x, ok, n }) => {
    const call = calls.find((each) => each.n === n);
    const chip = s(
      "g",
      { transform: `translate(${x.toFixed(1)} ${TOP})` },
      line("g-leafline", `M0 8V${BASE - TOP}`),
      drawMarks(callMarks(n, orderOfCall(graph, n), true)),
      ok ? line("g-tick", "M10 0l3 3.2 6-6.4") : line("g-octagonopenx", "M11 -3.4l6.8 6.8M17.8 -3.4l-6.8 6.8"),
    );
    const fits = call && place(1) - place(0) > 44 + LETTER * call.text.length;
    return fits ? [axis(x - 12, TOP + 3.6, call.text), chip] : [chip];
  });
}

/** What ran, as wide as it has events. */
function drawCells(events: TimelineEvent[], at: number): HTMLElement[] {
  return segments(events).map(({ from, to, bad, label }) => {
    const kind = bad ? ".gw-bad" : at >= from && at <= to ? ".gw-cur" : "";
    return h(`div.gw-seg${kind}` as "div.", { style: `flex:${to - from + 1}` }, label);
  });
}

export function timelinePart({ act, state }: Context): Part {
  const first = tool("first", "First moment", () => act.step(-1e9));
  const previous = tool("prev", "Previous step", () => act.step(-1), "[");
  const next = tool("next", "Next step", () => act.step(1), "]");
  const last = tool("last", "Now", () => act.travel(null), "n");
  const title = h("b");
  const sub = h("div.gw-mute");
  const back = button("gw-link", () => act.travel(null), { hidden: true }, "back to now");
  const svg = s("svg.gw-line", { height: HEIGHT, "aria-hidden": "true" });
  const slider = h("input.gw-slider", {
    type: "range",
    min: 0,
    "aria-label": "Time",
    // Left of the first tick is the first moment, too.
    input: () => {
      act.step(Math.max(1, slider.valueAsNumber) - 1 - position(state));
      update();
    },
  });
  const cells = h("div.gw-segs", { "aria-hidden": "true" });
  const track = h("div.gw-track", cells, svg, slider);
  const steps = h("div.gw-row", first, previous, next, last);
  const el = h("div.gw-foot", h("div.gw-stepper", steps, title, sub, back), track);
  let width = 640;

  const paint = redraw(svg, () => {
    const { now } = state;
    const right = width - RIGHT;
    // Where on the line the moment after event i is.
    const place = (i: number) => LEFT + ((right - LEFT) * (i + 1)) / now!.events.length;
    return now && drawLine(now, position(state), place, right);
  });

  const paintCells = redraw(cells, () => drawCells(state.now!.events, position(state)));

  const update = () => {
    const { now, pastEvent } = state;
    const all = now?.events ?? [];
    const n = all.length;
    attr(el, "hidden", !n);
    if (!n) return;
    // A cell that is scrolled away may report a width of 0: keep the last one.
    width = track.clientWidth || width;
    const at = position(state);
    const event = all[at]!;
    const atEnd = at === n - 1;
    text(title, atEnd ? "Now" : "In the past");
    text(sub, `${eventTitle(event)} · step ${at + 1} of ${n}`);
    attr(back, "hidden", atEnd && pastEvent === null);
    first.disabled = previous.disabled = at <= 0;
    next.disabled = last.disabled = atEnd;
    attrs(slider, { max: n, "aria-valuetext": eventText(event) });
    slider.valueAsNumber = at + 1;
    attr(svg, "width", width);
    const what = [now!.serial, event.id, now!.calls.length, n, all.at(-1)];
    paintCells(what);
    paint(width, what);
  };
  return { el, update };
}
