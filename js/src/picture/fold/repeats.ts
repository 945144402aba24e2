/** Equal runs in a list: `a b c b c b c d` holds the unit `b c` three times. */

import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";

export interface Repeat {
  /** Index of the first item, number of items in a unit, number of units. */
  at: number;
  period: number;
  times: number;
}

const LEAST_TIMES = 3;
const GRAM = 4;
const MOST_CANDIDATES = 4;
const SLICE = 4096;

/** Repeats of at least three units, without overlap, from left to right. Near linear: it tries equal short runs. */
export function* findRepeats(items: ArrayLike<number>): Slices<Repeat[]> {
  const count = items.length;
  const found: Repeat[] = [];
  if (count < LEAST_TIMES) return found;
  const nexts = [yield* nextEqual(items, 1), yield* nextEqual(items, GRAM)];
  for (let i = 0, looked = 0; i < count; looked++) {
    let best: Repeat | null = null;
    for (const next of nexts) {
      let at = next[i];
      for (let c = 0; c < MOST_CANDIDATES && at >= 0; c++, at = next[at]) {
        const period = at - i;
        if (i + LEAST_TIMES * period > count) break;
        const times = timesAt(items, i, period);
        if (times < LEAST_TIMES) continue;
        // Takes the longest stretch, and the shortest unit that gives it.
        if (!best || times * period > best.times * best.period) best = { at: i, period, times };
      }
    }
    if (best) found.push(best);
    i += best ? best.times * best.period : 1;
    if (looked % SLICE === SLICE - 1) yield;
  }
  return found;
}

function timesAt(items: ArrayLike<number>, at: number, period: number): number {
  let end = at + period;
  while (end < items.length && items[end] === items[end - period]) end++;
  return Math.floor((end - at) / period);
}

/** For each position the next position at which the same `gram` items start; -1: none. */
function* nextEqual(items: ArrayLike<number>, gram: number): Slices<Int32Array> {
  const next = ints(items.length).fill(-1);
  const last = new Map<number, number>();
  for (let i = items.length - gram; i >= 0; i--) {
    let hash = 0;
    for (let k = 0; k < gram; k++) hash = (hash * 1000003 + (items[i + k] % 0x7fffffff)) % 0x1fffffffffff;
    next[i] = last.get(hash) ?? -1;
    last.set(hash, i);
    if (i % SLICE === 0) yield;
  }
  return next;
}
