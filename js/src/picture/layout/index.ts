/**
 * The layered layout: inputs at the top, losses at the bottom.
 *
 *   direct -> ranks -> layers (dummies) -> order -> blocks + coordinates, rows -> routes
 *
 * In small pictures, and where wires cross, ranks are tightened: the edges together become as short as possible. Where
 * several ranks are equally good, boxes take the highest, or the lowest if that order has fewer crossings.
 *
 * Every phase works on typed arrays, never recurses and can be paused between slices of work. Every phase that runs on
 * large graphs is near linear.
 */

import { doubles } from "../arrays.ts";
import { runSlices, type Slices } from "../slices.ts";
import { placeItems } from "./coordinates/coordinates.ts";
import type { Order } from "./crossings.ts";
import { type Directed, direct } from "./direct.ts";
import { widerGaps } from "./gaps.ts";
import { type Layered, makeLayers } from "./layers.ts";
import { orderRows } from "./order/order.ts";
import { rankBoxes } from "./ranks.ts";
import { type Routes, routeEdges } from "./route.ts";
import { placeRows, type RowPlaces } from "./rows.ts";
import type { LayoutInput, LayoutOutput } from "./types.ts";

export type { LayoutInput, LayoutOutput } from "./types.ts";

/** A picture of at most `SMALL` boxes gets up to `STARTS` starts of the search for an order while it has crossings. */
const SMALL = 2000;
const STARTS = 60;
/**
 * With at most `FEW` items, `TRIED` orders are placed and the one with the shortest wires and least width is taken, and
 * gaps are made wide enough for the wires in them.
 */
const FEW = 600;
const TRIED = 5;

/** Runs to the end. */
export function layout(input: LayoutInput): LayoutOutput {
  return runSlices(layoutSlices(input));
}

/** The same in slices: yields every few milliseconds of work, so that a driver can wait until the page has time. */
export function* layoutSlices(input: LayoutInput): Slices<LayoutOutput> {
  const graph = yield* direct(input);
  let best = yield* orderBoxes(input, graph, yield* rankBoxes(graph, input));
  const [crossings, high, , { length: starts }] = best;
  if (crossings && starts > 1) {
    const rank = yield* rankBoxes(graph, input, true);
    if (rank.some((r, v) => r !== high[v])) {
      const low = yield* orderBoxes(input, graph, rank);
      // In a larger picture it also shortens edges, so more crossings are accepted.
      if (low[0] < (input.n > FEW ? 1.25 : 1) * crossings) best = low;
    }
  }
  const [, rank, layered, orders, previous] = best;
  const tried = orders.slice(0, layered.items > FEW ? 1 : TRIED);
  const itemX = yield* placeItems(layered, tried, input.width, input.nodesep, previous);
  yield;
  const wider = layered.items > FEW ? null : widerGaps(input, graph, layered, rank, itemX);
  const rows = placeRows(layered.rows, rank, input.height, input.ranksep, input.previous?.y ?? null, wider);
  const routes = yield* routeEdges(input, graph, layered, rank, itemX, rows);
  return finish(input, rank, layered.itemOf, itemX, rows, routes);
}

/** Results of the phases that run before any coordinate is known. */
type Ordered = [crossings: number, rank: Int32Array, Layered, Order[], previous: Float64Array | null];

/** Runs the phases from given ranks to the order within rows. */
function* orderBoxes(input: LayoutInput, graph: Directed, rank: Int32Array): Slices<Ordered> {
  yield;
  const layered = yield* makeLayers(graph, rank);
  yield;
  const { box, items } = layered;
  // NaN for dummies: their order is free.
  const perItem = (of: Float32Array | undefined) =>
    of ? doubles(items).map((_, i) => of[box[i]] ?? Number.NaN) : null;
  const previous = perItem(input.previous?.x);
  const bonds = [perItem(input.lane), previous].filter((key) => key !== null);
  yield;
  const [orders, crossings] = yield* orderRows(
    layered,
    bonds,
    input.previous || input.n > SMALL ? 1 : STARTS,
    items <= FEW,
  );
  return [crossings, rank, layered, orders, previous];
}

/** The output: coordinates per box instead of per item, and the rectangle around everything drawn. */
function finish(
  input: LayoutInput,
  rank: Int32Array,
  itemOf: Int32Array,
  itemX: Float64Array,
  { centre, half }: RowPlaces,
  { start, points }: Routes,
): LayoutOutput {
  const { n } = input;
  const x = new Float32Array(n);
  const y = new Float32Array(n);
  let left = Number.POSITIVE_INFINITY;
  let right = Number.NEGATIVE_INFINITY;
  for (let v = 0; v < n; v++) {
    x[v] = itemX[itemOf[v]];
    y[v] = centre[rank[v]];
    left = Math.min(left, x[v] - input.width[v] / 2);
    right = Math.max(right, x[v] + input.width[v] / 2);
  }
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]);
    right = Math.max(right, points[i]);
  }
  // 0 if there is no row.
  const top = centre[0] - half[0] || 0;
  const bottom = centre.at(-1)! + half.at(-1)! || 0;
  if (!n) left = right = 0;
  return {
    x,
    y,
    rank,
    routeStart: start,
    route: points,
    left,
    top,
    width: right - left,
    height: bottom - top,
  };
}
