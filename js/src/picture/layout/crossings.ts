/** Crossings between two neighbouring rows: inversions among the ends of their links. */
import { ints } from "../arrays.ts";
import type { Layered } from "./layers.ts";
import type { Rows } from "./types.ts";

/**
 * The current order of every row: `item[start[r] + i]` is the i-th item of row r; `position` is its inverse within the
 * row. `known`: crossings below each row, -1 where they are to be counted; most rows have none and stay as they are.
 */
export interface Order {
  item: Int32Array;
  position: Int32Array;
  known: Int32Array;
}

let ends = ints(256);
let tree = ints(256);

/** Number of crossings between row r and row r + 1, counted only where they are not known. */
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

/** With a Fenwick tree over the positions of the lower row: how many earlier links end further right. */
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

/** How many links of v and w end in the wrong order, less those in the right one. */
export function pairGain(links: Rows, position: Int32Array, v: number, w: number): number {
  const endV = links.start[v + 1];
  const endW = links.start[w + 1];
  // Hubs are left to the barycentre: comparing all their links would cost the square of them.
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
