/**
 * Fourth phase: the order within rows. A depth-first walk from the losses gives the initial order; sweeps by barycentre
 * and sifting then remove crossings. Where crossings are left, the best order is perturbed and improved again (iterated
 * local search), until that has not helped for a while. Rows with a single item cut the graph into parts with
 * independent crossings: each part is ordered alone, and only while it has crossings.
 */
import { bytes, doubles, ints } from "../../arrays.ts";
import { eachSlice, type Slices } from "../../slices.ts";
import { crossingsBelow, type Order } from "../crossings.ts";
import type { Layered } from "../layers.ts";
import { sift } from "./sift.ts";

/** Keys that fix the order of items in one row, one array per key, by item; NaN: free. Later keys count more. */
export type Bonds = readonly Float64Array[];

const SLICE = 4096;
/** Starts before this one perturb all rows, later ones only the rows near crossings. */
const WHOLE = 4;
/** Scales a random 32-bit number to a move of at most 1.1 places, times the turn: later turns need larger moves. */
const PERTURBATION = 2e9;
/** Number of rows above and below a crossing whose items are perturbed. */
const REACH = 1;
/** The search ends when this many starts after the best one have brought nothing better. */
const PATIENCE = 14;
/** From start number `WHOLE` on, at most about this many items are perturbed in all: it bounds the time. */
const WORK = 1000;

/**
 * Orders from at most `most` starts, each with the fewest crossings found for every part of the picture; and the
 * number of these crossings. `all`: parts without crossings are started again, too. A single start is for large
 * pictures and is not sifted.
 */
export function* orderRows(
  layered: Layered,
  bonds: Bonds,
  most = 1,
  all = false,
): Slices<[orders: Order[], crossings: number]> {
  const { rows, start } = layered;
  /** `counts[turn]`: number of crossings left after that turn. */
  const parts: { first: number; last: number; counts: number[] }[] = [];
  let first = 0;
  for (let r = 1; r <= rows; r++) {
    if (r < rows && start[r + 1] - start[r] > 1) continue;
    const last = Math.min(r, rows - 1);
    if (last - first > 1) parts.push({ first, last, counts: [] });
    first = r;
  }
  const orders: Order[] = [];
  /** Copies the best order so far into each part of `order` for which this turn is not the best one. */
  function takeBest(order: Order, turn: number): void {
    for (const { first, last, counts } of parts) {
      const fewest = Math.min(...counts);
      const best = orders[counts.indexOf(fewest)].item;
      if (counts[turn] !== fewest) arrange(layered, order, first, best.subarray(start[first], start[last + 1]));
    }
  }

  let work = 0;
  for (let turn = 0, again = parts; turn < most && (again.length || !turn); turn++) {
    if (work > WORK) break;
    const order = yield* walkOrder(layered);
    let keys = bonds;
    if (turn) {
      takeBest(order, turn);
      const [perturbed, count] = perturb(layered, order, turn);
      if (turn >= WHOLE) work += count;
      keys = [perturbed, ...bonds];
    }
    if (keys.length) yield* eachSlice(rows, (r) => sortRow(layered, order, r, keys));
    orders.push(order);
    for (const { first, last, counts } of again) {
      // Sifting hardly ever makes an order with so many more crossings the best one.
      const limit = most > 1 ? 1.25 * Math.min(...counts) + 100 : 0;
      counts.push(yield* untangle(layered, order, bonds, first, last, turn, limit));
      yield;
    }
    again = again.filter(({ counts }) => {
      const fewest = Math.min(...counts);
      return turn - counts.indexOf(fewest) < (fewest ? PATIENCE : all ? WHOLE : 0);
    });
  }
  orders.forEach(takeBest);
  let crossings = 0;
  for (const { counts } of parts) crossings += Math.min(...counts);
  return [orders, crossings];
}

/** Orders each row by the first visit of a depth-first walk up from the items without users. */
function* walkOrder({ rows, items, start, row, up, down }: Layered): Slices<Order> {
  const item = ints(items);
  const position = ints(items).fill(-1);
  const filled = start.slice(0, rows);
  const waiting = ints(up.item.length + 1);
  let work = 0;
  for (let i = items - 1; i >= 0; i--) {
    if (down.start[i] !== down.start[i + 1]) continue;
    let end = 0;
    waiting[end++] = i;
    while (end) {
      const v = waiting[--end];
      if (position[v] >= 0) continue;
      const r = row[v];
      position[v] = filled[r] - start[r];
      item[filled[r]++] = v;
      // A stack: the last item in is visited first.
      for (let k = up.start[v + 1] - 1; k >= up.start[v]; k--) waiting[end++] = up.item[k];
      if (++work % SLICE === 0) yield;
    }
  }
  return { item, position, known: ints(rows).fill(-1) };
}

