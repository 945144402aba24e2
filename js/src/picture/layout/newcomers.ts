/**
 * With earlier places: where in its row a new box stands. It takes the gap between old boxes that is nearest to what
 * it is linked with among those wide enough, so that nothing old has to give way; the ends of a row always are.
 * Dummies stay between the old boxes where the sweeps put them, as many as there is room for; the others do the same.
 */

import type { Slices } from "../slices.ts";
import { DUMMY_WIDTH } from "./coordinates.ts";
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";

/** A pixel of pushing old items aside counts as much as this many of distance: never, as there is room at the ends. */
const PUSH = 1e6;
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
    const old: number[] = [];
    const fresh: number[] = [];
    const dummies: number[][] = [[]];
    for (const v of row) {
      if (!Number.isNaN(previous[v])) {
        old.push(v);
        dummies.push([]);
      } else if (layered.box[v] >= 0) fresh.push(v);
      else dummies[old.length].push(v);
    }
    if (!old.length) continue;
    seatInRow(row, old, fresh, dummies, wish, previous, itemWidth, nodesep);
    for (let i = 0; i < row.length; i++) order.position[row[i]] = i;
  }
}

/** `old` from left to right, `dummies[g]` those left of `old[g]`. */
function seatInRow(
  row: Int32Array,
  old: number[],
  fresh: number[],
  dummies: number[][],
  wish: Float64Array,
  previous: Float64Array,
  itemWidth: Float64Array,
  nodesep: number,
): void {
  // Gap g lies left of old item g; the last one right of all.
  const left = old.map((_, g) =>
    g ? previous[old[g - 1]] + itemWidth[old[g - 1]] / 2 + nodesep : Number.NEGATIVE_INFINITY,
  );
  const right = old.map((v) => previous[v] - itemWidth[v] / 2 - nodesep);
  left.push(previous[old[old.length - 1]] + itemWidth[old[old.length - 1]] / 2 + nodesep);
  right.push(Number.POSITIVE_INFINITY);
  const seated = dummies.map((list, g) => {
    const room = right[g] - left[g] - DUMMY_WIDTH;
    const fitting = list.slice(0, Math.max(0, 1 + Math.floor(room / nodesep)));
    fresh.push(...list.slice(fitting.length));
    return fitting;
  });
  if (!fresh.length) return;
  const used = seated.map((list) => list.length * nodesep);
  for (const v of fresh) {
    const half = itemWidth[v] / 2;
    let best = 0;
    let bestCost = Number.POSITIVE_INFINITY;
    for (let g = 0; g < left.length; g++) {
      const lack = Math.max(0, used[g] + 2 * half - (right[g] - left[g]));
      const x = Math.min(Math.max(wish[v], left[g] + half), right[g] - half);
      // At the ends every seated one pushes the next further out.
      const out = g === 0 || g === left.length - 1 ? used[g] : 0;
      const cost = Math.abs(x - wish[v]) + out + PUSH * lack;
      if (!(cost < bestCost)) continue;
      best = g;
      bestCost = cost;
    }
    seated[best].push(v);
    used[best] += 2 * half + nodesep;
  }
  let at = 0;
  for (let g = 0; g < seated.length; g++) {
    if (seated[g].some((v) => !dummies[g].includes(v))) seated[g].sort((a, b) => wish[a] - wish[b]);
    for (const v of seated[g]) row[at++] = v;
    if (g < old.length) row[at++] = old[g];
  }
}

/** Earlier x of old items; for new ones the mean of what they are linked with, passed on down and up. */
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
  // What is linked with nothing old goes to the right of everything.
  let right = 0;
  for (let v = 0; v < items; v++) if (wish[v] > right) right = wish[v];
  for (let v = 0; v < items; v++) if (Number.isNaN(wish[v])) wish[v] = right;
  return wish;
}
