/** Places of an earlier picture for the boxes of a new one, so that the layout keeps what was there. */
import type { LayoutOutput } from "../layout/index.ts";
import type { Folded } from "./types.ts";

/**
 * Centres for `next` from `layout`, the layout of `old`; NaN for new boxes.
 *
 * A box keeps its place by its key. Where it has gone, the box with the same seat in the code takes it: the nodes of
 * a cell that was run again stand where the old ones stood.
 */
export function seedPositions(
  old: Folded,
  layout: Pick<LayoutOutput, "x" | "y">,
  next: Folded,
): { x: Float32Array; y: Float32Array } {
  const x = new Float32Array(next.boxes.length).fill(Number.NaN);
  const y = new Float32Array(next.boxes.length).fill(Number.NaN);
  const byKey = new Map<string, number>();
  for (let i = 0; i < old.boxes.length; i++) byKey.set(old.boxes[i].key, i);
  const place = (i: number, from: number) => {
    x[i] = layout.x[from];
    y[i] = layout.y[from];
  };
  const newcomers: number[] = [];
  for (let i = 0; i < next.boxes.length; i++) {
    const from = byKey.get(next.boxes[i].key);
    if (from === undefined) newcomers.push(i);
    else {
      place(i, from);
      byKey.delete(next.boxes[i].key);
    }
  }
  if (!newcomers.length || !byKey.size) return { x, y };
  const bySeat = new Map<string, number>();
  for (const from of byKey.values()) bySeat.set(old.boxes[from].seat, from);
  for (const i of newcomers) {
    const from = bySeat.get(next.boxes[i].seat);
    if (from === undefined) continue;
    place(i, from);
    bySeat.delete(next.boxes[i].seat);
  }
  return { x, y };
}
