/**
 * Second phase: rows. They are counted from the inputs, so that a box appended at the loss end never pushes an old one.
 * A box that is too high for a row of old boxes takes the next row with room.
 * Then boxes with slack move down to their users where that shortens edges: a parameter stands just above its use.
 * In small pictures edges become as short as possible: a branch of many boxes moves as one.
 */

import { bytes, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import { tighten } from "./tighten.ts";
import { ENOUGH, type LayoutInput, rowOf, rowsOf } from "./types.ts";

/** The first row that a box may stand in, from the given one on. */
type RowFor = (v: number, row: number) => number;

/** Up to this many boxes, a first layout has the smallest possible sum of edge lengths. */
const FEW = 600;
/** Number of rows of old boxes that are tried before a new box goes below all of them. */
const TRIES = 64;

/**
 * Row of every box, from 0 at the inputs. `low`: of the ranks with the smallest sum of edge lengths, boxes with slack
 * take the lowest instead of the highest.
 */
export function* rankBoxes(graph: Directed, input: LayoutInput, low = false): Slices<Int32Array> {
  const rank = ints(graph.n);
  const kept = input.previous ? rowsAt(input.previous.y) : null;
  if (kept) for (let v = 0; v < graph.n; v++) if (kept[v] >= 0) rank[v] = kept[v];
  const rowFor = kept ? rowsForNew(graph, input, kept) : (_: number, row: number) => row;
  yield;
  longestPath(graph, rank, rowFor);
  yield;
  sinkToUsers(graph, rank, kept, rowFor, low);
  yield;
  if (low || (!kept && graph.n <= FEW)) {
    // Every edge is both: a gap of at least one row, and a link to shorten.
    const { m, upper, lower } = graph;
    const ties = { from: [...upper, ...upper], to: [...lower, ...lower], gaps: m, weigh: () => 1 };
    const row = Float64Array.from(rank);
    yield* tighten(ties, () => 1, row);
    return rowsAt(row);
  }
  closeUp(rank);
  return rank;
}

/** Row numbers from the y of boxes: the distinct values, counted from the smallest; -1 for NaN. */
export function rowsAt(y: Float32Array | Float64Array): Int32Array {
  const heights = Float64Array.from(new Set(y)).sort();
  const rows = new Map(Array.from(heights, (height, row) => [height, row]));
  rows.set(Number.NaN, -1);
  return ints(y.length).map((_, v) => rows.get(y[v])!);
}

/** Puts new boxes into rows with room. Old boxes, and new ones that old ones depend on, take the first possible row. */
function rowsForNew({ n, order, users }: Directed, input: LayoutInput, kept: Int32Array): RowFor {
  const free = bytes(n);
  const centre: number[] = [];
  const half: number[] = [];
  for (let i = n - 1; i >= 0; i--) {
    const v = order[i];
    const row = kept[v];
    if (row < 0) free[v] = Number(rowOf(users, v).every((user) => free[user]));
    else {
      centre[row] = input.previous!.y[v];
      half[row] = Math.max(half[row] ?? 0, input.height[v] / 2);
    }
  }
  const rows = centre.length;
  // Beyond the first and the last row this compares with NaN: nothing is near.
  const near = (row: number, own: number, other: number) =>
    Math.abs(centre[row] - centre[other]) < own + half[other] + ENOUGH * input.ranksep;
  return (v, first) => {
    if (!free[v]) return first;
    for (let row = first; row < rows; row++) {
      const own = Math.max(half[row], input.height[v] / 2);
      if (row - first === TRIES) return rows;
      if (near(row, own, row - 1) || near(row, own, row + 1)) continue;
      half[row] = own;
      return row;
    }
    return Math.max(first, rows);
  };
}

/** Raises `rank` to the longest path from the inputs, then to a row with room. The given values are lower bounds. */
export function longestPath(graph: Directed, rank: Int32Array, rowFor: RowFor): void {
  const { order, users } = graph;
  for (let i = 0; i < order.length; i++) {
    const v = order[i];
    rank[v] = rowFor(v, rank[v]);
    const below = rank[v] + 1;
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      if (rank[users.item[k]] < below) rank[users.item[k]] = below;
    }
  }
}

/**
 * Moves boxes down to their nearest user, losses first, where at least as many edges get shorter as longer. Boxes that
 * a box alone uses (a parameter and its preparation, a whole branch from inputs) follow it and do not count.
 * `all`: moves boxes even if more edges get longer.
 */
export function sinkToUsers(
  graph: Directed,
  rank: Int32Array,
  kept: Int32Array | null,
  rowFor: RowFor,
  all = false,
): void {
  const { order, users } = graph;
  const anchors = countAnchors(graph);
  for (let i = order.length - 1; i >= 0; i--) {
    const v = order[i];
    const first = users.start[v];
    const end = users.start[v + 1];
    if (first === end || (!all && end - first < anchors[v]) || (kept && kept[v] >= 0)) continue;
    let lowest = rank[users.item[first]];
    for (let k = first + 1; k < end; k++) if (rank[users.item[k]] < lowest) lowest = rank[users.item[k]];
    if (rowFor(v, lowest - 1) < lowest) rank[v] = lowest - 1;
  }
}

/** Number of targets of each box that would not simply follow it. */
function countAnchors(graph: Directed): Int32Array {
  const { n, order, users } = graph;
  const anchors = ints(n);
  for (let i = 0; i < n; i++) {
    const v = order[i];
    const first = users.start[v];
    const end = users.start[v + 1];
    if (end - first === 1 && anchors[v] === 0) continue;
    for (let k = first; k < end; k++) anchors[users.item[k]]++;
  }
  return anchors;
}

/** Removes empty rows. */
function closeUp(rank: Int32Array): void {
  const rows = rowsOf(rank);
  const used = ints(rows);
  for (let v = 0; v < rank.length; v++) used[rank[v]] = 1;
  let next = 0;
  for (let r = 0; r < rows; r++) used[r] = used[r] ? next++ : -1;
  if (next < rows) for (const [v, r] of rank.entries()) rank[v] = used[r];
}
