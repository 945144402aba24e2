/**
 * Fifth phase, first half: which items stand exactly below one another. A block is a vertical run of items, one
 * per row, that share one x: the main line of the graph, the dummies of a long edge, a chain. Blocks never cross.
 */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";

export interface Blocks {
  count: number;
  /** Block of an item; items of a block from top to bottom by `below`, -1 at its end. */
  of: Int32Array;
  head: Int32Array;
  below: Int32Array;
  /** Block of the spine, -1: none. */
  spine: number;
}

/** Rows from which on the main line is pinned straight; a small picture looks better balanced. */
const PIN_ROWS = 24;

export function* makeBlocks(layered: Layered, order: Order, previous: Float64Array | null): Slices<Blocks> {
  const { items, up, down } = layered;
  const mainUp = ints(items);
  const mainDown = ints(items);
  const depth = boxesOnPath(layered, up, true);
  yield;
  const height = boxesOnPath(layered, down, false);
  yield;
  chooseMain(layered, order, up, depth, mainUp);
  yield;
  chooseMain(layered, order, down, height, mainDown);
  yield;
  preferLines(layered, up, mainUp, mainDown);
  preferLines(layered, down, mainDown, mainUp);
  const above = ints(items).fill(-1);
  const below = ints(items).fill(-1);
  const foot = layered.rows >= PIN_ROWS && !previous ? alignSpine(layered, depth, above, below) : -1;
  for (let r = 1; r < layered.rows; r++) {
    alignRow(layered, order, r, mainUp, mainDown, above, below, previous);
    if (r % 1024 === 0) yield;
  }
  return numberBlocks(above, below, foot);
}

/** Every item of a block that `drifts` becomes a block of its own. */
export function cutBlocks(blocks: Blocks, drifts: Uint8Array): Blocks {
  const items = blocks.of.length;
  const above = ints(items).fill(-1);
  const below = ints(items).fill(-1);
  for (let v = 0; v < items; v++) {
    if (blocks.below[v] < 0 || drifts[blocks.of[v]]) continue;
    below[v] = blocks.below[v];
    above[below[v]] = v;
  }
  return numberBlocks(above, below, blocks.spine < 0 ? -1 : blocks.head[blocks.spine]);
}

/** `spine`: any item of the spine, -1: none. */
function numberBlocks(above: Int32Array, below: Int32Array, spine: number): Blocks {
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
  return { count, of, head, below, spine: spine < 0 ? -1 : of[spine] };
}

/** Most boxes on a path from an item upwards (or downwards), itself included. */
function boxesOnPath(layered: Layered, links: Layered["up"], upwards: boolean): Int32Array {
  const { items, box } = layered;
  const most = ints(items);
  for (let i = 0; i < items; i++) {
    const v = upwards ? i : items - 1 - i;
    let longest = 0;
    for (let k = links.start[v]; k < links.start[v + 1]; k++) {
      if (most[links.item[k]] > longest) longest = most[links.item[k]];
    }
    most[v] = longest + (box[v] >= 0 ? 1 : 0);
  }
  return most;
}

/** The neighbour that continues an item's line: the one with the longest path. Among an even number of equals there is none. */
function chooseMain(layered: Layered, order: Order, links: Layered["up"], length: Int32Array, main: Int32Array): void {
  for (let v = 0; v < layered.items; v++) {
    const a = links.start[v];
    const b = links.start[v + 1];
    if (b - a === 1) {
      main[v] = links.item[a];
      continue;
    }
    let best = -1;
    let equals = 0;
    for (let k = a; k < b; k++) {
      const u = links.item[k];
      if (best < 0 || length[u] > length[best]) {
        best = u;
        equals = 1;
      } else if (length[u] === length[best] && u !== best) equals++;
    }
    if (equals > 1) best = equals % 2 ? middleOf(order, links, a, b, length, length[best]) : -1;
    main[v] = best;
  }
}

/** A box whose line goes on as a long edge on the other side takes a long edge on this side too, if there is one. */
function preferLines(layered: Layered, links: Layered["up"], main: Int32Array, other: Int32Array): void {
  const { items, box } = layered;
  for (let v = 0; v < items; v++) {
    if (box[v] < 0 || other[v] < 0 || box[other[v]] >= 0) continue;
    for (let k = links.start[v]; k < links.start[v + 1]; k++) if (box[links.item[k]] < 0) main[v] = links.item[k];
  }
}

function middleOf(order: Order, links: Layered["up"], a: number, b: number, length: Int32Array, best: number): number {
  const equals: number[] = [];
  for (let k = a; k < b; k++) if (length[links.item[k]] === best) equals.push(links.item[k]);
  equals.sort((p, q) => order.position[p] - order.position[q]);
  return equals[equals.length >> 1];
}

/** Aligns the longest path of boxes from the lowest row upwards; returns its lowest item. */
function alignSpine(layered: Layered, depth: Int32Array, above: Int32Array, below: Int32Array): number {
  const { items, up, start, rows } = layered;
  let foot = -1;
  for (let v = start[rows - 1]; v < items; v++) if (foot < 0 || depth[v] > depth[foot]) foot = v;
  let v = foot;
  while (v >= 0) {
    let next = -1;
    for (let k = up.start[v]; k < up.start[v + 1]; k++) {
      if (next < 0 || depth[up.item[k]] > depth[next]) next = up.item[k];
    }
    if (next >= 0) {
      above[v] = next;
      below[next] = v;
    }
    v = next;
  }
  return foot;
}

let strength = new Int8Array(256);
let partner = ints(256);
let limit = ints(256);

/**
 * Aligns items of row r with items of the row above. First the strong pairs (already aligned, or each other's main
 * neighbour, or two dummies of one edge), then what fits between them without crossing.
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
  for (let i = 0; i < width; i++) {
    const v = item[first + i];
    const u = above[v] >= 0 ? above[v] : mainUp[v];
    strength[i] = 0;
    if (above[v] >= 0) strength[i] = 3;
    else if (u >= 0 && below[u] < 0 && free(previous, u) && free(previous, v)) {
      if (mainDown[u] === v) strength[i] = 2;
      else if (mainDown[u] >= 0) strength[i] = 1;
    }
    if (strength[i]) partner[i] = u;
  }
  for (let want = 3; want >= 1; want--) {
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
