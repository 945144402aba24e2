/**
 * Sixth phase: polylines. A route runs straight up through a row and slants only between rows, where there are no
 * boxes; so it never passes through one. An edge without dummies takes a channel of its own right of everything.
 */
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import type { Layered } from "./layers.ts";
import type { RowPlaces } from "./rows.ts";
import type { LayoutInput } from "./types.ts";

const CORNER = 8;

export interface Routes {
  start: Int32Array;
  points: Float32Array;
  /** Rightmost x of a channel, -Infinity without any. */
  right: number;
}

export function* routeEdges(
  input: LayoutInput,
  graph: Directed,
  layered: Layered,
  rank: Int32Array,
  x: Float64Array,
  rows: RowPlaces,
): Slices<Routes> {
  const { m, lower, upper, flipped } = graph;
  yield;
  const channel = assignChannels(graph, layered, rank, rightOfAll(input, layered, x), input.nodesep);
  const start = new Int32Array(m + 1);
  for (let e = 0; e < m; e++) {
    let points = 0;
    if (lower[e] >= 0) points = layered.dummyStart[e] < 0 ? 6 : 4 + 2 * (rank[lower[e]] - rank[upper[e]] - 1);
    start[e + 1] = start[e] + 2 * points;
  }
  yield;
  const points = new Float32Array(start[m]);
  let used = 0;
  const begin = new Int32Array(m + 1);
  for (let e = 0; e < m; e++) {
    begin[e] = used;
    if (lower[e] < 0) continue;
    const end =
      layered.dummyStart[e] < 0
        ? channelRoute(input, graph, rank, layered, x, rows, channel.x[e], e, points, used)
        : rowRoute(input, graph, rank, layered, x, rows, e, points, used);
    if (flipped[e]) reverse(points, used, end);
    used = end;
    if (e % 4096 === 0) yield;
  }
  begin[m] = used;
  return { start: begin, points: points.subarray(0, used), right: channel.right };
}

/** Where on a box's border a line towards `other` ends: straight above or below it if the box is wide enough. */
function port(centre: number, width: number, other: number): number {
  const reach = Math.max(0, width / 2 - CORNER);
  return Math.min(Math.max(other, centre - reach), centre + reach);
}

/** Common x of two boxes in neighbouring rows that overlap, so that their line is vertical; else their ends. */
function meet(x1: number, w1: number, x2: number, w2: number): number {
  const left = Math.max(x1 - Math.max(0, w1 / 2 - CORNER), x2 - Math.max(0, w2 / 2 - CORNER));
  const right = Math.min(x1 + Math.max(0, w1 / 2 - CORNER), x2 + Math.max(0, w2 / 2 - CORNER));
  if (left > right) return Number.NaN;
  // As near to the centre of the narrower box as possible.
  const centre = w1 < w2 ? x1 : x2;
  return Math.min(right, Math.max(left, centre));
}

/** From the top of the lower box up to the bottom of the upper one. Points in a straight line are left out. */
function rowRoute(
  input: LayoutInput,
  graph: Directed,
  rank: Int32Array,
  layered: Layered,
  x: Float64Array,
  rows: RowPlaces,
  e: number,
  points: Float32Array,
  from: number,
): number {
  const a = graph.lower[e];
  const b = graph.upper[e];
  const between = rank[a] - rank[b] - 1;
  const first = layered.dummyStart[e];
  const xa = x[layered.itemOf[a]];
  const xb = x[layered.itemOf[b]];
  let out: number;
  let into: number;
  if (between === 0) {
    const common = meet(xa, input.width[a], xb, input.width[b]);
    out = !Number.isNaN(common) ? common : port(xa, input.width[a], xb);
    into = !Number.isNaN(common) ? common : port(xb, input.width[b], xa);
  } else {
    out = port(xa, input.width[a], x[layered.dummy[first + between - 1]]);
    into = port(xb, input.width[b], x[layered.dummy[first]]);
  }
  let at = from;
  let r = rank[a];
  points[at++] = out;
  points[at++] = rows.centre[r] - input.height[a] / 2;
  at = add(points, from, at, out, rows.centre[r] - rows.half[r]);
  for (let k = between - 1; k >= 0; k--) {
    const xd = x[layered.dummy[first + k]];
    r = rank[b] + 1 + k;
    at = add(points, from, at, xd, rows.centre[r] + rows.half[r]);
    at = add(points, from, at, xd, rows.centre[r] - rows.half[r]);
  }
  r = rank[b];
  at = add(points, from, at, into, rows.centre[r] + rows.half[r]);
  return add(points, from, at, into, rows.centre[r] + input.height[b] / 2);
}

/** Appends a point; one that only prolongs the last vertical piece moves its end. */
function add(points: Float32Array, from: number, at: number, x: number, y: number): number {
  const x32 = Math.fround(x);
  if (points[at - 2] === x32 && points[at - 1] === Math.fround(y)) return at;
  if (at - from >= 4 && points[at - 2] === x32 && points[at - 4] === x32) {
    points[at - 1] = y;
    return at;
  }
  points[at] = x;
  points[at + 1] = y;
  return at + 2;
}

function reverse(points: Float32Array, from: number, end: number): void {
  for (let i = from, j = end - 2; i < j; i += 2, j -= 2) {
    const px = points[i];
    const py = points[i + 1];
    points[i] = points[j];
    points[i + 1] = points[j + 1];
    points[j] = px;
    points[j + 1] = py;
  }
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
): { x: Float64Array; right: number } {
  const x = new Float64Array(graph.m);
  const long: number[] = [];
  for (let e = 0; e < graph.m; e++) if (graph.lower[e] >= 0 && layered.dummyStart[e] < 0) long.push(e);
  if (!long.length) return { x, right: Number.NEGATIVE_INFINITY };
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
  return { x, right: right + nodesep + (freeFrom.length * nodesep) / 2 };
}

function channelRoute(
  input: LayoutInput,
  graph: Directed,
  rank: Int32Array,
  layered: Layered,
  x: Float64Array,
  rows: RowPlaces,
  channel: number,
  e: number,
  points: Float32Array,
  from: number,
): number {
  const a = graph.lower[e];
  const b = graph.upper[e];
  const ra = rank[a];
  const rb = rank[b];
  const xa = port(x[layered.itemOf[a]], input.width[a], channel);
  const xb = port(x[layered.itemOf[b]], input.width[b], channel);
  // Horizontal pieces run in the middle between two rows.
  const outY = (rows.centre[ra] - rows.half[ra] + rows.centre[ra - 1] + rows.half[ra - 1]) / 2;
  const inY = (rows.centre[rb] + rows.half[rb] + rows.centre[rb + 1] - rows.half[rb + 1]) / 2;
  const route = [
    [xa, rows.centre[ra] - input.height[a] / 2],
    [xa, outY],
    [channel, outY],
    [channel, inY],
    [xb, inY],
    [xb, rows.centre[rb] + input.height[b] / 2],
  ];
  let at = from;
  for (const [px, py] of route) {
    points[at++] = px;
    points[at++] = py;
  }
  return at;
}
