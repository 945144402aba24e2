/**
 * Fourth phase: the order within rows. A depth-first walk from the losses gives the input order; sweeps by
 * barycentre and swaps of neighbours then remove crossings. Rows with a single item cut the graph into segments
 * whose crossings are independent: each is worked on alone, and only where there are any.
 */
import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import { crossingsBelow, type Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";

/** What binds the order of two items of one row, per item; NaN: free. */
export interface Bonds {
  lane: Float64Array | null;
  /** Earlier x. */
  previous: Float64Array | null;
}

const SLICE = 4096;
/** Keeping the bonds of an item costs as much as so many others. */
const BOND_COST = 0.25;

/** `turn`: 0 begins with all inputs in their order, every other number with other ones turned round, and tries other swaps. */
export function* orderRows(layered: Layered, bonds: Bonds, turn = 0): Slices<Order & { crossings: number }> {
  const order = yield* walkOrder(layered, turn);
  let crossings = 0;
  let work = 0;
  for (let r = 0; r < layered.rows; r++) {
    keepBonds(layered, order, bonds, r);
    work += BOND_COST * (layered.start[r + 1] - layered.start[r]);
    if (work < SLICE) continue;
    work = 0;
    yield;
  }
  let first = 0;
  for (let r = 1; r <= layered.rows; r++) {
    const cut = r === layered.rows || layered.start[r + 1] - layered.start[r] === 1;
    if (!cut) continue;
    const last = Math.min(r, layered.rows - 1);
    if (last - first > 1) crossings += yield* untangle(layered, order, bonds, first, last, turn);
    work += layered.start[last] - layered.start[first];
    if (work > SLICE) {
      work = 0;
      yield;
    }
    first = r;
  }
  return { ...order, crossings };
}

/** Depth-first from the items without users, up along the links, as given or turned; each row in the order of first visit. */
function* walkOrder(layered: Layered, turn: number): Slices<Order> {
  const { items, start, row, up, down } = layered;
  const item = ints(items);
  const position = ints(items).fill(-1);
  const filled = start.slice(0, layered.rows);
  const stack = ints(up.item.length + 1);
  let work = 0;
  for (let source = items - 1; source >= 0; source--) {
    if (down.start[source + 1] !== down.start[source]) continue;
    let depth = 0;
    stack[depth++] = source;
    while (depth) {
      const v = stack[--depth];
      if (position[v] >= 0) continue;
      const r = row[v];
      position[v] = filled[r] - start[r];
      item[filled[r]++] = v;
      const first = up.start[v];
      const count = up.start[v + 1] - first;
      const hash = Math.imul(turn * (v + 1), 0x9e3779b1) >>> 8;
      for (let i = count - 1; i >= 0; i--) {
        const u = up.item[first + (turn ? (hash + (hash & 256 ? count - 1 - i : i)) % count : i)];
        // The last one pushed is visited first.
        if (position[u] < 0) stack[depth++] = u;
      }
      if (++work % SLICE === 0) yield;
    }
  }
  return { item, position };
}

/**
 * Removes crossings between rows first and last. A step sweeps over the rows that have crossings, down and up or up
 * and down, and swaps neighbours. Steps lead on from what is worse, too; the best order is kept. What wants the same
 * place changes its order now and then: else the search would go round in circles. Returns how many are left.
 */
function* untangle(
  layered: Layered,
  order: Order,
  bonds: Bonds,
  first: number,
  last: number,
  turn: number,
): Slices<number> {
  const { start } = layered;
  const crossings = ints(last - first + 1);
  const tangle: Tangle = { layered, order, bonds, first, last, crossings, flip: false, least: 1 - (turn % 2), work: 0 };
  let fewest = 0;
  for (let r = first; r < last; r++) fewest += recount(tangle, r);
  if (!fewest) return 0;
  const from = start[first];
  const to = start[last + 1];
  let best = order.item.slice(from, to);
  // Small tangles are worth many tries, large ones are not.
  const tries = Math.max(4, Math.min(40, Math.round(100000 / (to - from))));
  for (let step = 0, idle = 0; step < tries && fewest > 0 && idle < Math.max(3, tries / 5); step++) {
    tangle.flip = step % 4 > 1;
    yield* sweep(tangle, step % 2 === 0);
    yield* sweep(tangle, step % 2 === 1);
    yield* swapNeighbours(tangle);
    let now = 0;
    for (const count of crossings) now += count;
    idle++;
    if (now >= fewest) continue;
    idle = 0;
    fewest = now;
    best = order.item.slice(from, to);
  }
  order.item.set(best, from);
  for (let r = first; r <= last; r++) renumber(layered, order, r);
  return fewest;
}

/** Rows that are being untangled; `crossings[r - first]` lie between row r and row r + 1. */
interface Tangle {
  layered: Layered;
  order: Order;
  bonds: Bonds;
  first: number;
  last: number;
  crossings: Int32Array;
  /** Whether a sweep turns the order of those that want the same place. */
  flip: boolean;
  /** Crossings that a swap has to remove. */
  least: number;
  /** Items looked at since the last pause. */
  work: number;
}

function recount(tangle: Tangle, r: number): number {
  if (r < tangle.first || r >= tangle.last) return 0;
  const count = crossingsBelow(tangle.layered, tangle.order, r);
  tangle.crossings[r - tangle.first] = count;
  return count;
}

/** Sorts every row that has crossings towards the row that was last sorted. */
function* sweep(tangle: Tangle, downwards: boolean): Slices<void> {
  const { layered, order, bonds, first, last, crossings } = tangle;
  const { start } = layered;
  for (let step = 1; step <= last - first; step++) {
    const r = downwards ? first + step : last - step;
    if (crossings[(downwards ? r - 1 : r) - first] === 0 || start[r + 1] - start[r] < 2) continue;
    sortByBarycentre(tangle, r, downwards);
    keepBonds(layered, order, bonds, r);
    recount(tangle, r - 1);
    recount(tangle, r);
    tangle.work += start[r + 1] - start[r];
    if (tangle.work > SLICE) {
      tangle.work = 0;
      yield;
    }
  }
}

function renumber(layered: Layered, order: Order, r: number): void {
  const first = layered.start[r];
  for (let i = first; i < layered.start[r + 1]; i++) order.position[order.item[i]] = i - first;
}

let keys = doubles(0);
let moved = ints(0);

/** Sorts a row by the mean position of the links above (or below). Items without links keep their place in the sequence. */
function sortByBarycentre({ layered, order, flip }: Tangle, r: number, above: boolean): void {
  const first = layered.start[r];
  const end = layered.start[r + 1];
  const { start, item } = above ? layered.up : layered.down;
  if (keys.length < layered.items) {
    keys = doubles(layered.items);
    moved = ints(layered.items);
  }
  let linked = 0;
  for (let i = first; i < end; i++) {
    const v = order.item[i];
    const from = start[v];
    const to = start[v + 1];
    if (from === to) continue;
    let sum = 0;
    for (let k = from; k < to; k++) sum += order.position[item[k]];
    keys[v] = sum / (to - from);
    moved[linked++] = v;
  }
  if (flip) moved.subarray(0, linked).reverse();
  sortMoved(linked);
  let next = 0;
  for (let i = first; i < end; i++) {
    const v = order.item[i];
    if (start[v] !== start[v + 1]) order.item[i] = moved[next++];
  }
  renumber(layered, order, r);
}

/** Most rows are short: then insertion is quicker. */
function sortMoved(count: number): void {
  if (count > 32) moved.subarray(0, count).sort((a, b) => keys[a] - keys[b]);
  else
    for (let i = 1; i < count; i++) {
      const v = moved[i];
      let j = i;
      for (; j > 0 && keys[moved[j - 1]] > keys[v]; j--) moved[j] = moved[j - 1];
      moved[j] = v;
    }
}

/** Puts the items bound by lane, and then those with an earlier place, into their order, on the positions that they hold. */
function keepBonds(layered: Layered, order: Order, { previous, lane }: Bonds, r: number): void {
  for (const key of [lane, previous]) {
    if (!key) continue;
    const places: number[] = [];
    const items: number[] = [];
    for (let i = layered.start[r]; i < layered.start[r + 1]; i++) {
      const v = order.item[i];
      if (Number.isNaN(key[v])) continue;
      places.push(i);
      items.push(v);
    }
    items.sort((a, b) => key[a] - key[b]);
    for (let i = 0; i < places.length; i++) order.item[places[i]] = items[i];
    renumber(layered, order, r);
  }
}

/** Swaps neighbours in a row where that removes crossings enough, up to a few rounds. */
function* swapNeighbours(tangle: Tangle): Slices<void> {
  const { layered, order, bonds, first, last, crossings } = tangle;
  const { start } = layered;
  for (let round = 0; round < 3; round++) {
    let changed = false;
    for (let r = first; r <= last; r++) {
      if ((r === first || crossings[r - 1 - first] === 0) && crossings[r - first] === 0) continue;
      let swapped = false;
      for (let i = start[r]; i + 1 < start[r + 1]; i++) {
        const v = order.item[i];
        const w = order.item[i + 1];
        if (boundPair(bonds, v, w) || swapGain(layered, order, v, w) < tangle.least) continue;
        order.item[i] = w;
        order.item[i + 1] = v;
        order.position[w]--;
        order.position[v]++;
        swapped = true;
      }
      if (swapped) {
        recount(tangle, r - 1);
        recount(tangle, r);
        // What gained nothing would be swapped back.
        changed = tangle.least > 0;
      }
      tangle.work += start[r + 1] - start[r];
      if (tangle.work > SLICE) {
        tangle.work = 0;
        yield;
      }
    }
    if (!changed) return;
  }
}

function boundPair(bonds: Bonds, v: number, w: number): boolean {
  const { lane, previous } = bonds;
  // NaN is no difference.
  if (lane && lane[v] - lane[w]) return true;
  return previous !== null && !Number.isNaN(previous[v] - previous[w]);
}

/** How many crossings fewer there are with w left of v. */
function swapGain(layered: Layered, order: Order, v: number, w: number): number {
  return pairGain(layered.up, order.position, v, w) + pairGain(layered.down, order.position, v, w);
}

function pairGain(links: Layered["up"], position: Int32Array, v: number, w: number): number {
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
