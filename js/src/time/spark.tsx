/** The timeline of a low view, in the header: the bytes held, and the numbers of calls. */

import type { VNode } from "preact";
import { callMarks } from "../page/glyphs.tsx";
import { MarkShapes } from "../page/marks.tsx";
import type { Graph } from "../picture/model.ts";
import { chipsOf } from "./chips.ts";
import { levelsOf, pathOf, topOf } from "./line.ts";
import { placed } from "./scale.ts";
import { stretchesOf } from "./stretches.ts";

const WIDTH = 150;
const HEIGHT = 28;
const MIDDLE = 9;
/** Room at both ends: half a number, and its sign. */
const SIDE = 12;
const EVENT = 12;

export function Spark({ graph }: { graph: Graph }): VNode {
  const { events } = graph;
  const stretches = placed(stretchesOf(events, 0, events.length - 1, (WIDTH - 2 * SIDE) / EVENT), SIDE, WIDTH - SIDE);
  const levels = levelsOf(events, stretches);
  const room = { base: HEIGHT - 3, top: 6 };
  return (
    <svg class="gw-spark gw-line" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <path class="gw-area" d={pathOf(levels, true, topOf(levels), room, true)} />
      <path class="gw-unmeasured" d={pathOf(levels, false, topOf(levels), room)} />
      {chipsOf(graph, stretches).map(({ n, order, x }) => (
        <g key={n} transform={`translate(${x.toFixed(1)} ${MIDDLE})`}>
          <MarkShapes marks={callMarks(n, order, true)} />
        </g>
      ))}
    </svg>
  );
}
