/**
 * For small pictures: the shortest wires that gaps allow. It is used twice: for x at the end of the fifth phase, where
 * gaps keep neighbours in a row apart; for ranks at the end of the second, where gaps keep the ends of a wire apart.
 *
 * Minimises the sum of weight * |x[u] - x[v]| over all links while gaps are kept, exactly, by the network
 * simplex method (Gansner, Koutsofios, North and Vo 1993, section 4.2; here with bounded flows instead of an extra node
 * per link). A forest of ties joins items that move together. A subtree that is pulled away by more than its tie holds
 * is cut off and moves until moving gains nothing any more, or a neighbour stops it; there it is tied again.
 */
import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";
import { type Apart, collect, rowOf } from "./types.ts";

/** Weight of a link by the number of its ends that are dummies: a long edge should be straight. */
const WEIGHT = [1, 2, 8];
/** Limit of moves per item, in case the method does not end: more than 3 were never needed. */
const MOST_MOVES = 30;
/** Number of items read between two pauses. */
const SLICE = 512;

/** Candidates for ties: number t joins `from[t]` and `to[t]`. First the gaps (`from` has the smaller x), then links. */
export interface Ties {
  from: number[];
  to: number[];
  gaps: number;
  /** Weight of link t. */
  weigh: (t: number) => number;
}

/** What a moving part reaches after `far` px: tie t joins its item u with `other` outside it. */
interface Encounter {
  t: number;
  u: number;
  other: number;
  far: number;
}

/** Ties for x: gaps between neighbours in a row, and all links. */
export function tiesOf({ items, box, start, row, up }: Layered, order: Order): Ties {
  const from: number[] = [];
  const to: number[] = [];
  for (let v = 0; v < items; v++) {
    const right = start[row[v]] + order.position[v] + 1;
    if (right < start[row[v] + 1]) to[from.push(v) - 1] = order.item[right];
  }
  const gaps = from.length;
  for (let v = 0; v < items; v++) for (const u of rowOf(up, v)) to[from.push(v) - 1] = u;
  return { from, to, gaps, weigh: (t) => WEIGHT[Number(box[from[t]] < 0) + Number(box[to[t]] < 0)] };
}

/** Changes `x`, which keeps all gaps before and after. */
export function* tighten({ from, to, gaps, weigh }: Ties, apart: Apart, x: Float64Array): Slices<void> {
  const items = x.length;
  /** The ties at each item. */
  const at = collect(
    items,
    Int32Array.from(from.concat(to)),
    ints(2 * from.length).map((_, k) => k % from.length),
  );
  const weight = from.map((_, t) => (t < gaps ? Number.POSITIVE_INFINITY : weigh(t)));
  yield;
  /** Direction in which a link outside the forest pulls its `from`, or in which a gap's `to` lies: 1 right, -1 left. */
  const way = from.map((v, t): number => (x[to[t]] < x[v] ? -1 : 1));
  const parent = ints(items).fill(-1);
  const tie = ints(items).fill(-1);
  /** Sum of the pulls of links outside the forest on an item and its subtree; > 0: to the right. */
  const pull = doubles(items);
  for (let t = gaps; t < from.length; t++) tug(t, from[t], to[t], way[t]);
  /** Number of the move in which an item moved last. */
  const moved = ints(items);
  let moves = 0;

  /** Adds a pull to v and to all items above it in its tree. */
  function load(v: number, by: number): void {
    for (; v >= 0; v = parent[v]) pull[v] += by;
  }

  /** Link t starts to pull u to the right, and `other` to the left, by `times` its weight. */
  function tug(t: number, u: number, other: number, times: number): void {
    load(u, times * weight[t]);
    load(other, -times * weight[t]);
  }

  /** Cuts off the subtree of v and returns its items; a link that tied it pulls it back from now on. */
  function cut(v: number, side: number): number[] {
    const above = parent[v];
    const t = tie[v];
    load(above, -pull[v]);
    parent[v] = tie[v] = -1;
    if (t >= gaps) {
      way[t] = from[t] === v ? -side : side;
      tug(t, v, above, -side);
    }
    const part = [v];
    for (const u of part) {
      moved[u] = moves;
      for (const t of rowOf(at, u)) {
        const other = from[t] + to[t] - u;
        if (tie[other] === t) part.push(other);
      }
    }
    return part;
  }

  /** What a part reaches on its way to a side, from near to far: neighbours, and ends of links that pull it there. */
  function ahead(part: readonly number[], side: number): Encounter[] {
    const met: Encounter[] = [];
    for (const u of part) {
      for (const t of rowOf(at, u)) {
        const other = from[t] + to[t] - u;
        if (moved[other] === moves || way[t] * (from[t] === u ? 1 : -1) !== side) continue;
        const far = Math.max(0, side * (x[other] - x[u]) - (t < gaps ? apart(from[t], to[t]) : 0));
        met.push({ t, u, other, far });
      }
    }
    // At the same distance, links come before a gap: that halves the number of moves.
    return met.sort((a, b) => a.far - b.far || b.t - a.t);
  }

  /** Ties the part below v to `above` by tie t at its item u, which becomes the root of the part. */
  function hang(u: number, above: number, t: number, v: number): void {
    const all = pull[v];
    load(above, all);
    for (let below = 0; u >= 0; ) {
      const next = { u: parent[u], t: tie[u], below: pull[u] };
      parent[u] = above;
      tie[u] = t;
      pull[u] = all - below;
      above = u;
      ({ u, t, below } = next);
    }
  }

  for (let v = 0, quiet = 0, work = 0; quiet < items && moves < MOST_MOVES * items; v = (v + 1) % items, quiet++) {
    const side = Math.sign(pull[v]);
    const t = tie[v];
    // A gap holds any push against it, a link holds as much as its weight.
    const holds = t < 0 || (t < gaps && (to[t] === v) === side > 0) ? 0 : weight[t];
    let gain = Math.abs(pull[v]) - holds;
    if (!(gain > 0)) continue;
    // v itself is examined again, too.
    quiet = -1;
    moves++;
    const part = cut(v, side);
    work += part.length;
    if (work > SLICE) {
      work = 0;
      yield;
    }
    for (const { t, u, other, far } of ahead(part, side)) {
      gain -= 2 * weight[t];
      if (t >= gaps) {
        // A reached link pulls no more; once passed, it pulls back.
        tug(t, u, other, gain > 0 ? -2 * side : -side);
        way[t] *= -1;
      }
      if (gain > 0) continue;
      for (const w of part) x[w] += side * far;
      hang(u, other, t, v);
      break;
    }
  }
}
