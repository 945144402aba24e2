/**
 * The layered layout: inputs at the top, losses at the bottom.
 *
 *   direct -> ranks -> layers (dummies) -> order -> blocks + coordinates, rows -> routes
 *
 * Every phase works on typed arrays, is near linear, never recurses and can be paused between slices of work.
 */

import { doubles } from "../arrays.ts";
import { runSlices, type Slices } from "../slices.ts";
import { placeItems } from "./coordinates.ts";
import { crossingsBelow } from "./crossings.ts";
import { direct } from "./direct.ts";
import { type Layered, makeLayers } from "./layers.ts";
import { type Bonds, orderRows } from "./order.ts";
import { rankBoxes } from "./ranks.ts";
import { routeEdges } from "./route.ts";
import { placeRows } from "./rows.ts";
import type { LayoutInput, LayoutOutput } from "./types.ts";

export type { LayoutInput, LayoutOutput } from "./types.ts";

/** Runs to the end. */
export function layout(input: LayoutInput): LayoutOutput {
  return runSlices(layoutSlices(input));
}

/** Yields every few milliseconds of work; a driver goes on when the page has time. */
export function* layoutSlices(input: LayoutInput): Slices<LayoutOutput> {
  const graph = yield* direct(input);
  yield;
  const rank = yield* rankBoxes(graph, input);
  yield;
  const layered = yield* makeLayers(graph, rank);
  yield;
  const { box } = layered;
  // Dummies are free.
  const perItem = (of: Float32Array | undefined) =>
    of ? doubles(box.length).map((_, i) => of[box[i]] ?? Number.NaN) : null;
  const bonds: Bonds = { lane: perItem(input.lane), previous: perItem(input.previous?.x) };
  yield;
  const itemX = yield* arrange(layered, bonds, input);
  yield;
  const rows = placeRows(layered.rows, rank, input.height, input.ranksep, input.previous?.y ?? null);
  const routes = yield* routeEdges(input, graph, layered, rank, itemX, rows);
  yield;
  return yield* finish(input, rank, layered.itemOf, itemX, rows.centre, rows.half, routes);
}

/** A picture with more px of wire an item is begun again, so many times, each time with other inputs turned round. */
const TANGLED = 50;
const BEGINNINGS = 16;
/** Items to be placed all together: the larger a picture, the fewer beginnings. */
const MOST_ITEMS = 2000;
/** Px of wire that a crossing is worth; by how much a picture has to be better than the one with inputs in their order. */
const CROSSING = 500;
const BETTER = 1.05;

/** x of every item, in the order that makes the best picture. */
function* arrange(layered: Layered, bonds: Bonds, { width, nodesep }: LayoutInput): Slices<Float64Array> {
  const { rows, items, down } = layered;
  let best: Float64Array | undefined;
  let least = 0;
  for (let turn = 0; ; ) {
    const order = yield* orderRows(layered, bonds, turn);
    const x = yield* placeItems(layered, order, width, nodesep, bonds.previous);
    if (bonds.previous || 2 * items > MOST_ITEMS) return x;
    let cost = 0;
    for (let r = 1; r < rows; r++) cost += CROSSING * crossingsBelow(layered, order, r - 1);
    for (let v = 0; v < items; v++)
      for (let k = down.start[v]; k < down.start[v + 1]; k++) cost += Math.abs(x[down.item[k]] - x[v]);
    if (turn) cost *= BETTER;
    if (!turn || cost < least) {
      least = cost;
      best = x;
    }
    if (++turn === BEGINNINGS || least < TANGLED * items || (turn + 1) * items > MOST_ITEMS) return best!;
  }
}

/** Per box again; moved to the origin unless anchored at earlier places. */
function* finish(
  input: LayoutInput,
  rank: Int32Array,
  itemOf: Int32Array,
  itemX: Float64Array,
  centre: Float64Array,
  half: Float64Array,
  routes: { start: Int32Array; points: Float32Array; right: number },
): Slices<LayoutOutput> {
  const { n } = input;
  const x = new Float32Array(n);
  const y = new Float32Array(n);
  let left = Number.POSITIVE_INFINITY;
  let right = routes.right;
  for (let v = 0; v < n; v++) {
    x[v] = itemX[itemOf[v]];
    y[v] = centre[rank[v]];
    left = Math.min(left, x[v] - input.width[v] / 2);
    right = Math.max(right, x[v] + input.width[v] / 2);
  }
  yield;
  const points = routes.points;
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]);
    right = Math.max(right, points[i]);
  }
  const rows = centre.length;
  const top = rows ? centre[0] - half[0] : 0;
  const bottom = rows ? centre[rows - 1] + half[rows - 1] : 0;
  yield;
  if (!n) left = right = 0;
  let shift = 0;
  if (!input.previous) {
    shift = left;
    for (let v = 0; v < n; v++) x[v] -= shift;
    for (let i = 0; i < points.length; i += 2) points[i] -= shift;
  }
  return {
    x,
    y,
    rank,
    routeStart: routes.start,
    route: points,
    left: left - shift,
    top,
    width: right - left,
    height: bottom - top,
  };
}
