/**
 * Second phase: rows. Counted from the inputs, so that a box appended at the loss end never pushes an old one.
 * Then boxes with slack move down to their users where that shortens edges: a parameter stands just above its use.
 */

import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import type { LayoutInput } from "./types.ts";

export function* rankBoxes(graph: Directed, input: LayoutInput): Slices<Int32Array> {
  const rank = ints(graph.n);
  const kept = input.previous ? yield* previousRanks(input.previous.y, graph.n) : null;
  if (kept) for (let v = 0; v < graph.n; v++) if (kept[v] >= 0) rank[v] = kept[v];
  longestPath(graph, rank);
  yield;
  sinkToUsers(graph, rank, kept);
  yield;
  closeUp(rank);
  return rank;
}

/** Rows of an earlier layout, read off its distinct heights; -1 for new boxes. */
export function* previousRanks(y: Float32Array, n: number): Slices<Int32Array> {
  const heights = y.subarray(0, n).filter((value) => !Number.isNaN(value));
  heights.sort();
  yield;
  // Heights within a pixel of the next are one row: what is kept of each is the smallest.
  let rows = 0;
  for (let i = 0; i < heights.length; i++) if (i === 0 || heights[i] - heights[i - 1] > 1) heights[rows++] = heights[i];
  const rank = ints(n).fill(-1);
  for (let v = 0; v < n; v++) {
    if (Number.isNaN(y[v])) continue;
    let low = 0;
    let high = rows - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (heights[middle] <= y[v]) low = middle;
      else high = middle - 1;
    }
    rank[v] = low;
  }
  yield;
  return rank;
}

/** Raises `rank` to the longest path from the inputs; what is there already is a lower bound. */
export function longestPath(graph: Directed, rank: Int32Array): void {
  const { order, users } = graph;
  for (let i = 0; i < order.length; i++) {
    const v = order[i];
    const below = rank[v] + 1;
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      if (rank[users.item[k]] < below) rank[users.item[k]] = below;
    }
  }
}

/**
 * Moves boxes down to their nearest user, losses first, where no more edges get longer than shorter. What hangs on a
 * box by its only user (a parameter and its preparation, a whole branch from inputs) comes along and counts nothing.
 */
export function sinkToUsers(graph: Directed, rank: Int32Array, kept: Int32Array | null): void {
  const { order, users } = graph;
  const anchors = countAnchors(graph);
  for (let i = order.length - 1; i >= 0; i--) {
    const v = order[i];
    const first = users.start[v];
    const end = users.start[v + 1];
    if (first === end || end - first < anchors[v] || (kept && kept[v] >= 0)) continue;
    let lowest = rank[users.item[first]];
    for (let k = first + 1; k < end; k++) if (rank[users.item[k]] < lowest) lowest = rank[users.item[k]];
    rank[v] = lowest - 1;
  }
}

/** Targets of each box that do not merely hang on it. */
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

/** Removes rows that nobody stands in. */
function closeUp(rank: Int32Array): void {
  let rows = 0;
  for (let v = 0; v < rank.length; v++) if (rank[v] >= rows) rows = rank[v] + 1;
  const used = ints(rows);
  for (let v = 0; v < rank.length; v++) used[rank[v]] = 1;
  let next = 0;
  for (let r = 0; r < rows; r++) used[r] = used[r] ? next++ : -1;
  if (next < rows) for (let v = 0; v < rank.length; v++) rank[v] = used[rank[v]];
}
