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
import type { Order } from "./crossings.ts";
import type { Layered } from "./layers.ts";
import { collect, rowOf } from "./types.ts";

/** How much a link counts, by how many of its ends are dummies: a long edge is to be straight. */
const WEIGHT = [1, 2, 8];
/** Moves per item, should it not end: it has never taken more than 3. */
const MOST_MOVES = 30;
/** Moves between two pauses. */
const SLICE = 64;

/** Changes `x`, which keeps all gaps. `apart`: least distance of an item and its right neighbour. */
export function* tighten(
  { items, box, start, row, up }: Layered,
  order: Order,
  apart: (v: number, w: number) => number,
  x: Float64Array,
): Slices<void> {
  // What can be a tie: first the gaps between neighbours, then the links.
  const from: number[] = [];
  const to: number[] = [];
  for (let v = 0; v < items; v++) {
    const right = start[row[v]] + order.position[v] + 1;
    if (right < start[row[v] + 1]) to[from.push(v) - 1] = order.item[right];
  }
  const gaps = from.length;
  for (let v = 0; v < items; v++) for (const u of rowOf(up, v)) to[from.push(v) - 1] = u;
  const ties = from.length;
  const weight = from.map((v, t) => (t < gaps ? Number.POSITIVE_INFINITY : WEIGHT[+(box[v] < 0) + +(box[to[t]] < 0)]));
  const at = collect(
    items,
    Int32Array.from([...from, ...to]),
    ints(2 * ties).map((_, k) => k % ties),
  );
  yield;
  /** The way that a link outside the forest pulls its `from`: 1 right, -1 left. */
  const way = from.map((v, t): number => (x[to[t]] < x[v] ? -1 : 1));
  const parent = ints(items).fill(-1);
  const tie = ints(items).fill(-1);
  /** How strongly an item, with all that hangs on it, is pulled from outside the forest. */
  const pull = doubles(items);
  for (let t = gaps; t < ties; t++) {
    pull[from[t]] += way[t] * weight[t];
    pull[to[t]] -= way[t] * weight[t];
  }
  function addPull(v: number, force: number): void {
    for (; v >= 0; v = parent[v]) pull[v] += force;
  }

  const inPart = ints(items);
  for (let v = 0, quiet = 0, moves = 0; quiet < items && moves < MOST_MOVES * items; v = (v + 1) % items, quiet++) {
    const old = tie[v];
    const side = Math.sign(pull[v]);
    // A gap holds what is pressed against it, a link as much as its weight.
    const holds = old < 0 || (old < gaps && (to[old] === v) === side > 0) ? 0 : weight[old];
    let gain = Math.abs(pull[v]) - holds;
    if (!(gain > 0)) continue;
    quiet = 0;
    if (++moves % SLICE === 0) yield;

    const stay = parent[v];
    parent[v] = tie[v] = -1;
    addPull(stay, -pull[v]);
    if (old >= gaps) {
      way[old] = from[old] === v ? -side : side;
      pull[v] -= side * holds;
      addPull(stay, side * holds);
    }

    const part = [v];
    inPart[v] = moves;
    for (const u of part) {
      for (const t of rowOf(at, u)) {
        const other = from[t] + to[t] - u;
        if (tie[other] !== t || parent[other] !== u) continue;
        inPart[other] = moves;
        part.push(other);
      }
    }
    /** What the part meets on its way, and how far from here. */
    const met: { t: number; far: number }[] = [];
    for (const u of part) {
      for (const t of rowOf(at, u)) {
        const other = from[t] + to[t] - u;
        const isFrom = from[t] === u;
        const ahead = t < gaps ? (isFrom ? 1 : -1) : isFrom ? way[t] : -way[t];
        if (inPart[other] === moves || ahead !== side) continue;
        met.push({ t, far: Math.max(0, side * (x[other] - x[u]) - (t < gaps ? apart(from[t], to[t]) : 0)) });
      }
    }
    // Links before a gap that is as near: half as many moves.
    met.sort((a, b) => a.far - b.far || b.t - a.t);
    for (const { t, far } of met) {
      const [u, other] = inPart[from[t]] === moves ? [from[t], to[t]] : [to[t], from[t]];
      gain -= 2 * weight[t];
      if (gain > 0) {
        // Passed: from here on it pulls back.
        way[t] *= -1;
        addPull(u, -2 * side * weight[t]);
        addPull(other, 2 * side * weight[t]);
        continue;
      }
      if (t >= gaps) {
        addPull(u, -side * weight[t]);
        addPull(other, side * weight[t]);
      }
      const by = t < gaps ? side * far : x[other] - x[u];
      for (const w of part) x[w] += by;
      hang(u, other, t, pull[v]);
      addPull(other, pull[u]);
      break;
    }
  }

  /** Ties a part to `above` by its item u, which becomes the topmost one. `all`: the pull of the part. */
  function hang(u: number, above: number, t: number, all: number): void {
    for (let below = 0; u >= 0; ) {
      const next = { u: parent[u], t: tie[u], below: pull[u] };
      parent[u] = above;
      tie[u] = t;
      pull[u] = all - below;
      above = u;
      ({ u, t, below } = next);
    }
  }
}
