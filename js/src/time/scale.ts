/** Places of events along the timeline, in px. */

import { countOf, type Stretch, weightOf } from "./stretches.ts";

/** A stretch with its place. */
export interface Placed extends Stretch {
  left: number;
  right: number;
}

/** The stretches side by side between `left` and `right`. */
export function placed(stretches: readonly Stretch[], left: number, right: number): Placed[] {
  const all = stretches.reduce((sum, each) => sum + weightOf(each), 0);
  let x = left;
  return stretches.map((each) => {
    const from = x;
    x += ((right - left) * weightOf(each)) / all;
    return { ...each, left: from, right: x };
  });
}

/** The stretch that an event is in; undefined: it is out of sight. */
export function stretchAt(stretches: readonly Placed[], at: number): Placed | undefined {
  return stretches.find(({ from, to }) => at >= from && at <= to);
}

/** x of the moment after an event; those out of sight are at the ends. */
export function placeOf(stretches: readonly Placed[], at: number): number {
  const found = stretchAt(stretches, at);
  if (!found) return at < (stretches[0]?.from ?? 0) ? (stretches[0]?.left ?? 0) : (stretches.at(-1)?.right ?? 0);
  return found.left + ((found.right - found.left) * (at - found.from + 1)) / countOf(found);
}

/** The event whose moment is nearest to x. */
export function eventAt(stretches: readonly Placed[], x: number): number {
  let best = stretches[0]?.from ?? 0;
  for (const { kind, from, to, left, right } of stretches) {
    if (kind === "gap" || x < left) continue;
    const count = to - from + 1;
    const inside = Math.round(((x - left) / (right - left)) * count);
    best = from - 1 + Math.min(count, Math.max(from === 0 ? 1 : 0, inside));
  }
  return Math.max(0, best);
}
