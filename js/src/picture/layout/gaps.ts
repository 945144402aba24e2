/**
 * The gap above each row: as wide as the wires need that run flat in it, one over the other. A single flat wire needs
 * no more than the usual gap.
 */
import { doubles } from "../arrays.ts";
import type { Directed } from "./direct.ts";
import type { Layered } from "./layers.ts";
import { ENOUGH, type LayoutInput } from "./types.ts";

/** A piece of a wire over more than this many px to the side is flat; with several lines, over more than the second. */
const FLAT = 48;
const FLAT_LINES = 20;
/** Distance in px between two lines that run flat, and room for their ends. */
const LINE_PITCH = 6;
const ENDS = 12;
/** At most this much is added to a gap. */
const MOST = 42;

/** A flat piece: from `left` to `right`, with so many lines side by side. */
export interface Flat {
  left: number;
  right: number;
  lines: number;
}

/** The largest number of lines that run over the same place. */
export function mostLines(flats: readonly Flat[]): number {
  const ends = flats.flatMap(({ left, right, lines }) => [[left, lines] as const, [right, -lines] as const]);
  ends.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let most = 0;
  let now = 0;
  for (const [, by] of ends) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}

/** By how much the gap above each row is wider than usual: `wish`, and `least` where both rows have a place already. */
export interface Wider {
  wish: ArrayLike<number>;
  least: ArrayLike<number>;
}

/** The gaps that are wider than `ranksep`. Rows with a place move only for the lines of several roots in one wire. */
export function widerGaps(
  { ranksep, lines, foot }: LayoutInput,
  { m, lower, upper }: Directed,
  { rows, itemOf, dummy, dummyStart }: Layered,
  rank: Int32Array,
  x: Float64Array,
): Wider {
  const wish = doubles(rows);
  const least = doubles(rows);
  const flats: Flat[][] = Array.from({ length: rows }, () => []);
  for (let e = 0; e < m; e++) {
    const [a, b] = [lower[e], upper[e]];
    if (a < 0 || dummyStart[e] < 0) continue;
    const between = rank[a] - rank[b] - 1;
    const count = lines?.[e] ?? 1;
    let above = x[itemOf[b]];
    for (let k = 0; k <= between; k++) {
      const below = k < between ? x[dummy[dummyStart[e] + k]] : x[itemOf[a]];
      const wide = Math.abs(above - below);
      // Beside each other two wires need the room of their lines.
      const side = count > 1 ? count * LINE_PITCH : 0;
      const [left, right] = [Math.min(above, below) - side, Math.max(above, below) + side];
      if (wide > (count > 1 ? FLAT_LINES : FLAT)) flats[rank[b] + 1 + k].push({ left, right, lines: count });
      above = below;
    }
  }
  const free = doubles(rows).fill(foot ? 1 / 0 : 0);
  foot?.forEach((px, v) => {
    free[rank[v]] = Math.min(free[rank[v]], px);
  });
  for (let r = 1; r < rows; r++) {
    const missing = (list: readonly Flat[], gap: number) => {
      const most = mostLines(list);
      return most > 1 ? Math.min(MOST, Math.max(0, most * LINE_PITCH + ENDS - gap - free[r - 1])) : 0;
    };
    wish[r] = missing(flats[r], ranksep);
    // Rows that have a place may stand nearer to each other: then the lines miss more.
    const several = flats[r].filter(({ lines }) => lines > 1);
    least[r] = missing(several, ENOUGH * ranksep);
  }
  return { wish, least };
}
