/** The last touch to a fresh layout: what stands alone in its rows moves over the middle of what stands around it. */

import { ints } from "../arrays.ts";
import { collect, type LayoutOutput, type Rows, rowOf } from "../layout/types.ts";
import type { Slices } from "../slices.ts";
import { sides } from "./context.ts";

/**
 * Centres runs of rows with a single box: a shared trunk over its branches, a flag under them. Changes `placed`.
 * Routes need no care: only wires between neighbouring rows end at such a box, and those are drawn from box to box.
 */
export function* settle(pairs: Int32Array, { x, rank }: LayoutOutput): Slices<void> {
  const [from, to] = sides(pairs);
  yield;
  const alone = loneBoxes(from, to, rank);
  yield;
  const below = collect(rank.length, to, from);
  yield;
  const above = collect(rank.length, from, to);
  yield;
  for (let first = 0; first < alone.length; first++) {
    let end = first;
    while (alone[end]! >= 0) end++;
    if (end === first) continue;
    const run = alone.subarray(first, end);
    const bottom = run.at(-1)!;
    const under = middle(below, x, bottom, run);
    const over = middle(above, x, run[0]!, run);
    const by = Number.isNaN(under)
      ? over - x[run[0]!]!
      : (Number.isNaN(over) ? under : (under + over) / 2) - x[bottom]!;
    if (by) for (const box of run) x[box]! += by;
    first = end;
  }
}

/** By row: the only box in it, if no wire passes through the row; else a negative number. */
function loneBoxes(from: Int32Array, to: Int32Array, rank: Int32Array): Int32Array {
  let rows = 0;
  for (const row of rank) rows = Math.max(rows, row + 1);
  const alone = ints(rows).fill(-1);
  rank.forEach((row, box) => {
    alone[row] = alone[row] === -1 ? box : -2;
  });
  // How many wires begin to pass in each row, less those that end.
  const passing = ints(rows + 1);
  for (let e = 0; e < from.length; e++) {
    const [top, bottom] = [rank[to[e]!]! + 1, rank[from[e]!]!];
    if (top >= bottom) continue;
    passing[top]!++;
    passing[bottom]!--;
  }
  for (let row = 0, now = 0; row < rows; row++) if ((now += passing[row]!)) alone[row] = -2;
  return alone;
}

/** Middle of the boxes around one side of `box`, outside the run; NaN where there is none. */
function middle(around: Rows, x: Float32Array, box: number, run: Int32Array): number {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const other of rowOf(around, box)) {
    if (run.includes(other)) continue;
    least = Math.min(least, x[other]!);
    most = Math.max(most, x[other]!);
  }
  return least <= most ? (least + most) / 2 : Number.NaN;
}
