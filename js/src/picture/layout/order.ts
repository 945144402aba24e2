/**
 * Fourth phase: the order within rows. Walks through the graph, the first one depth-first from the losses, give orders
 * to begin with; sweeps by barycentre, swaps of neighbours and sifting then remove crossings. What has some left is
 * stirred and begun with again (iterated local search), until that has not helped for a while. Rows with a single item
 * cut the graph into parts whose crossings are independent: each is worked on alone, and only where there are any.
 */
import { doubles, ints } from "../arrays.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { crossingsBelow, type Order, pairGain } from "./crossings.ts";
import type { Layered } from "./layers.ts";
import { sift } from "./sift.ts";

/** What binds the order of two items of one row, per item; NaN: free. Later ones count more. */
export type Bonds = readonly Float64Array[];

const SLICE = 4096;
/** Beginnings that are walks; in later ones each part is as in its best order so far, stirred. */
const WALKS = 2;
/** So far that a random number of 32 bits moves an item by up to 1.8 places. */
const STIR = 1.2e9;
/** So many beginnings later than the best one there is no other. */
const PATIENCE = 14;

/**
 * Orders from up to `most` beginnings, all with the fewest crossings that were found for each part of the picture.
 * `all`: parts without crossings are begun again, too. A single beginning is for large pictures, and not sifted.
 */
export function* orderRows(
  layered: Layered,
  bonds: Bonds,
  most = 1,
  all = false,
): Slices<[orders: Order[], crossings: number]> {
  const { rows, start } = layered;
  /** `counts[turn]`: how many crossings are left. */
  const parts: { first: number; last: number; counts: number[] }[] = [];
  let first = 0;
  for (let r = 1; r <= rows; r++) {
    if (r < rows && start[r + 1] - start[r] > 1) continue;
    const last = Math.min(r, rows - 1);
    if (last - first > 1) parts.push({ first, last, counts: [] });
    first = r;
  }
  const orders: Order[] = [];
  /** Where this turn was not the best one, or has not been yet: takes over what was. */
  function takeBest(order: Order, turn: number): void {
    for (const { first, last, counts } of parts) {
      const fewest = Math.min(...counts);
      const best = orders[counts.indexOf(fewest)].item;
      if (counts[turn] !== fewest) arrange(layered, order, first, best.subarray(start[first], start[last + 1]));
    }
  }

  for (let turn = 0, again = parts; turn < most && (again.length || !turn); turn++) {
    const order = yield* walkOrder(layered, turn);
    let keys = bonds;
    if (turn >= WALKS) {
      takeBest(order, turn);
      keys = [stirred(order, turn), ...bonds];
    }
    if (keys.length) yield* eachSlice(rows, (r) => sortRow(layered, order, r, keys));
    orders.push(order);
    for (const { first, last, counts } of again) {
      // What is begun so much worse hardly ever gets the best one.
      const limit = most > 1 ? 1.25 * Math.min(...counts) + 100 : 0;
      counts.push(yield* untangle(layered, order, bonds, first, last, turn, limit));
      yield;
    }
    again = again.filter(({ counts }) => {
      const fewest = Math.min(...counts);
      return turn - counts.indexOf(fewest) < (fewest || all ? PATIENCE : 0);
    });
  }
  orders.forEach(takeBest);
  let crossings = 0;
  for (const { counts } of parts) crossings += Math.min(...counts);
  return [orders, crossings];
}

/** Each row in the order of first visit, depth first: up from the items without users, or down from those without inputs. */
function* walkOrder({ rows, items, start, row, up, down }: Layered, turn: number): Slices<Order> {
  const [back, links] = turn & 1 ? [up, down] : [down, up];
  const item = ints(items);
  const position = ints(items).fill(-1);
  const filled = start.slice(0, rows);
  const waiting = ints(links.item.length + 1);
  let work = 0;
  for (let i = 0; i < items; i++) {
    const source = turn & 1 ? i : items - 1 - i;
    if (back.start[source + 1] !== back.start[source]) continue;
    let end = 0;
    waiting[end++] = source;
    while (end) {
      const v = waiting[--end];
      if (position[v] >= 0) continue;
      const r = row[v];
      position[v] = filled[r] - start[r];
      item[filled[r]++] = v;
      // The last one in is visited first.
      for (let k = links.start[v + 1] - 1; k >= links.start[v]; k--) waiting[end++] = links.item[k];
      if (++work % SLICE === 0) yield;
    }
  }
  return { item, position, known: ints(rows).fill(-1) };
}