/**
 * Sort keys that make items swap places with near ones, different ones in each turn, to leave a local optimum; and the
 * number of items with a key. From turn `WHOLE` on only items near crossings have one.
 */
function perturb(layered: Layered, order: Order, turn: number): [keys: Float64Array, count: number] {
  const { rows, items, row } = layered;
  const near = bytes(rows);
  for (let r = 0; r < rows - 1; r++)
    if (turn < WHOLE || crossingsBelow(layered, order, r)) near.fill(1, Math.max(0, r - REACH), r + 2 + REACH);
  const keys = doubles(items).fill(Number.NaN);
  let count = 0;
  for (let v = 0; v < items; v++) {
    if (!near[row[v]]) continue;
    keys[v] = order.position[v] + (Math.imul(v, 0x41c64e6d * turn) / PERTURBATION) * turn;
    count++;
  }
  return [keys, count];
}

/**
 * Removes crossings between rows first and last; returns how many are left. A step sweeps over the rows that have
 * crossings, down and up or up and down. The next step also continues from a worse order; the best one is kept, and
 * sifted if it has at most `limit` crossings. Items with equal keys are reversed in some steps: otherwise the search
 * would go round in circles.
 */
function* untangle(
  layered: Layered,
  order: Order,
  bonds: Bonds,
  first: number,
  last: number,
  turn: number,
  limit: number,
): Slices<number> {
  const { start, up, down } = layered;
  const { item, position, known } = order;
  const from = start[first];
  const to = start[last + 1];
  // A free item gives NaN, which is falsy: no bond.
  const bound = bonds.length ? (v: number, w: number) => bonds.some((key) => key[v] - key[w]) : () => false;
  const countAll = () => {
    let crossings = 0;
    for (let r = first; r < last; r++) crossings += crossingsBelow(layered, order, r);
    return crossings;
  };
  let fewest = countAll();
  if (!fewest) return 0;
  let best = item.slice(from, to);
  const keys = doubles(layered.items);
  for (let step = 0, idle = 0; fewest && idle < 5 && step * (to - from) < 100000; step++) {
    for (const links of step % 2 ? [down, up] : [up, down]) {
      for (let k = 1; k <= last - first; k++) {
        const r = links === up ? first + k : last - k;
        if (!crossingsBelow(layered, order, links === up ? r - 1 : r)) continue;
        for (let v = start[r]; v < start[r + 1]; v++) {
          let sum = 0;
          for (let i = links.start[v]; i < links.start[v + 1]; i++) sum += position[links.item[i]];
          keys[v] = sum / (links.start[v + 1] - links.start[v]);
        }
        sortRow(layered, order, r, [keys, ...bonds], (step + turn) % 4 > 1);
        yield;
      }
    }
    const now = countAll();
    idle++;
    if (now >= fewest) continue;
    idle = 0;
    fewest = now;
    best = item.slice(from, to);
  }
  arrange(layered, order, first, best);
  if (fewest && fewest <= limit) {
    yield* sift(layered, order, first, last, bound);
    known.fill(-1, first, last);
    if (countAll() > fewest) arrange(layered, order, first, best);
  }
  return countAll();
}

/** Fills the rows from row `first` on with `items`. */
function arrange({ start, row }: Layered, { item, position, known }: Order, first: number, items: Int32Array): void {
  item.set(items, start[first]);
  known.fill(-1, first, row[items[items.length - 1]]);
  for (let i = 0; i < items.length; i++) position[items[i]] = start[first] + i - start[row[items[i]]];
}

/** For each key in turn: sorts the items of row r that have it, within the positions that these items hold. */
function sortRow({ start }: Layered, { item, position, known }: Order, r: number, keys: Bonds, flip = false): void {
  for (const key of keys) {
    const items: number[] = [];
    for (let i = start[r]; i < start[r + 1]; i++) if (!Number.isNaN(key[item[i]])) items.push(item[i]);
    if (flip && key === keys[0]) items.reverse();
    items.sort((a, b) => key[a] - key[b]);
    for (let i = start[r], next = 0; next < items.length; i++) {
      if (Number.isNaN(key[item[i]])) continue;
      const v = items[next++];
      if (item[i] === v) continue;
      item[i] = v;
      position[v] = i - start[r];
      known[r - 1] = known[r] = -1;
    }
  }
}
