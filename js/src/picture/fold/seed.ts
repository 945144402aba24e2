/** Places of boxes in an earlier picture, so that the next layout keeps them. */
import type { LayoutOutput } from "../layout/index.ts";
import { eachSlice, type Slices } from "../slices.ts";
import type { Folded } from "./types.ts";

/**
 * Centres for `next` from `layout`, the layout of `old`; NaN for new boxes.
 *
 * A box with the same key keeps its place. The place of a box that is gone goes to the box with the same seat in the
 * code: the nodes of a cell that ran again take the places of the old ones.
 */
export function* seedSlices(
  { boxes }: Folded,
  layout: Pick<LayoutOutput, "x" | "y">,
  { boxes: next }: Folded,
): Slices<{ x: Float32Array; y: Float32Array }> {
  const x = new Float32Array(next.length).fill(Number.NaN);
  const y = x.slice();
  /** Gives boxes without a place the place of the box in `from` that has the same key or seat. */
  function* take(from: Map<string, number>, name: "key" | "seat"): Slices<void> {
    yield* eachSlice(next.length, (i) => {
      const old = Number.isNaN(x[i]) ? from.get(next[i][name]) : undefined;
      if (old === undefined) return;
      x[i] = layout.x[old];
      y[i] = layout.y[old];
      from.delete(next[i][name]);
    });
  }
  const byKey = new Map<string, number>();
  yield* eachSlice(boxes.length, (i) => byKey.set(boxes[i].key, i));
  yield* take(byKey, "key");
  const bySeat = new Map<string, number>();
  for (const old of byKey.values()) bySeat.set(boxes[old].seat, old);
  if (bySeat.size) yield* take(bySeat, "seat");
  return { x, y };
}
