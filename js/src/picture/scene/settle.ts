/** The last touch to a fresh layout: what stands alone in its rows moves over the middle of what stands around it. */

import type { LayoutOutput } from "../layout/index.ts";
import type { Edge } from "./wires.ts";

const done = new WeakSet<LayoutOutput>();

/**
 * Centres runs of rows with a single box: a shared trunk over its branches, a flag under them. Changes `placed`, once.
 * Routes need no care: only wires between neighbouring rows end at such a box, and those are drawn from box to box.
 */
export function settle(edges: readonly Edge[], placed: LayoutOutput): void {
  if (done.has(placed)) return;
  done.add(placed);
  const { x, rank } = placed;
  const alone = loneBoxes(edges, rank);
  const ends = { from: endsOf(edges, "from"), to: endsOf(edges, "to") };
  for (let first = 0; first < alone.length; first++) {
    if (alone[first]! < 0) continue;
    let last = first;
    while (last + 1 < alone.length && alone[last + 1]! >= 0) last++;
    const run = alone.slice(first, last + 1);
    const over = middle(ends.to, x, run[run.length - 1]!, run);
    const under = middle(ends.from, x, run[0]!, run);
    if (!Number.isNaN(over))
      shift(x, run, (Number.isNaN(under) ? over : (over + under) / 2) - x[run[run.length - 1]!]!);
    else if (!Number.isNaN(under)) shift(x, run, under - x[run[0]!]!);
    first = last;
  }
}

function shift(x: Float32Array, run: readonly number[], by: number): void {
  for (const box of run) x[box]! += by;
}

/** By row: the only box in it, if no wire passes through the row; else -1. */
function loneBoxes(edges: readonly Edge[], rank: Int32Array): number[] {
  const alone: number[] = [];
  rank.forEach((row, box) => {
    alone[row] = alone[row] === undefined ? box : -1;
  });
  for (const { from, to } of edges) for (let row = rank[to]! + 1; row < rank[from]!; row++) alone[row] = -1;
  return alone;
}

/** By box: the boxes at the other ends of its wires at one side. */
function endsOf(edges: readonly Edge[], side: "from" | "to"): Map<number, number[]> {
  const ends = new Map<number, number[]>();
  for (const edge of edges) {
    const list = ends.get(edge[side]);
    const other = side === "to" ? edge.from : edge.to;
    if (list) list.push(other);
    else ends.set(edge[side], [other]);
  }
  return ends;
}

/** Middle of the boxes around one side of `box`, outside the run; NaN where there is none. */
function middle(ends: ReadonlyMap<number, number[]>, x: Float32Array, box: number, run: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const other of ends.get(box) ?? []) {
    if (run.includes(other)) continue;
    least = Math.min(least, x[other]!);
    most = Math.max(most, x[other]!);
  }
  return least <= most ? (least + most) / 2 : Number.NaN;
}
