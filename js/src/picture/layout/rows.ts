/** y of every row. Rows of an earlier layout keep their y as long as there is room between them. */
import { doubles } from "../arrays.ts";
import type { Wider } from "./gaps.ts";
import { ENOUGH } from "./types.ts";

export interface RowPlaces {
  /** Centre and half height of each row, in px. */
  centre: Float64Array;
  half: Float64Array;
}

/** `wider`: null: all gaps are `ranksep`. */
export function placeRows(
  rows: number,
  rank: Int32Array,
  height: Float32Array,
  ranksep: number,
  previous: Float32Array | null,
  wider: Wider | null = null,
): RowPlaces {
  const half = doubles(rows);
  for (let v = 0; v < rank.length; v++) half[rank[v]] = Math.max(half[rank[v]], height[v] / 2);
  const anchor = doubles(rows).fill(Number.NaN);
  if (previous)
    for (let v = rank.length - 1; v >= 0; v--) if (!Number.isNaN(previous[v])) anchor[rank[v]] = previous[v];
  const centre = doubles(rows);
  const first = Math.max(0, anchor.findIndex(Number.isFinite));
  centre[first] = Number.isNaN(anchor[first]) ? half[0] : anchor[first];
  for (let r = first + 1; r < rows; r++) {
    const touching = centre[r - 1] + half[r - 1] + half[r];
    const usual = touching + ranksep + (wider?.wish[r] ?? 0);
    const least = touching + ENOUGH * ranksep + (wider?.least[r] ?? 0);
    centre[r] = Number.isNaN(anchor[r]) ? usual : Math.max(anchor[r], least);
  }
  for (let r = first - 1; r >= 0; r--)
    centre[r] = centre[r + 1] - half[r + 1] - ranksep - (wider?.wish[r + 1] ?? 0) - half[r];
  return { centre, half };
}
