/** Places of an earlier picture for the boxes of a new one, so that the layout keeps what was there. */
import type { LayoutOutput } from "../layout/index.ts";
import { eachSlice, type Slices } from "../slices.ts";
import type { Folded } from "./types.ts";

/**
 * Centres for `next` from `layout`, the layout of `old`; NaN for new boxes.
 *
 * A box keeps its place by its key. Where it has gone, the box with the same seat in the code takes it: the nodes of
 * a cell that was run again stand where the old ones stood.
 */
export function* seedSlices(
  { boxes }: Folded,
  layout: Pick<LayoutOutput, "x" | "y">,
  { boxes: next }: Folded,
): Slices<{ x: Float32Array; y: Float32Array }> {
  const x = new Float32Array(next.length).fill(Number.NaN);
  const y = x.slice();
  /** Takes for the boxes that have no place yet what is left with the same name in `from`. */
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
