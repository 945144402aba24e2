/** What is drawn on the timeline: bytes held over the events, numbered calls, optimizer steps, the present position. */

import type { VNode } from "preact";
import { callMarks } from "../page/glyphs.tsx";
import { MarkShapes } from "../page/marks.tsx";
import { pencil } from "../picture/marks.ts";
import type { Graph, TimelineEvent } from "../picture/model.ts";
import type { Keepers } from "../state/replies.ts";
import { bytes } from "../state/say.ts";
import { type Chip, chipsOf, notesOf, type Pencil } from "./chips.ts";
import { Bands } from "./keepers.tsx";
import { type Level, levelsOf, pathOf, topOf } from "./line.ts";
import { type Placed, placeOf, stretchAt } from "./scale.ts";

export const LEFT = 56;
export const RIGHT = 30;
/** Middle of the row of numbers; the line is below it. */
const NUMBERS = 34;
const TOP = 46;
/** With more room than this, in px, there are numbers between 0 and the most. */
const ROOMY = 90;
/** Distance of the line's base from the lower edge. */
const FOOT = 10;

export function Note(props: { x: number; y: number; end?: boolean; children: string }): VNode {
  return (
    <text class="g-note" x={props.x} y={props.y} text-anchor={props.end ? "end" : "start"}>
      {props.children}
    </text>
  );
}

function CallChip({ chip, base }: { chip: Chip; base: number }): VNode {
  const { x, n, order, ok, text } = chip;
  const wide = 7 + 3 * Math.max(0, String(n + 1).length - 2);
  return (
    <>
      {text && (
        <Note x={x - wide - 5} y={NUMBERS + 3.6} end>
          {text}
        </Note>
      )}
      <g transform={`translate(${x.toFixed(1)} ${NUMBERS})`}>
        <path class="g-leafline" d={`M0 8V${base - NUMBERS}`} />
        <MarkShapes marks={callMarks(n, order, true)} />
        {ok ? (
          <path class="g-tick" d={`M${wide + 3} 0l3 3.2 6-6.4`} />
        ) : (
          <path class="g-octagonopenx" d={`M${wide + 4} -3.4l6.8 6.8M${wide + 10.8} -3.4l-6.8 6.8`} />
        )}
      </g>
    </>
  );
}

function Step({ x, text }: Pencil): VNode {
  return (
    <>
      <g transform={`translate(${x.toFixed(1)} ${NUMBERS - 5})`}>
        <MarkShapes marks={pencil(0, 0)} />
      </g>
      {text && (
        <Note x={x + 13} y={NUMBERS + 3.6}>
          {text}
        </Note>
      )}
    </>
  );
}

/** Places of bytes: where the line stands for a number of them, and the edges of its room. */
export interface Heights {
  levels: readonly Level[];
  /** Most bytes that were held; 0: none ever. */
  most: number;
  base: number;
  top: number;
  y(held: number): number;
}

export function heightsOf(events: readonly TimelineEvent[], stretches: readonly Placed[], height: number): Heights {
  const levels = levelsOf(events, stretches);
  const most = topOf(levels);
  const base = height - FOOT;
  return { levels, most, base, top: TOP, y: (held) => base - ((base - TOP) * held) / (most || 1) };
}

/** The bytes held: what was measured as an area, the rest as a dashed line. */
function Bytes({ heights }: { heights: Heights }): VNode {
  const { levels, most } = heights;
  return (
    <>
      <path class="gw-area" d={pathOf(levels, true, most, heights, true)} />
      <path class="gw-unmeasured" d={pathOf(levels, false, most, heights)} />
    </>
  );
}

/** The numbers beside the line: 0 and the most; with room, those between them, too. */
function Axis({ heights: { most, base, top, y }, right }: { heights: Heights; right: number }): VNode {
  const parts = most > 0 ? (base - top > ROOMY ? [0, 1, 2, 3, 4] : [0, 4]) : [0];
  return (
    <>
      {parts.map((part) => {
        const at = y((most * part) / 4);
        return (
          <>
            {part > 0 && <path class="g-band" d={`M${LEFT} ${at.toFixed(1)}H${right}`} />}
            <Note x={LEFT - 8} y={at + 3.2} end>
              {bytes((most * part) / 4)}
            </Note>
          </>
        );
      })}
      <path class="g-band" d={`M${LEFT} ${base}H${right}`} />
    </>
  );
}

/** What a forecast would do to the bytes held: the new level, and the difference in words. */
function Forecast({ x, from, by, y }: { x: number; from: number; by: number; y: (held: number) => number }): VNode {
  const words = `forecast: ${by < 0 ? "−" : "+"}${bytes(Math.abs(by))}`;
  return (
    <>
      <path class="g-octagonopen" d={`M${x} ${y(from)}V${y(from + by)}H${x + RIGHT - 6}`} />
      <g class="gw-over">
        <Note x={x - 8} y={TOP + 10} end>
          {words}
        </Note>
      </g>
    </>
  );
}

interface MarksProps {
  graph: Graph;
  /** By how much a call would change the bytes held now; 0: not at all, or not known. */
  forecast: number;
  stretches: readonly Placed[];
  heights: Heights;
  /** Who kept which bytes, if the timeline is enlarged. */
  keepers: Keepers | null;
  /** The event on screen. */
  at: number;
  /** The event that others are compared with; -1: none. */
  from: number;
  /** Right end of the line. */
  right: number;
}

export function TimelineMarks({ graph, forecast, stretches, heights, keepers, at, from, right }: MarksProps): VNode {
  const { events } = graph;
  const { base, y } = heights;
  const { chips, pencils } = notesOf(graph, stretches, chipsOf(graph, stretches));
  const x = placeOf(stretches, at);
  return (
    <>
      <Axis heights={heights} right={right} />
      <Bytes heights={heights} />
      {keepers && <Bands graph={graph} stretches={stretches} keepers={keepers} y={y} />}
      {stretchAt(stretches, from) && (
        <path
          class="gw-marker gw-from"
          d={`M${placeOf(stretches, from) - 5} 2h10v6l-4 3v${base - 4}h-2v${4 - base}l-4-3z`}
        />
      )}
      {stretchAt(stretches, at) && (
        <path class="gw-marker" d={`M${x - 5} 2h10v6l-4 3v${base - 4}h-2v${4 - base}l-4-3z`} />
      )}
      {forecast !== 0 && at === events.length - 1 && <Forecast x={x} from={graph.held} by={forecast} y={y} />}
      {pencils.map((each) => (
        <Step {...each} />
      ))}
      {chips.map((chip) => (
        <CallChip key={chip.n} chip={chip} base={base} />
      ))}
    </>
  );
}