/** Keys by which items change places with near ones, in each turn others: what seems best may be so for its surroundings only. */
const stirred = ({ position }: Order, turn: number) =>
  Float64Array.from(position, (at, v) => at + Math.imul(v, 0x41c64e6d * turn) / STIR);

/**
 * Removes crossings between rows first and last. A step sweeps over the rows that have crossings, down and up or up
 * and down, and swaps neighbours. Steps lead on from what is worse, too; the best order is kept, and sifted if it has up
 * to `limit` crossings. What wants the same place changes its order now and then: else the search would go round in
 * circles. What sifting has made better is begun with again. Returns how many are left.
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
  /** Crossings that a swap has to remove. */
  const least = turn & 1 ? 0 : 1;
  const from = start[first];
  const to = start[last + 1];
  // NaN is no difference.
  const bound = (v: number, w: number) => bonds.some((key) => key[v] - key[w]);
  const below = (r: number) => (known[r] < 0 ? (known[r] = crossingsBelow(layered, order, r)) : known[r]);
  const countAll = () => {
    let crossings = 0;
    for (let r = first; r < last; r++) crossings += below(r);
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
        if (!below(links === up ? r - 1 : r)) continue;
        for (let v = start[r]; v < start[r + 1]; v++) {
          let sum = 0;
          for (let i = links.start[v]; i < links.start[v + 1]; i++) sum += position[links.item[i]];
          keys[v] = sum / (links.start[v + 1] - links.start[v]);
        }
        sortRow(layered, order, r, [keys, ...bonds], (step + turn) % 4 > 1);
        yield;
      }
    }
    for (let r = first; r <= last; r++) {
      if (least && !below(r - 1) && !below(r)) continue;
      for (let i = start[r] + 1; i < start[r + 1]; i++) {
        if (i % SLICE === 0) yield;
        const v = item[i - 1];
        const w = item[i];
        if (pairGain(up, position, v, w) + pairGain(down, position, v, w) < least || bound(v, w)) continue;
        item[i - 1] = w;
        item[i] = v;
        position[w]--;
        position[v]++;
        known[r - 1] = known[r] = -1;
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
    if (countAll() < fewest) return yield* untangle(layered, order, bonds, first, last, turn, limit);
    arrange(layered, order, first, best);
  }
  return fewest;
}

/** Puts items into the rows from one on. */
function arrange({ start, row }: Layered, { item, position, known }: Order, first: number, items: Int32Array): void {
  item.set(items, start[first]);
  known.fill(-1, first, row[items[items.length - 1]]);
  for (let i = 0; i < items.length; i++) position[items[i]] = start[first] + i - start[row[items[i]]];
}

/** For one key after the other: puts the items of a row that have it in its order, on the positions that they hold. */
function sortRow({ start }: Layered, { item, position, known }: Order, r: number, keys: Bonds, flip = false): void {
  for (const key of keys) {
    const items: number[] = [];
    for (let i = start[r]; i < start[r + 1]; i++) if (!Number.isNaN(key[item[i]])) items.push(item[i]);
    if (flip && key === keys[0]) items.reverse();
    // Most rows are short and nearly in order.
    if (items.length > 64) items.sort((a, b) => key[a] - key[b]);
    else {
      for (let i = 1; i < items.length; i++) {
        const v = items[i];
        let k = i;
        for (; k && key[items[k - 1]] > key[v]; k--) items[k] = items[k - 1];
        items[k] = v;
      }
    }
    for (let i = start[r], next = 0; i < start[r + 1]; i++) {
      if (Number.isNaN(key[item[i]])) continue;
      const v = items[next++];
      if (item[i] === v) continue;
      item[i] = v;
      position[v] = i - start[r];
      known[r - 1] = known[r] = -1;
    }
  }
}
