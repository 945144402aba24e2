/**
 * Fifth phase, second half: x. Each block is pulled towards the mean of its neighbours. A projection keeps blocks
 * apart: one solution pushes only to the right, one only to the left. Their mean keeps all gaps and favours no side.
 */

import { doubles, ints } from "../../arrays.ts";
import type { Slices } from "../../slices.ts";
import type { Order } from "../crossings.ts";
import { DUMMY_WIDTH, type Layered } from "../layers.ts";
import { tiesOf, tighten } from "../tighten.ts";
import { type Apart, ENOUGH, topological } from "../types.ts";
import { type Blocks, cutBlocks, makeBlocks } from "./blocks.ts";
import { seatNewcomers } from "./newcomers.ts";

/** Rounds of pulling and projecting; more of them hardly make the wires shorter. */
const ROUNDS = 2;
/** Pictures with more boxes are not tightened. */
const MOST_TIGHT = 5000;
/** A smaller picture is tightened where its wires are longer than this share of the sum of all widths. */
const loose = (boxes: number) => (boxes > 2000 ? 2 : boxes > 200 ? 0.55 : 0);
/** Blocks between two pauses. */
const SLICE = 16384;

/** Right neighbours of each block in compressed rows, each with the smallest distance between their centres. */
interface Forces {
  rightStart: Int32Array;
  rightBlock: Int32Array;
  rightGap: Float64Array;
  /** All blocks; a block comes before its right neighbours. */
  order: Int32Array;
}

/**
 * x of every item (px), in that of `orders` which gives the shortest wires and the least width. `previous`: x of old
 * items, NaN for new ones.
 */
export function* placeItems(
  layered: Layered,
  orders: readonly Order[],
  width: Float32Array,
  nodesep: number,
  previous: Float64Array | null,
): Slices<Float64Array> {
  const { items, box } = layered;
  const itemWidth = doubles(items);
  let all = 0;
  for (let v = 0; v < items; v++) all += itemWidth[v] = box[v] >= 0 ? width[box[v]] : DUMMY_WIDTH;
  const apart: Apart = (v, w) => {
    const dummies = box[v] < 0 && box[w] < 0;
    const old = previous && !Number.isNaN(previous[v] + previous[w]);
    return (itemWidth[v] + itemWidth[w]) / 2 + nodesep * (dummies ? 1 / 2 : old ? ENOUGH : 1);
  };
  const { length } = width;
  let least = Number.POSITIVE_INFINITY;
  let best!: Float64Array;
  for (const order of orders) {
    if (previous) yield* seatNewcomers(layered, order, previous, itemWidth, nodesep);
    const fieldOf = (blocks: Blocks) => makeField(layered, order, blocks, apart, previous);
    let field = yield* fieldOf(yield* makeBlocks(layered, order, previous));
    if (field.bounds) {
      // A free block without room between pinned ones is cut: a bend is better than pushing a pinned block.
      const { pin, low, high } = field.bounds;
      field = yield* fieldOf(cutBlocks(field.blocks, (b) => Number.isNaN(pin[b]) && low[b] > high[b] + 1e-3));
    }
    const x = yield* relax(layered, field);
    if (!previous && length <= MOST_TIGHT && wire(layered, x) > loose(length) * all)
      yield* tighten(tiesOf(layered, order), apart, x);
    const size = orders[1] ? wire(layered, x) + Math.max(...x) - Math.min(...x) : 0;
    if (size >= least) continue;
    least = size;
    best = x;
  }
  return best;
}

/** Horizontal length of all links together, in px. */
function wire({ items, up: { start, item } }: Layered, x: Float64Array): number {
  let length = 0;
  for (let v = 0; v < items; v++) for (let k = start[v]; k < start[v + 1]; k++) length += Math.abs(x[item[k]] - x[v]);
  return length;
}

/** Blocks with all forces and bounds on them. */
interface Field {
  blocks: Blocks;
  forces: Forces;
  /** null: all blocks are free. */
  bounds: Bounds | null;
}

interface Bounds {
  /** Fixed x of a block; NaN: it is free to move. */
  pin: Float64Array;
  /** Smallest and largest x of a free block that pushes no pinned one. */
  low: Float64Array;
  high: Float64Array;
}

function* makeField(
  layered: Layered,
  order: Order,
  blocks: Blocks,
  apart: Apart,
  previous: Float64Array | null,
): Slices<Field> {
  yield;
  const forces = yield* findForces(layered, order, blocks, apart);
  yield;
  return { blocks, forces, bounds: previous && (yield* findBounds(forces, blocks, previous)) };
}

