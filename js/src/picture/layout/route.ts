/**
 * Sixth phase: polylines. A route runs straight up through a row and slants only between rows, where there are no
 * boxes; so it never passes through one. An edge without dummies takes a channel of its own right of everything.
 */
import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import { DUMMY_WIDTH, type Layered } from "./layers.ts";
import type { RowPlaces } from "./rows.ts";
import type { LayoutInput } from "./types.ts";

const CORNER = 8;
/** Number of rows crossed between two pauses. */
const SLICE = 4096;

export interface Routes {
  start: Int32Array;
  points: Float32Array;
}

export function* routeEdges(
  input: LayoutInput,
  graph: Directed,
  layered: Layered,
  rank: Int32Array,
  x: Float64Array,
  rows: RowPlaces,
): Slices<Routes> {
  const { m, lower, upper } = graph;
  const { width, height } = input;
  const { itemOf, dummy, dummyStart } = layered;
  const above = (r: number) => rows.centre[r] - rows.half[r];
  const below = (r: number) => rows.centre[r] + rows.half[r];
  yield;
  const channel = assignChannels(input, graph, layered, rank, x);
  yield;
  // Upper bound: three pieces per edge and one per dummy.
  const points = new Float32Array(12 * m + 4 * dummy.length);
  let used = 0;
  yield;

  /** A vertical piece. */
  function put(at: number, from: number, to: number): void {
    points[used++] = at;
    points[used++] = from;
    points[used++] = at;
    points[used++] = to;
  }

  /** A route from the top of the lower box up to the bottom of the upper one; both ends are vertical. */
  function rowRoute(a: number, b: number, first: number): void {
    const between = rank[a] - rank[b] - 1;
    const xb = x[itemOf[b]];
    const top = rows.centre[rank[a]] - height[a] / 2;
    const bottom = rows.centre[rank[b]] + height[b] / 2;
    const out = port(x[itemOf[a]], width[a], between ? x[dummy[first + between - 1]] : xb);
    const into = port(xb, width[b], between ? x[dummy[first]] : out);
    if (!between && into === out) {
      put(out, top, bottom);
      return;
    }
    put(out, top, above(rank[a]));
    for (let k = between - 1, last = Number.NaN; k >= 0; k--) {
      const r = rank[b] + 1 + k;
      const at = x[dummy[first + k]];
      // No bend here.
      if (at === last) points[used - 1] = above(r);
      else put(at, below(r), above(r));
      last = at;
    }
    put(into, below(rank[b]), bottom);
  }

  /** A route through an outer channel; its horizontal pieces run in the middle between two rows. */
  function channelRoute(a: number, b: number, beside: number): void {
    const xa = port(x[itemOf[a]], width[a], beside);
    const xb = port(x[itemOf[b]], width[b], beside);
    const outY = (above(rank[a]) + below(rank[a] - 1)) / 2;
    const inY = (below(rank[b]) + above(rank[b] + 1)) / 2;
    put(xa, rows.centre[rank[a]] - height[a] / 2, outY);
    put(beside, outY, inY);
    put(xb, inY, rows.centre[rank[b]] + height[b] / 2);
  }

  const begin = ints(m + 1);
  let crossed = 0;
  for (let e = 0; e < m; e++) {
    begin[e] = used;
    if (lower[e] < 0) continue;
    if (dummyStart[e] < 0) channelRoute(lower[e], upper[e], channel[e]);
    else rowRoute(lower[e], upper[e], dummyStart[e]);
    crossed += rank[lower[e]] - rank[upper[e]];
    if (crossed < SLICE) continue;
    crossed = 0;
    yield;
  }
  begin[m] = used;
  return { start: begin, points: points.subarray(0, used) };
}

/** x on a box's border where a line towards `other` ends: straight above or below it if the box is wide enough. */
function port(centre: number, width: number, other: number): number {
  const reach = Math.max(0, width / 2 - CORNER);
  return Math.min(Math.max(other, centre - reach), centre + reach);
}

/** Channels for the edges without dummies: each edge takes the leftmost channel that is free over its rows. */
function assignChannels(
  { width, nodesep }: LayoutInput,
  graph: Directed,
  { dummyStart, box }: Layered,
  rank: Int32Array,
  itemX: Float64Array,
): Float64Array {
  const x = doubles(graph.m);
  const long: number[] = [];
  for (let e = 0; e < graph.m; e++) if (graph.lower[e] >= 0 && dummyStart[e] < 0) long.push(e);
  long.sort((a, b) => rank[graph.upper[a]] - rank[graph.upper[b]] || a - b);
  if (!long.length) return x;
  const right = itemX.reduce((most, at, v) => Math.max(most, at + (width[box[v]] ?? DUMMY_WIDTH) / 2), -1 / 0);
  const freeFrom: number[] = [];
  const taken = new Map<number, number>();
  for (const e of long) {
    // Edges to the same box share a channel.
    const upper = graph.upper[e];
    let c = taken.get(upper) ?? freeFrom.findIndex((row) => row < rank[upper]);
    if (c < 0) c = freeFrom.length;
    taken.set(upper, c);
    freeFrom[c] = Math.max(freeFrom[c] ?? 0, rank[graph.lower[e]]);
    x[e] = right + nodesep + (c * nodesep) / 2;
  }
  return x;
}
