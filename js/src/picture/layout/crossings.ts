/** Crossings between two neighbouring rows: inversions among the ends of their links. */
import { ints } from "../arrays.ts";
import type { Layered } from "./layers.ts";
import type { Rows } from "./types.ts";

/**
 * The current order of every row: `item[start[r] + i]` is the i-th item of row r; `position` is the inverse within the
 * row. `known`: number of crossings below each row, -1 where it has to be counted again. It is kept because most rows
 * have no crossings and do not change.
 */
export interface Order {
  item: Int32Array;
  position: Int32Array;
  known: Int32Array;
}

let ends = ints(256);
let tree = ints(256);

/** Number of crossings between row r and row r + 1; counted only where it is not known. */
export function crossingsBelow(layered: Layered, order: Order, r: number): number {
  if (order.known[r] < 0) order.known[r] = countBelow(layered, order, r);
  return order.known[r];
}

function countBelow({ start, down }: Layered, order: Order, r: number): number {
  const first = start[r];
  const last = start[r + 1];
  const width = start[r + 2] - last;
  if (width < 2 || last - first < 2) return 0;
  // The items of a row have consecutive numbers.
  const links = down.start[last] - down.start[first];
  if (links > ends.length) ends = ints(2 * links);
  let count = 0;
  for (let i = first; i < last; i++) {
    const v = order.item[i];
    const from = count;
    for (let k = down.start[v]; k < down.start[v + 1]; k++) {
      // Links of one item do not cross: keep them sorted.
      const p = order.position[down.item[k]];
      let j = count++ - 1;
      while (j >= from && ends[j] > p) {
        ends[j + 1] = ends[j];
        j--;
      }
      ends[j + 1] = p;
    }
  }
  return inversions(links, width);
}

/** Sum over all links of the earlier links that end further right, by a Fenwick tree over the lower row's positions. */
function inversions(count: number, width: number): number {
  if (tree.length < width + 2) tree = ints(2 * width + 2);
  tree.fill(0, 0, width + 2);
  let total = 0;
  for (let i = 0; i < count; i++) {
    const p = ends[i] + 1;
    total += i;
    for (let j = p; j > 0; j -= j & -j) total -= tree[j];
    for (let j = p; j <= width; j += j & -j) tree[j]++;
  }
  return total;
}

/** Number of pairs of links of v and w that cross with v left of w, minus the number that cross with w left of v. */
export function pairGain(links: Rows, position: Int32Array, v: number, w: number): number {
  const endV = links.start[v + 1];
  const endW = links.start[w + 1];
  // Hubs are left to the barycentre: comparing their links in pairs would take quadratic time.
  if ((endV - links.start[v]) * (endW - links.start[w]) > 256) return 0;
  let gain = 0;
  for (let i = links.start[v]; i < endV; i++) {
    const p = position[links.item[i]];
    for (let k = links.start[w]; k < endW; k++) {
      const q = position[links.item[k]];
      if (p > q) gain++;
      else if (p < q) gain--;
    }
  }
  return gain;
}
