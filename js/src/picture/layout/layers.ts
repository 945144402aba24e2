/**
 * Third phase: edges over several rows get a dummy in each row between, so that afterwards every edge joins
 * neighbouring rows. Items (boxes and dummies) are numbered row by row: row r holds items start[r] to start[r + 1].
 *
 * Dummies are bounded: the longest edges are left to the outer channels (`route.ts`) where there would be too many.
 */

import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import { collect, type Rows, rowsOf } from "./types.ts";

export interface Layered {
  rows: number;
  items: number;
  start: Int32Array;
  /** Box of an item, -1 for a dummy; item of a box. */
  box: Int32Array;
  itemOf: Int32Array;
  row: Int32Array;
  /** Linked items of each item in the row above, and in the row below. */
  up: Rows;
  down: Rows;
  /**
   * `dummyStart[e]`: index in `dummy` of the topmost dummy of edge e; the other ones follow from top to bottom,
   * `span - 1` in all. -1: the edge uses an outer channel.
   */
  dummyStart: Int32Array;
  dummy: Int32Array;
}

export const DUMMY_WIDTH = 2;
/** Edges that need fewer dummies always get them. */
const SHORT = 4;

/** Largest number of dummies for a graph with n boxes and m edges. */
export function dummyBudget(n: number, m: number): number {
  return Math.max(20000, 3 * (n + m));
}

export function* makeLayers(
  graph: Directed,
  rank: Int32Array,
  budget = dummyBudget(graph.n, graph.m),
): Slices<Layered> {
  const { n, m, lower, upper } = graph;
  const [dummyStart, dummy] = planDummies(graph, rank, budget);
  yield;
  const rows = rowsOf(rank);
  const start = ints(rows + 1);
  for (let v = 0; v < n; v++) start[rank[v] + 1]++;
  for (let d = 0; d < dummy.length; d++) start[dummy[d] + 1]++;
  for (let r = 0; r < rows; r++) start[r + 1] += start[r];
  const items = n + dummy.length;

  const next = start.slice(0, rows);
  const box = ints(items).fill(-1);
  const row = ints(items);
  for (let r = 0; r < rows; r++) for (let i = start[r]; i < start[r + 1]; i++) row[i] = r;
  const itemOf = ints(n);
  for (let i = 0; i < n; i++) {
    const v = graph.order[i];
    const item = next[rank[v]]++;
    itemOf[v] = item;
    box[item] = v;
  }
  // `dummy` held the rows of the dummies; from here on it holds their items.
  for (let d = 0; d < dummy.length; d++) dummy[d] = next[dummy[d]]++;
  yield;
  const above = ints(m + dummy.length);
  const below = ints(m + dummy.length);
  let link = 0;
  for (let e = 0; e < m; e++) {
    if (dummyStart[e] < 0) continue;
    const end = dummyStart[e] + rank[lower[e]] - rank[upper[e]] - 1;
    let last = itemOf[upper[e]];
    for (let d = dummyStart[e]; d <= end; d++) {
      above[link] = last;
      last = below[link++] = d < end ? dummy[d] : itemOf[lower[e]];
    }
  }
  yield;
  const up = collect(items, below.subarray(0, link), above);
  yield;
  const down = collect(items, above.subarray(0, link), below);
  return { rows, items, start, box, itemOf, row, up, down, dummyStart, dummy };
}

/** Index of the first dummy of each edge, -1: none granted; and the row of each dummy. */
function planDummies({ m, lower, upper }: Directed, rank: Int32Array, budget: number): [Int32Array, Int32Array] {
  /** At first the number of dummies that each edge needs. */
  const dummyStart = ints(m).fill(-1);
  /** `edges[k]`: number of edges that need k dummies. */
  const edges = ints(rowsOf(rank));
  let total = 0;
  for (let e = 0; e < m; e++) {
    if (lower[e] < 0) continue;
    const count = rank[lower[e]] - rank[upper[e]] - 1;
    dummyStart[e] = count;
    edges[count]++;
    total += count;
  }
  // Too many dummies would stand side by side in every row: then only a tenth of the budget is granted.
  let rest = total > budget ? budget / 10 : total;
  let most = 0;
  let granted = 0;
  for (; most < edges.length; most++) {
    rest -= most * edges[most];
    if (rest < 0 && most >= SHORT) break;
    granted += most * edges[most];
  }
  const row = ints(granted);
  let filled = 0;
  for (let e = 0; e < m; e++) {
    const count = dummyStart[e];
    dummyStart[e] = -1;
    if (count < 0 || count >= most) continue;
    dummyStart[e] = filled;
    for (let k = 1; k <= count; k++) row[filled++] = rank[upper[e]] + k;
  }
  return [dummyStart, row];
}
