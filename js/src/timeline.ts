/** The footer: stepper, cells, calls, bytes held over time, and the scrubber. Steps have equal width: order, not wall time. */
import { attr, flat, h, memo, s, text } from "./dom.ts";
import { drawMarks } from "./draw.ts";
import { callMarks } from "./glyphs.ts";
import { tool } from "./header.ts";
import { orderOfCall } from "./inspector.ts";
import type { Graph, TimelineEvent } from "./picture/model.ts";
import { bytes, callNumber, callText, eventText, eventTitle } from "./say.ts";
import type { Context, Part } from "./state.ts";

const LEFT = 56;
const RIGHT = 30;
const HEIGHT = 84;
const TOP = 34;
const BASE = 74;

export interface Segment {
  from: number;
  to: number;
  label: string;
  bad: boolean;
}

/** Neighbouring events of one cell and iteration are one segment. */
export function segments(events: TimelineEvent[]): Segment[] {
  const out: (Segment & { key: string })[] = [];
  events.forEach((event, i) => {
    const key = `${event.cell} ${event.kind === "call" ? event.iteration : "end"}`;
    const last = out[out.length - 1];
    // The end of a cell belongs to the iteration before it.
    const same =
      last &&
      last.to === i - 1 &&
      (last.key === key || (event.kind === "cell" && last.key.startsWith(`${event.cell} `)));
    if (last && same) {
      last.to = i;
      last.bad ||= !event.ok;
      return;
    }
    const cell = event.cell === null ? "this view" : `In[${event.cell}]`;
    const label = event.iteration === null ? cell : `${cell} · iteration ${event.iteration}`;
    out.push({ from: i, to: i, label, bad: !event.ok, key });
  });
  return out;
}

/** Position on the line of the moment after event i. */
function place(i: number, n: number, width: number): number {
  return LEFT + ((width - LEFT - RIGHT) * (i + 1)) / Math.max(1, n);
}

function area(events: TimelineEvent[], width: number, top: number): string {
  let d = `M${LEFT} ${BASE}`;
  events.forEach((event, i) => {
    const y = BASE - ((BASE - TOP - 12) * event.held) / Math.max(1, top);
    // A call changes the bytes at its tick; a cell's end shows what its lines built up on the way.
    const x = event.kind === "call" ? place(i, events.length, width) : place(i - 0.5, events.length, width);
    d += `H${x.toFixed(1)}V${y.toFixed(1)}`;
  });
  return `${d}H${width - RIGHT}`;
}

/** Widest text that fits, at about 5.6 px a letter. */
function label(words: string, width: number): string {
  const room = Math.floor((width - 14) / 5.6);
  if (words.length <= room) return words;
  const short = words.replace(/^In\[\d+\] · iteration /, "it ");
  return short.length <= room ? short : room > 3 ? `${words.slice(0, room - 1)}…` : "";
}

function drawLine(graph: Graph, current: number, width: number): SVGElement[] {
  const { events } = graph;
  const top = Math.max(...events.map((event) => event.held), 1);
  const at = events.findIndex((event) => event.id === current);
  const out: SVGElement[] = [];
  for (const segment of segments(events)) {
    const x0 = segment.from === 0 ? LEFT : place(segment.from - 1, events.length, width);
    const x1 = place(segment.to, events.length, width);
    const kind = segment.bad ? "gw-seg gw-bad" : at >= segment.from && at <= segment.to ? "gw-seg gw-cur" : "gw-seg";
    out.push(s("rect", { x: x0 + 1, y: 9, width: Math.max(1, x1 - x0 - 2), height: 16, rx: 3, class: kind }));
    out.push(s("text", { x: x0 + 7, y: 20.6, class: "gw-ax" }, label(segment.label, x1 - x0)));
  }
  const line = area(events, width, top);
  out.push(s("path", { d: `M${LEFT} ${TOP + 12}H${width - RIGHT}`, class: "gw-gridline" }));
  out.push(s("path", { d: `${line}V${BASE}Z`, class: "gw-area" }), s("path", { d: line, class: "gw-arealine" }));
  out.push(
    s("text", { x: LEFT - 8, y: TOP + 15.5, class: "gw-ax gw-end" }, bytes(top)),
    s("text", { x: LEFT - 8, y: BASE + 3, class: "gw-ax gw-end" }, "0 B"),
  );
  out.push(...chips(graph, width));
  return out;
}

