/**
 * Sixth phase: polylines. A route runs straight up through a row and slants only between rows, where there are no
 * boxes; so it never passes through one. An edge without dummies takes a channel of its own right of everything.
 */
import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import type { Layered } from "./layers.ts";
import type { RowPlaces } from "./rows.ts";
import type { LayoutInput } from "./types.ts";

const CORNER = 8;
/** Rows crossed between two pauses. */
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
  const { width, height, nodesep } = input;
  const { itemOf, dummy, dummyStart } = layered;
  const above = (r: number) => rows.centre[r] - rows.half[r];
  const below = (r: number) => rows.centre[r] + rows.half[r];
  yield;
  const channel = assignChannels(graph, layered, rank, rightOfAll(input, layered, x), nodesep);
  yield;
  let room = 0;
  for (let e = 0; e < m; e++) {
    if (lower[e] >= 0) room += dummyStart[e] < 0 ? 12 : 8 + 4 * (rank[lower[e]] - rank[upper[e]] - 1);
  }
  const points = new Float32Array(room);
  let used = 0;
  yield;

  /** From the top of the lower box up to the bottom of the upper one. Points in a straight line are left out. */
  function rowRoute(a: number, b: number, first: number): void {
    const from = used;
    const between = rank[a] - rank[b] - 1;
    const xa = x[itemOf[a]];
    const xb = x[itemOf[b]];
    const top = rows.centre[rank[a]] - height[a] / 2;
    const bottom = rows.centre[rank[b]] + height[b] / 2;
    const common = between ? Number.NaN : meet(xa, width[a], xb, width[b]);
    if (!Number.isNaN(common)) {
      used = add(points, from, add(points, from, used, common, top), common, bottom);
      return;
    }
    const out = port(xa, width[a], between ? x[dummy[first + between - 1]] : xb);
    const into = port(xb, width[b], between ? x[dummy[first]] : xa);
    for (let k = between; k >= -1; k--) {
      const r = rank[b] + 1 + k;
      const at = k === between ? out : k < 0 ? into : x[dummy[first + k]];
      used = add(points, from, used, at, k === between ? top : below(r));
      used = add(points, from, used, at, k < 0 ? bottom : above(r));
    }
  }

  /** By way of a channel; its horizontal pieces run in the middle between two rows. */
  function channelRoute(a: number, b: number, beside: number): void {
    const xa = port(x[itemOf[a]], width[a], beside);
    const xb = port(x[itemOf[b]], width[b], beside);
    const outY = (above(rank[a]) + below(rank[a] - 1)) / 2;
    const inY = (below(rank[b]) + above(rank[b] + 1)) / 2;
    const start = [xa, rows.centre[rank[a]] - height[a] / 2, xa, outY, beside, outY];
    points.set([...start, beside, inY, xb, inY, xb, rows.centre[rank[b]] + height[b] / 2], used);
    used += 12;
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

/** How far from the middle of a box lines may end. */
const reach = (width: number) => Math.max(0, width / 2 - CORNER);

/** Where on a box's border a line towards `other` ends: straight above or below it if the box is wide enough. */
function port(centre: number, width: number, other: number): number {
  return Math.min(Math.max(other, centre - reach(width)), centre + reach(width));
}

/** Common x of two boxes in neighbouring rows that overlap, so that their line is vertical; else their ends. */
function meet(x1: number, w1: number, x2: number, w2: number): number {
  const left = Math.max(x1 - reach(w1), x2 - reach(w2));
  const right = Math.min(x1 + reach(w1), x2 + reach(w2));
  if (left > right) return Number.NaN;
  // As near to the centre of the narrower box as possible.
  const centre = w1 < w2 ? x1 : x2;
  return Math.min(right, Math.max(left, centre));
}

/** Appends a point; one that only prolongs the last vertical piece moves its end. */
function add(points: Float32Array, from: number, at: number, x: number, y: number): number {
  const x32 = Math.fround(x);
  if (at > from && points[at - 2] === x32 && points[at - 1] === Math.fround(y)) return at;
  if (at - from >= 4 && points[at - 2] === x32 && points[at - 4] === x32) {
    points[at - 1] = y;
    return at;
  }
  points[at] = x;
  points[at + 1] = y;
  return at + 2;
}

function rightOfAll(input: LayoutInput, layered: Layered, x: Float64Array): number {
  let right = Number.NEGATIVE_INFINITY;
  for (let v = 0; v < layered.items; v++) {
    const half = layered.box[v] >= 0 ? input.width[layered.box[v]] / 2 : 1;
    if (x[v] + half > right) right = x[v] + half;
  }
  return right;
}

/** Channels for the edges without dummies: each takes the leftmost one that is free over its rows. */
function assignChannels(
  graph: Directed,
  layered: Layered,
  rank: Int32Array,
  right: number,
  nodesep: number,
): Float64Array {
  const x = doubles(graph.m);
  const long: number[] = [];
  for (let e = 0; e < graph.m; e++) if (graph.lower[e] >= 0 && layered.dummyStart[e] < 0) long.push(e);
  long.sort((a, b) => rank[graph.upper[a]] - rank[graph.upper[b]] || a - b);
  const freeFrom: number[] = [];
  const taken = new Map<number, number>();
  for (const e of long) {
    // Edges to one box share its channel.
    let c = taken.get(graph.upper[e]) ?? -1;
    if (c < 0) {
      c = freeFrom.findIndex((row) => row < rank[graph.upper[e]]);
      if (c < 0) c = freeFrom.length;
      taken.set(graph.upper[e], c);
    }
    freeFrom[c] = Math.max(freeFrom[c] ?? 0, rank[graph.lower[e]]);
    x[e] = right + nodesep + (c * nodesep) / 2;
  }
  return x;
}
