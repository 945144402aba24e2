/** What is drawn on the timeline: bytes held over the events, numbered calls, optimizer steps, the present position. */

import type { VNode } from "preact";
import { callMarks } from "../page/glyphs.tsx";
import { MarkShapes } from "../page/marks.tsx";
import { pencil } from "../picture/marks.ts";
import type { Graph } from "../picture/model.ts";
import { bytes } from "../state/say.ts";
import { type Chip, chipsOf, notesOf, type Pencil } from "./chips.ts";
import { type Level, levelsOf, pathOf, topOf } from "./line.ts";
import { type Placed, placeOf, stretchAt } from "./scale.ts";

export const LEFT = 56;
export const RIGHT = 30;
/** Middle of the row of numbers; the line is below it. */
const NUMBERS = 34;
const TOP = 46;
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

/** The bytes held: what was measured as an area, the rest as a dashed line. */
function Bytes({ levels, most, base }: { levels: readonly Level[]; most: number; base: number }): VNode {
  const room = { base, top: TOP };
  return (
    <>
      <path class="gw-area" d={pathOf(levels, true, most, room, true)} />
      <path class="gw-unmeasured" d={pathOf(levels, false, most, room)} />
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
  /** The event on screen. */
  at: number;
  width: number;
  height: number;
}

export function TimelineMarks({ graph, forecast, stretches, at, width, height }: MarksProps): VNode {
  const { events } = graph;
  const base = height - FOOT;
  const levels = levelsOf(events, stretches);
  const most = topOf(levels);
  const { chips, pencils } = notesOf(graph, stretches, chipsOf(graph, stretches));
  const x = placeOf(stretches, at);
  return (
    <>
      <path class="g-band" d={`M${LEFT} ${most > 0 ? TOP : base}H${width - RIGHT}`} />
      <Bytes levels={levels} most={most} base={base} />
      {most > 0 && (
        <Note x={LEFT - 8} y={TOP + 3.5} end>
          {bytes(most)}
        </Note>
      )}
      <Note x={LEFT - 8} y={base + 3} end>
        0 B
      </Note>
      {stretchAt(stretches, at) && (
        <path class="gw-marker" d={`M${x - 5} 2h10v6l-4 3v${base - 4}h-2v${4 - base}l-4-3z`} />
      )}
      {forecast !== 0 && at === events.length - 1 && (
        <Forecast x={x} from={graph.held} by={forecast} y={(held) => base - ((base - TOP) * held) / (most || 1)} />
      )}
      {pencils.map((each) => (
        <Step {...each} />
      ))}
      {chips.map((chip) => (
        <CallChip key={chip.n} chip={chip} base={base} />
      ))}
    </>
  );
}
