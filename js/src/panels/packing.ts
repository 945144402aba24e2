/** Places for bars that would cover each other. */

import { touches } from "../canvas/space.ts";
import type { Box } from "../canvas/viewport.ts";

/** Gap in px between a bar and the edge, and between two bars. */
const MARGIN = 4;
/** Weight of a move up, compared with down: the root is above. */
const UPWARDS = 3;

const clamp = (value: number, most: number) => Math.max(MARGIN, Math.min(value, most - MARGIN));

/**
 * Moves bars apart, and off the boxes in `taken`. Each bar takes its wish if it is free, else the nearest free place
 * beside other bars or some rows lower; a higher place, over its root, only if that is much nearer.
 */
export function pack(wishes: readonly Box[], taken: readonly Box[], width: number, height: number): Box[] {
  const placed = [...taken];
  return wishes.map((wish) => {
    const { w, h } = wish;
    const pitch = h + MARGIN;
    const first = { ...wish, x: clamp(wish.x, width - w), y: clamp(wish.y, height - h) };
    const columns = [first.x, ...placed.flatMap((each) => [each.x + each.w + MARGIN, each.x - w - MARGIN])];
    let best = first;
    let least = Number.POSITIVE_INFINITY;
    for (let y = first.y % pitch; y <= height - h; y += pitch)
      for (const x of columns) {
        const bar = { ...wish, x, y };
        const far = Math.abs(x - first.x) + (y < first.y ? UPWARDS * (first.y - y) : y - first.y);
        const isInside = x === clamp(x, width - w);
        if (far >= least || !isInside || placed.some((each) => touches(each, bar))) continue;
        best = bar;
        least = far;
      }
    placed.push(best);
    return best;
  });
}
