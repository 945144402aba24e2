/**
 * Fifth phase, first half: which items stand exactly below one another. A block is a vertical run of items, one
 * per row, that share one x: the main line of the graph, the dummies of a long edge, a chain. Blocks never cross.
 */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";
import type { Rows } from "./types.ts";

export interface Blocks {
  count: number;
  /** Block of an item; items of a block from top to bottom by `below`, -1 at its end. */
  of: Int32Array;
  head: Int32Array;
  below: Int32Array;
}

export function* makeBlocks(layered: Layered, order: Order, previous: Float64Array | null): Slices<Blocks> {
  const { items, up, down } = layered;
  const mainUp = ints(items);
  const mainDown = ints(items);
  chooseMain(layered, order, up, mainUp);
  yield;
  chooseMain(layered, order, down, mainDown);
  yield;
  const above = ints(items).fill(-1);
  const below = ints(items).fill(-1);
  for (let r = 1; r < layered.rows; r++) {
    alignRow(layered, order, r, mainUp, mainDown, above, below, previous);
    if (r % 1024 === 0) yield;
  }
  return numberBlocks(above, below);
}

/** Every item of a block that is `cut` becomes a block of its own. */
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

/** The neighbour that continues an item's line: the one in the middle. Among an even number there is none. */
function chooseMain(layered: Layered, { position }: Order, { start, item }: Rows, main: Int32Array): void {
  for (let v = 0; v < layered.items; v++) {
    const a = start[v];
    const count = start[v + 1] - a;
    if (count === 1) main[v] = item[a];
    else if (count % 2 === 0) main[v] = -1;
    else main[v] = item.slice(a, a + count).sort((p, q) => position[p] - position[q])[count >> 1];
  }
}

let strength = new Int8Array(256);
let partner = ints(256);
let limit = ints(256);

/**
 * Aligns items of row r with items of the row above. First the strong pairs (each other's main neighbour, or two
 * dummies of one edge), then what fits between them without crossing.
 */
function alignRow(
  layered: Layered,
  order: Order,
  r: number,
  mainUp: Int32Array,
  mainDown: Int32Array,
  above: Int32Array,
  below: Int32Array,
  previous: Float64Array | null,
): void {
  const { start } = layered;
  const { item, position } = order;
  const first = start[r];
  const width = start[r + 1] - first;
  if (strength.length < width + 1) {
    strength = new Int8Array(2 * width + 2);
    partner = ints(2 * width + 2);
    limit = ints(2 * width + 2);
  }
  let weakest = 2;
  for (let i = 0; i < width; i++) {
    const v = item[first + i];
    const u = mainUp[v];
    strength[i] = 0;
    if (u < 0 || !free(previous, u) || !free(previous, v)) continue;
    if (mainDown[u] === v) strength[i] = 2;
    else if (mainDown[u] >= 0) strength[i] = weakest = 1;
    partner[i] = u;
  }
  for (let want = 2; want >= weakest; want--) {
    // limit[i]: the first position of the upper row that an aligned item right of i stands on.
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
        const u = partner[i];
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

/** An item with an earlier place is its own block: if it has to give way, nothing else need move. */
function free(previous: Float64Array | null, v: number): boolean {
  return previous === null || Number.isNaN(previous[v]);
}