/** Pulls and projects the blocks in `ROUNDS` rounds; returns x of every item. */
function* relax(layered: Layered, { blocks, forces, bounds }: Field): Slices<Float64Array> {
  const x = doubles(blocks.count);
  const wish = doubles(blocks.count);
  const scratch = doubles(blocks.count);
  for (let round = 0; round < ROUNDS; round++) {
    for (let b = 0; b < blocks.count; b++) {
      if (b % SLICE === SLICE - 1) yield;
      let want = bounds ? bounds.pin[b] : Number.NaN;
      if (Number.isNaN(want)) {
        want = round && pulled(layered, blocks, x, b);
        if (bounds) want = within(bounds.low[b], want, bounds.high[b]);
      }
      wish[b] = want;
    }
    yield* project(forces, wish, x, scratch);
  }
  const result = doubles(blocks.of.length);
  for (let v = 0; v < result.length; v++) result[v] = x[blocks.of[v]];
  return result;
}

const within = (low: number, want: number, high: number) =>
  low > high ? (low + high) / 2 : Math.min(Math.max(want, low), high);

function* findForces(layered: Layered, { item, position }: Order, blocks: Blocks, apart: Apart): Slices<Forces> {
  const { items, start, row } = layered;
  const { of, head, below, count } = blocks;
  const rightStart = ints(count + 1);
  const rightBlock = ints(items);
  const rightGap = doubles(items);
  let filled = 0;
  for (let b = 0; b < count; b++) {
    rightStart[b] = filled;
    for (let v = head[b]; v >= 0; v = below[v]) {
      const at = start[row[v]] + position[v] + 1;
      if (at >= start[row[v] + 1]) continue;
      const w = item[at];
      const gap = apart(v, w);
      if (filled > rightStart[b] && rightBlock[filled - 1] === of[w]) {
        if (gap > rightGap[filled - 1]) rightGap[filled - 1] = gap;
        continue;
      }
      rightBlock[filled] = of[w];
      rightGap[filled++] = gap;
    }
    if (b % SLICE === SLICE - 1) yield;
  }
  rightStart[count] = filled;
  yield;
  const order = yield* topological({ start: rightStart, item: rightBlock.subarray(0, filled) });
  return { rightStart, rightBlock, rightGap, order };
}

function* findBounds(forces: Forces, blocks: Blocks, previous: Float64Array): Slices<Bounds> {
  const { order, rightStart, rightBlock, rightGap } = forces;
  const pin = doubles(blocks.count).fill(Number.NaN);
  for (let v = previous.length - 1; v >= 0; v--) if (!Number.isNaN(previous[v])) pin[blocks.of[v]] = previous[v];
  const low = doubles(blocks.count).fill(Number.NEGATIVE_INFINITY);
  const high = doubles(blocks.count).fill(Number.POSITIVE_INFINITY);
  for (let i = 0; i < order.length; i++) {
    const b = order[i];
    const from = !Number.isNaN(pin[b]) ? pin[b] : low[b];
    for (let k = rightStart[b]; k < rightStart[b + 1]; k++) {
      const bound = from + rightGap[k];
      if (bound > low[rightBlock[k]]) low[rightBlock[k]] = bound;
    }
  }
  yield;
  for (let i = order.length - 1; i >= 0; i--) {
    const b = order[i];
    for (let k = rightStart[b]; k < rightStart[b + 1]; k++) {
      const right = rightBlock[k];
      const bound = (!Number.isNaN(pin[right]) ? pin[right] : high[right]) - rightGap[k];
      if (bound < high[b]) high[b] = bound;
    }
  }
  yield;
  return { pin, low, high };
}

/** Half way between the x of block b and the mean x of the neighbours of its items in other blocks. */
function pulled({ up, down }: Layered, { of, head, below }: Blocks, x: Float64Array, b: number): number {
  let sum = 0;
  let links = 0;
  for (let side = 0; side < 2; side++) {
    const { start, item } = side ? down : up;
    for (let v = head[b]; v >= 0; v = below[v]) {
      for (let k = start[v]; k < start[v + 1]; k++) {
        const other = of[item[k]];
        if (other === b) continue;
        sum += x[other];
        links++;
      }
    }
  }
  return links ? (x[b] + sum / links) / 2 : x[b];
}

/** Sets x to a solution near `wish` that keeps all gaps: the mean of the leftmost and the rightmost one around it. */
function* project(forces: Forces, wish: Float64Array, x: Float64Array, scratch: Float64Array): Slices<void> {
  const { order, rightStart, rightBlock, rightGap } = forces;
  scratch.set(wish);
  for (let i = 0; i < order.length; i++) {
    const b = order[i];
    const at = scratch[b];
    for (let k = rightStart[b]; k < rightStart[b + 1]; k++) {
      const least = at + rightGap[k];
      if (scratch[rightBlock[k]] < least) scratch[rightBlock[k]] = least;
    }
  }
  yield;
  // From right to left; wish[b] becomes the rightmost solution.
  for (let i = order.length - 1; i >= 0; i--) {
    const b = order[i];
    let at = wish[b];
    for (let k = rightStart[b]; k < rightStart[b + 1]; k++) {
      const most = wish[rightBlock[k]] - rightGap[k];
      if (most < at) at = most;
    }
    wish[b] = at;
    x[b] = (at + scratch[b]) / 2;
  }
  yield;
}
