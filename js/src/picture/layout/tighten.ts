/**
 * Fifth phase, last part, for small pictures: the shortest wires that the order of the rows allows.
 *
 * Minimises the sum of weight * |x[u] - x[v]| over all links while neighbours keep their gaps, exactly, by the network
 * simplex method (Gansner, Koutsofios, North and Vo 1993, section 4.2; here with bounded flows instead of an extra node
 * per link). A forest of ties joins what moves together. A part of it that is pulled away by more than its tie holds is
 * cut off and moves until that gains nothing any more, or a neighbour stops it; there it is tied again.
 */
import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Apart } from "./coordinates.ts";
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";
import { collect, type Rows, rowOf } from "./types.ts";

/** How much a link counts, by how many of its ends are dummies: a long edge is to be straight. */
const WEIGHT = [1, 2, 8];
/** Moves per item, should it not end: it has never taken more than 3. */
const MOST_MOVES = 30;
/** Items looked at between two pauses. */
const SLICE = 4096;

/** What can be a tie: number t joins `from[t]` and `to[t]`. First the gaps between neighbours, then the links. */
interface Ties {
  from: number[];
  to: number[];
  gaps: number;
  /** How strongly a link pulls; of a gap, infinite. */
  weight: number[];
  /** The ties at each item. */
  at: Rows;
}

function findTies({ items, box, start, row, up }: Layered, order: Order): Ties {
  const from: number[] = [];
  const to: number[] = [];
  for (let v = 0; v < items; v++) {
    const right = start[row[v]] + order.position[v] + 1;
    if (right < start[row[v] + 1]) to[from.push(v) - 1] = order.item[right];
  }
  const gaps = from.length;
  for (let v = 0; v < items; v++) for (const u of rowOf(up, v)) to[from.push(v) - 1] = u;
  const dummies = (t: number) => Number(box[from[t]] < 0) + Number(box[to[t]] < 0);
  const weight = from.map((_, t) => (t < gaps ? Number.POSITIVE_INFINITY : WEIGHT[dummies(t)]));
  const numbers = ints(2 * from.length).map((_, k) => k % from.length);
  return { from, to, gaps, weight, at: collect(items, Int32Array.from(from.concat(to)), numbers) };
}

/** Changes `x`, which keeps all gaps. */
export function* tighten(layered: Layered, order: Order, apart: Apart, x: Float64Array): Slices<void> {
  const { items } = layered;
  const { from, to, gaps, weight, at } = findTies(layered, order);
  yield;
  /** The way that a link outside the forest pulls its `from`: 1 right, -1 left. */
  const way = from.map((v, t): number => (x[to[t]] < x[v] ? -1 : 1));
  const parent = ints(items).fill(-1);
  const tie = ints(items).fill(-1);
  /** How strongly an item, with all that hangs on it, is pulled from outside the forest. */
  const pull = doubles(items);
  for (let t = gaps; t < from.length; t++) tug(t, from[t], to[t], way[t]);
  /** The move in which an item moved last. */
  const moved = ints(items);
  let moves = 0;

  /** A link starts to pull u (and `other` against it) so many times to the right. */
  function tug(t: number, u: number, other: number, times: number): void {
    for (let v = u; v >= 0; v = parent[v]) pull[v] += times * weight[t];
    for (let v = other; v >= 0; v = parent[v]) pull[v] -= times * weight[t];
  }

  /** Cuts v off with all that hangs on it; a link that held it pulls it back from now on. */
  function cut(v: number, side: number): number[] {
    const above = parent[v];
    const t = tie[v];
    for (let u = above; u >= 0; u = parent[u]) pull[u] -= pull[v];
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
        if (tie[other] === t && parent[other] === u) part.push(other);
      }
    }
    return part;
  }

  /** What a part meets on its way to a side, from near to far: neighbours, and the ends of links that pull it there. */
  function ahead(part: readonly number[], side: number): { t: number; far: number }[] {
    const met: { t: number; far: number }[] = [];
    for (const u of part) {
      for (const t of rowOf(at, u)) {
        const other = from[t] + to[t] - u;
        const toward = (t < gaps ? 1 : way[t]) * (from[t] === u ? 1 : -1);
        if (moved[other] === moves || toward !== side) continue;
        met.push({ t, far: Math.max(0, side * (x[other] - x[u]) - (t < gaps ? apart(from[t], to[t]) : 0)) });
      }
    }
    // Links before a gap that is as near: half as many moves.
    return met.sort((a, b) => a.far - b.far || b.t - a.t);
  }

  /** Ties the part that v was cut off with to `above` by its item u, which becomes the topmost one. */
  function hang(u: number, above: number, t: number, v: number): void {
    const all = pull[v];
    for (let w = above; w >= 0; w = parent[w]) pull[w] += all;
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
    // A gap holds what is pressed against it, a link as much as its weight.
    const holds = t < 0 || (t < gaps && (to[t] === v) === side > 0) ? 0 : weight[t];
    let gain = Math.abs(pull[v]) - holds;
    if (!(gain > 0)) continue;
    // It is looked at again, too.
    quiet = -1;
    moves++;
    const part = cut(v, side);
    work += part.length;
    if (work > SLICE) {
      work = 0;
      yield;
    }
    for (const { t, far } of ahead(part, side)) {
      const [u, other] = moved[from[t]] === moves ? [from[t], to[t]] : [to[t], from[t]];
      gain -= 2 * weight[t];
      if (t >= gaps) {
        // It pulls no more; passed by, it pulls back.
        tug(t, u, other, gain > 0 ? -2 * side : -side);
        way[t] *= -1;
      }
      if (gain > 0) continue;
      const by = t < gaps ? side * far : x[other] - x[u];
      for (const w of part) x[w] += by;
      hang(u, other, t, v);
      break;
    }
  }
}