/** Numbered calls. Where they would touch, only those that raised and the last one stay. */
function chips(graph: Graph, width: number): SVGElement[] {
  const { events } = graph;
  const pitch = (width - LEFT - RIGHT) / Math.max(1, events.length);
  const out: SVGElement[] = [];
  let free = -1e9;
  const lastCall = events.map((event) => event.kind).lastIndexOf("call");
  events.forEach((event, i) => {
    if (event.kind !== "call" || event.call === null) return;
    const call = graph.calls.find((c) => c.n === event.call);
    const x = place(i, events.length, width);
    if (x - free < 30 && event.ok && i !== lastCall) return;
    free = x;
    const order = orderOfCall(graph, event.call);
    const words = call ? `${callText(call)}: ${call.result}` : `call ${callNumber(event.call)}`;
    const chip = s("g", {
      class: "gw-chip",
      transform: `translate(${x.toFixed(1)} ${TOP})`,
      "data-call": event.call,
      "data-ok": event.ok,
    });
    chip.append(s("title", {}, words), s("path", { d: `M0 8V${BASE - TOP}`, class: "gw-callline" }));
    chip.append(...drawMarks(callMarks(event.call, order, true)));
    chip.append(
      event.ok
        ? s("path", { d: "M10 0l3 3.2 6-6.4", class: "gw-tick" })
        : s("path", { d: "M11 -3.4l6.8 6.8M17.8 -3.4l-6.8 6.8", class: "gw-cross" }),
    );
    if (call && pitch > 120) out.push(s("text", { x: x - 12, y: TOP + 3.6, class: "gw-ax gw-end" }, callText(call)));
    out.push(chip);
  });
  return out;
}

export function timelinePart(context: Context): Part {
  const { act, state, signal } = context;
  const first = tool("first", "First moment", () => act.step(Number.NEGATIVE_INFINITY), "{");
  const previous = tool("prev", "Previous step", () => act.step(-1), "[");
  const next = tool("next", "Next step", () => act.step(1), "]");
  const last = tool("last", "Now", () => act.travel(null), "n");
  const title = h("div", { class: "gw-steptitle" });
  const sub = h("div", { class: "gw-stepsub" });
  const back = h(
    "button",
    { type: "button", class: "gw-link", hidden: true, onclick: () => act.travel(null) },
    "back to now",
  );
  const line = s("svg", { class: "gw-line", height: HEIGHT, "aria-hidden": "true" });
  const slider = h("div", {
    class: "gw-slider",
    role: "slider",
    tabindex: 0,
    "aria-label": "Time",
    "aria-orientation": "horizontal",
  });
  const track = h("div", { class: "gw-track" }, slider, line);
  const el = h(
    "div",
    { class: "gw-foot" },
    h("div", { class: "gw-stepper" }, h("div", { class: "gw-steps" }, first, previous, next, last), title, sub, back),
    track,
  );
  let width = 640;
  const events = () => state.now?.events ?? [];
  const position = () => {
    const id = state.pastEvent ?? state.now?.event;
    const at = events().findIndex((event) => event.id === id);
    return at < 0 ? events().length - 1 : at;
  };

  const paint = memo(() => {
    if (state.now) line.replaceChildren(...flat(drawLine(state.now, state.pastEvent ?? state.now.event, width)));
  });
  const goTo = (clientX: number) => {
    const box = track.getBoundingClientRect();
    const n = events().length;
    const i = Math.round(((clientX - box.left - LEFT) / Math.max(1, width - LEFT - RIGHT)) * n - 1);
    act.step(Math.max(0, Math.min(n - 1, i)) - position());
  };
  let dragging = false;
  track.addEventListener(
    "pointerdown",
    (event) => {
      dragging = true;
      track.setPointerCapture?.(event.pointerId);
      goTo(event.clientX);
    },
    { signal },
  );
  track.addEventListener("pointermove", (event) => dragging && goTo(event.clientX), { signal });
  for (const end of ["pointerup", "pointercancel"]) track.addEventListener(end, () => (dragging = false), { signal });
  slider.addEventListener(
    "keydown",
    (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (by !== undefined) act.step(by);
      else if (event.key === "Home") act.step(Number.NEGATIVE_INFINITY);
      else if (event.key === "End") act.travel(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
  const resize = new ResizeObserver(() => {
    // A cell that is scrolled away may report a width of 0: keep the last one.
    const now = track.clientWidth;
    if (now > 0 && now !== width) {
      width = now;
      update();
    }
  });
  resize.observe(track);
  signal.addEventListener("abort", () => resize.disconnect());

  function update(): void {
    const all = events();
    attr(el, "hidden", all.length === 0);
    if (!all.length) return;
    const at = position();
    const event = all[at]!;
    const now = at === all.length - 1;
    text(title, now ? "Now" : "In the past");
    text(sub, `${eventTitle(event)} · step ${at + 1} of ${all.length}`);
    attr(back, "hidden", now && state.pastEvent === null);
    for (const button of [first, previous]) attr(button, "disabled", at <= 0);
    for (const button of [next, last]) attr(button, "disabled", now);
    attr(slider, "aria-valuemin", 1);
    attr(slider, "aria-valuemax", all.length);
    attr(slider, "aria-valuenow", at + 1);
    attr(slider, "aria-valuetext", eventText(event));
    slider.style.left = `${place(at, all.length, width)}px`;
    attr(line, "width", width);
    paint(
      JSON.stringify([width, state.now!.serial, event.id, state.now!.calls.length, all.length, all[all.length - 1]]),
    );
  }
  return { el, update };
}
