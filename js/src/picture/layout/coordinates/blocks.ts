/**
 * Fifth phase, first half: which items stand exactly below one another. A block is a vertical run of items, one
 * per row, that share one x: the main line of the graph, the dummies of a long edge, a chain. Blocks never cross.
 */
import { ints } from "../../arrays.ts";
import type { Slices } from "../../slices.ts";
import type { Order } from "../crossings.ts";
import type { Layered } from "../layers.ts";
import type { Rows } from "../types.ts";

export interface Blocks {
  count: number;
  /** Block of each item. From `head`, the topmost item of a block, `below` leads down item by item; -1 ends it. */
  of: Int32Array;
  head: Int32Array;
  below: Int32Array;
}

export function* makeBlocks(layered: Layered, order: Order, previous: Float64Array | null): Slices<Blocks> {
  const { items, start, up, down } = layered;
  const { item, position } = order;
  const mainUp = mainOf(order, up);
  yield;
  const mainDown = mainOf(order, down);
  yield;
  const above = ints(items).fill(-1);
  const below = ints(items).fill(-1);
  const strength = ints(items);
  const limit = ints(items);

  /** An old item is a block of its own: where it has to move, nothing else moves with it. */
  const isOld = (v: number) => previous && !Number.isNaN(previous[v]);

  /**
   * Aligns items of row r with items of the row above: first the strong pairs (each is the main neighbour of the
   * other, or both are dummies of one edge), then the weaker pairs that fit between them without a crossing.
   */
  function alignRow(r: number): void {
    const first = start[r];
    const width = start[r + 1] - first;
    let weakest = 2;
    for (let i = 0; i < width; i++) {
      const v = item[first + i];
      const u = mainUp[v];
      strength[i] = 0;
      if (u < 0 || isOld(u) || isOld(v)) continue;
      if (mainDown[u] === v) strength[i] = 2;
      else if (mainDown[u] >= 0) strength[i] = weakest = 1;
    }
    for (let want = 2; want >= weakest; want--) {
      // limit[i]: the leftmost position in the upper row that is aligned with an item right of i.
      let right = start[r] - start[r - 1];
      for (let i = width - 1; i >= 0; i--) {
        limit[i] = right;
        const v = item[first + i];
        if (above[v] >= 0) right = position[above[v]];
      }
      let left = -1;
      for (let i = 0; i < width; i++) {
        const v = item[first + i];
        if (above[v] < 0 && strength[i] === want) {
          const u = mainUp[v];
          const p = position[u];
          if (p > left && p < limit[i] && below[u] < 0) {
            above[v] = u;
            below[u] = v;
          }
        }
        if (above[v] >= 0) left = position[above[v]];
      }
    }
  }

  for (let r = 1; r < layered.rows; r++) {
    alignRow(r);
    if (r % 1024 === 0) yield;
  }
  return numberBlocks(above, below);
}

/** Splits every block for which `cut` is true into blocks of one item. */
export function cutBlocks(blocks: Blocks, cut: (b: number) => boolean): Blocks {
  const items = blocks.of.length;
  const above = ints(items).fill(-1);
  const below = ints(items).fill(-1);
  for (let v = 0; v < items; v++) {
    if (blocks.below[v] < 0 || cut(blocks.of[v])) continue;
    below[v] = blocks.below[v];
    above[below[v]] = v;
  }
  return numberBlocks(above, below);
}

function numberBlocks(above: Int32Array, below: Int32Array): Blocks {
  const items = above.length;
  const of = ints(items);
  const head = ints(items);
  let count = 0;
  for (let v = 0; v < items; v++) {
    if (above[v] >= 0) of[v] = of[above[v]];
    else {
      head[count] = v;
      of[v] = count++;
    }
  }
  return { count, of, head, below };
}

/** Main neighbour of each item, which continues its line: the middle one. -1 where their number is even. */
function mainOf({ position }: Order, { start, item }: Rows): Int32Array {
  const main = ints(start.length - 1);
  for (let v = 0; v < main.length; v++) {
    const a = start[v];
    const count = start[v + 1] - a;
    if (count === 1) main[v] = item[a];
    else if (count % 2 === 0) main[v] = -1;
    else main[v] = item.slice(a, a + count).sort((p, q) => position[p] - position[q])[count >> 1];
  }
  return main;
}
