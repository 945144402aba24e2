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
  for (let first = 0; first < alone.length; first++) {
    if (alone[first]! < 0) continue;
    let last = first;
    while (last + 1 < alone.length && alone[last + 1]! >= 0) last++;
    const run = alone.slice(first, last + 1);
    const wanted = [middle(edges, x, run[run.length - 1]!, run, "to"), middle(edges, x, run[0]!, run, "from")].filter(
      (at) => !Number.isNaN(at),
    );
    if (wanted.length > 0 && run.length < alone.length) {
      const inner =
        run[wanted.length > 1 || Number.isNaN(middle(edges, x, run[0]!, run, "from")) ? run.length - 1 : 0]!;
      const move = wanted.reduce((sum, at) => sum + at, 0) / wanted.length - x[inner]!;
      for (const box of run) x[box]! += move;
    }
    first = last;
  }
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

/** Mean x of the boxes at the other ends of the wires at one side of `box`, outside the run. */
function middle(
  edges: readonly Edge[],
  x: Float32Array,
  box: number,
  run: readonly number[],
  side: "from" | "to",
): number {
  const other = side === "to" ? "from" : "to";
  const ends = edges.filter((edge) => edge[side] === box && !run.includes(edge[other])).map((edge) => x[edge[other]]!);
  return ends.length ? (Math.min(...ends) + Math.max(...ends)) / 2 : Number.NaN;
}
