/**
 * Position of new boxes in rows that have boxes from an earlier layout. A new box takes a gap between old boxes that
 * is wide enough, so that no old box has to move; among these the gap nearest to its neighbours in the graph. The ends
 * of a row always have room. Dummies stay between the old boxes where the sweeps put them while there is room; the
 * rest of them choose a gap as new boxes do.
 */

import type { Slices } from "../../slices.ts";
import type { Order } from "../crossings.ts";
import { DUMMY_WIDTH, type Layered } from "../layers.ts";

const SLICE = 32768;

export function* seatNewcomers(
  layered: Layered,
  order: Order,
  previous: Float64Array,
  itemWidth: Float64Array,
  nodesep: number,
): Slices<void> {
  const wish = yield* wishedPlaces(layered, order, previous);
  for (let r = 0, work = 0; r < layered.rows; r++) {
    work += layered.start[r + 1] - layered.start[r];
    if (work > SLICE) {
      work = 0;
      yield;
    }
    const row = order.item.subarray(layered.start[r], layered.start[r + 1]);
    const fresh: number[] = [];
    let gap = gapFrom(Number.NEGATIVE_INFINITY);
    const gaps = [gap];
    for (const v of row) {
      if (Number.isNaN(previous[v])) (layered.box[v] < 0 ? gap.items : fresh).push(v);
      else {
        const reach = itemWidth[v] / 2 + nodesep;
        gap.right = previous[v] - reach;
        gap.end = [v];
        gap = gapFrom(previous[v] + reach);
        gaps.push(gap);
      }
    }
    if (gaps.length < 2) continue;
    for (const each of gaps) {
      const room = each.right - each.left;
      fresh.push(...each.items.splice(Math.max(0, 1 + Math.floor((room - DUMMY_WIDTH) / nodesep))));
      each.room = room - each.items.length * nodesep;
    }
    for (const v of fresh) seat(gaps, wish[v], itemWidth[v], nodesep).push(v);
    row.set(
      gaps.flatMap(({ items, mixed, end }) => (mixed ? items.sort((a, b) => wish[a] - wish[b]) : items).concat(end)),
    );
    for (let i = 0; i < row.length; i++) order.position[row[i]] = i;
  }
}

/** A gap between two old items, with the items in it; `end`: the old item at its right. */
const gapFrom = (left: number) => ({
  left,
  right: Number.POSITIVE_INFINITY,
  room: 0,
  items: [] as number[],
  /** At an end of the row: distance of the next item's place from the last old item, in px. */
  out: 0,
  mixed: false,
  end: [] as number[],
});

/** Reserves room in the gap nearest to `wish` that is wide enough, and returns the items of that gap. */
function seat(gaps: ReturnType<typeof gapFrom>[], wish: number, width: number, nodesep: number): number[] {
  let best = gaps[0];
  let least = Number.POSITIVE_INFINITY;
  for (const gap of gaps) {
    if (gap.room < width) continue;
    const far = Math.max(gap.left + width / 2 - wish, wish - gap.right + width / 2, 0) + gap.out;
    if (far >= least) continue;
    best = gap;
    least = far;
  }
  best.room -= width + nodesep;
  if (best.room === Number.POSITIVE_INFINITY) best.out += width + nodesep;
  best.mixed = true;
  return best.items;
}

/** x of old items as before; for new items the mean x of their neighbours, propagated down and up twice. */
function* wishedPlaces(layered: Layered, order: Order, previous: Float64Array): Slices<Float64Array> {
  const { items, up, down } = layered;
  const wish = previous.slice();
  for (let pass = 0; pass < 4; pass++) {
    for (let i = 0; i < items; i++) {
      if (i % SLICE === SLICE - 1) yield;
      const v = order.item[pass % 2 ? items - 1 - i : i];
      if (!Number.isNaN(previous[v])) continue;
      let sum = 0;
      let known = 0;
      for (const links of [up, down]) {
        for (let k = links.start[v]; k < links.start[v + 1]; k++) {
          if (Number.isNaN(wish[links.item[k]])) continue;
          sum += wish[links.item[k]];
          known++;
        }
      }
      if (known) wish[v] = sum / known;
    }
  }
  // Items without a path to an old item go to the right of everything.
  let right = 0;
  for (let v = 0; v < items; v++) if (wish[v] > right) right = wish[v];
  for (let v = 0; v < items; v++) if (Number.isNaN(wish[v])) wish[v] = right;
  return wish;
}
