/** The line of the timeline: bytes held over the events, numbered calls, the present position. Order, not wall time. */

import type { VNode } from "preact";
import { callMarks } from "../page/glyphs.tsx";
import { MarkShapes } from "../page/marks.tsx";
import { type Graph, orderOfCall, type TimelineEvent } from "../picture/model.ts";
import { bytes } from "../state/say.ts";

const LEFT = 56;
const RIGHT = 30;
const TOP = 34;
const BASE = 74;
/** Gap between the numbers of calls and the highest point of the line, in px. */
const NUMBERS = 12;
/** Numbers closer than this (px) would touch. */
const CHIP = 30;
/** Width of a letter in px. */
const LETTER = 7;

/** Bytes held after each event; if they were not measured, those of the event before it. */
function levels(events: TimelineEvent[]): number[] {
  let level = 0;
  return events.map(({ held }) => {
    level = held ?? level;
    return level;
  });
}

/** Path data of the bytes over the events; `top`: the largest number of bytes. */
export function area(events: TimelineEvent[], place: (i: number) => number, top: number, right: number): string {
  let d = `M${LEFT} ${BASE}`;
  const to = (at: number, held: number) => {
    d += `H${place(at).toFixed(1)}V${(BASE - ((BASE - TOP - NUMBERS) * held) / top).toFixed(1)}`;
  };
  const held = levels(events);
  events.forEach(({ freed = 0 }, i) => {
    // What the lines before it built up, and what is left of it.
    to(i - 0.5, held[i]! + freed);
    to(i, held[i]!);
  });
  return `${d}H${right}`;
}

function Note({ x, y, children }: { x: number; y: number; children: string }): VNode {
  return (
    <text class="g-note" x={x} y={y} text-anchor="end">
      {children}
    </text>
  );
}

interface Chip {
  x: number;
  ok: boolean;
  n: number;
}

/** The calls that get a number, as many as do not touch: first those that raised, then the latest. */
function chipsOf(events: TimelineEvent[], place: (i: number) => number): Chip[] {
  const all: Chip[] = [];
  events.forEach(({ call: n, kind, ok }, i) => {
    if (kind === "call" && n !== null) all.push({ x: place(i), ok, n });
  });
  const chosen: Chip[] = [];
  for (const chip of all.sort((a, b) => Number(a.ok) - Number(b.ok) || b.x - a.x))
    if (chosen.every(({ x }) => Math.abs(x - chip.x) >= CHIP)) chosen.push(chip);
  return chosen;
}

/** `step`: width of an event in px. */
function CallChip({ graph, chip, step }: { graph: Graph; chip: Chip; step: number }): VNode {
  const { x, ok, n } = chip;
  const call = graph.calls.find((each) => each.n === n);
  const fits = call && step > 44 + LETTER * call.text.length;
  return (
    <>
      {fits && (
        <Note x={x - 12} y={TOP + 3.6}>
          {call.text}
        </Note>
      )}
      <g transform={`translate(${x.toFixed(1)} ${TOP})`}>
        <path class="g-leafline" d={`M0 8V${BASE - TOP}`} />
        <MarkShapes marks={callMarks(n, orderOfCall(graph, n), true)} />
        {ok ? (
          <path class="g-tick" d="M10 0l3 3.2 6-6.4" />
        ) : (
          <path class="g-octagonopenx" d="M11 -3.4l6.8 6.8M17.8 -3.4l-6.8 6.8" />
        )}
      </g>
    </>
  );
}

/** `at`: the event on screen. */
export function TimelineMarks({ graph, at, width }: { graph: Graph; at: number; width: number }): VNode {
  const { events } = graph;
  const right = width - RIGHT;
  // x of the moment after event i.
  const place = (i: number) => LEFT + ((right - LEFT) * (i + 1)) / events.length;
  const held = levels(events);
  const top = Math.max(...events.map(({ freed = 0 }, i) => held[i]! + freed));
  return (
    <>
      <path class="g-band" d={`M${LEFT} ${TOP + NUMBERS}H${right}`} />
      <path class="gw-area" d={`${area(events, place, top || 1, right)}V${BASE}Z`} />
      {top > 0 && (
        <Note x={LEFT - 8} y={TOP + 15.5}>
          {bytes(top)}
        </Note>
      )}
      <Note x={LEFT - 8} y={BASE + 3}>
        0 B
      </Note>
      <path class="gw-marker" d={`M${place(at) - 5} 2h10v6l-4 3v${BASE - 4}h-2v${4 - BASE}l-4-3z`} />
      {chipsOf(events, place).map((chip) => (
        <CallChip key={chip.n} graph={graph} chip={chip} step={place(1) - place(0)} />
      ))}
    </>
  );
}
