/**
 * Third phase: edges over several rows get a dummy in each row between, so that afterwards every edge joins
 * neighbouring rows. Items (boxes and dummies) are numbered row by row: row r holds items start[r] to start[r + 1].
 *
 * Dummies are bounded. A box with many far users is drawn as one bus that they all join; what would still be too
 * long is left to the outer channel (`route.ts`).
 */

import { doubles, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import type { Directed } from "./direct.ts";
import { collect, type Rows } from "./types.ts";

export interface Layered {
  rows: number;
  items: number;
  start: Int32Array;
  /** Box of an item, -1 for a dummy; item of a box. */
  box: Int32Array;
  itemOf: Int32Array;
  row: Int32Array;
  /** Items in the row above and below that an item is joined with. */
  up: Rows;
  down: Rows;
  /** Per edge: its dummies from top to bottom are `dummy[dummyStart[e]]` and so on, `span - 1` of them; -1: outer channel. */
  dummyStart: Int32Array;
  dummy: Int32Array;
}

const BUS_USERS = 4;

/** Most dummies that a graph of this size is given. */
export function dummyBudget(n: number, m: number): number {
  return Math.max(20000, 3 * (n + m));
}

export function* makeLayers(
  graph: Directed,
  rank: Int32Array,
  budget = dummyBudget(graph.n, graph.m),
): Slices<Layered> {
  const { n, m, lower, upper } = graph;
  const plan = planDummies(graph, rank, budget);
  yield;
  let rows = 0;
  for (let v = 0; v < n; v++) if (rank[v] >= rows) rows = rank[v] + 1;
  const start = ints(rows + 1);
  for (let v = 0; v < n; v++) start[rank[v] + 1]++;
  for (let d = 0; d < plan.row.length; d++) start[plan.row[d] + 1]++;
  for (let r = 0; r < rows; r++) start[r + 1] += start[r];
  const items = n + plan.row.length;

  const next = start.slice(0, rows);
  const box = ints(items).fill(-1);
  const row = ints(items);
  const itemOf = ints(n);
  for (let i = 0; i < n; i++) {
    const v = graph.order[i];
    const item = next[rank[v]]++;
    itemOf[v] = item;
    box[item] = v;
    row[item] = rank[v];
  }
  yield;
  const dummy = ints(plan.row.length);
  for (let d = 0; d < dummy.length; d++) {
    dummy[d] = next[plan.row[d]]++;
    row[dummy[d]] = plan.row[d];
  }

  yield;
  let links = 0;
  for (let e = 0; e < m; e++) if (plan.dummyStart[e] >= 0) links += plan.own[e] + 1;
  const above = ints(links);
  const below = ints(links);
  let link = 0;
  for (let e = 0; e < m; e++) {
    const first = plan.dummyStart[e];
    if (first < 0) continue;
    const between = rank[lower[e]] - rank[upper[e]] - 1;
    // A bus is linked by the first edge that needs each part of it.
    const shared = between - plan.own[e];
    let last = shared ? dummy[first + shared - 1] : itemOf[upper[e]];
    for (let k = shared; k < between; k++) {
      above[link] = last;
      last = below[link++] = dummy[first + k];
    }
    above[link] = last;
    below[link++] = itemOf[lower[e]];
  }
  yield;
  const up = collect(items, below, above);
  yield;
  const down = collect(items, above, below);
  return { rows, items, start, box, itemOf, row, up, down, dummyStart: plan.dummyStart, dummy };
}

interface Plan {
  /** Position of the first dummy of edge e (a bus is shared from there on), 0 if it needs none, -1: none granted. */
  dummyStart: Int32Array;
  /** How many of its dummies edge e is the first to use. */
  own: Int32Array;
  row: Int32Array;
}

function planDummies(graph: Directed, rank: Int32Array, budget: number): Plan {
  const { m, lower, upper } = graph;
  const span = ints(m);
  let total = 0;
  for (let e = 0; e < m; e++) {
    if (lower[e] < 0) continue;
    span[e] = rank[lower[e]] - rank[upper[e]];
    total += span[e] - 1;
  }
  const bus = total > budget ? findBuses(graph, span) : null;
  const limit = total > budget ? longestSpan(graph, span, bus, budget) : Number.POSITIVE_INFINITY;

  const dummyStart = ints(m);
  const own = ints(m);
  let count = 0;
  const busStart = bus ? ints(graph.n).fill(-1) : null;
  const busUsed = bus ? ints(graph.n) : null;
  for (let e = 0; e < m; e++) {
    const between = span[e] - 1;
    const u = upper[e];
    if (lower[e] < 0 || (between >= limit && !bus?.[u])) {
      dummyStart[e] = -1;
    } else if (bus && busStart && busUsed && bus[u] && between > 0) {
      if (busStart[u] < 0) {
        busStart[u] = count;
        count += bus[u];
      }
      dummyStart[e] = busStart[u];
      own[e] = Math.max(0, between - busUsed[u]);
      busUsed[u] += own[e];
    } else if (between > 0) {
      dummyStart[e] = count;
      own[e] = between;
      count += between;
    }
  }
  const row = ints(count);
  for (let e = 0; e < m; e++) {
    if (dummyStart[e] < 0) continue;
    for (let k = span[e] - 1 - own[e]; k < span[e] - 1; k++) row[dummyStart[e] + k] = rank[upper[e]] + 1 + k;
  }
  return { dummyStart, own, row };
}

/** Length of the bus of each box that is worth one, else 0. */
function findBuses(graph: Directed, span: Int32Array): Int32Array {
  const far = ints(graph.n);
  const length = ints(graph.n);
  for (let e = 0; e < graph.m; e++) {
    if (span[e] < 2) continue;
    const u = graph.upper[e];
    far[u]++;
    if (span[e] - 1 > length[u]) length[u] = span[e] - 1;
  }
  for (let v = 0; v < graph.n; v++) if (far[v] < BUS_USERS) length[v] = 0;
  return length;
}

/** Number of dummies from which on an edge gets none, so that the rest stays within the budget. */
function longestSpan(graph: Directed, span: Int32Array, bus: Int32Array | null, budget: number): number {
  let most = 1;
  for (let e = 0; e < graph.m; e++) if (span[e] > most) most = span[e];
  const howMany = doubles(most + 1);
  let total = 0;
  for (let e = 0; e < graph.m; e++) {
    const u = graph.upper[e];
    if (span[e] > 1 && !bus?.[u]) howMany[span[e] - 1]++;
  }
  if (bus) {
    for (let v = 0; v < graph.n; v++) {
      // A bus beyond the budget is no better than its edges were.
      if (bus[v] > budget / 8) bus[v] = 0;
      total += bus[v];
    }
  }
  for (let between = 1; between <= most; between++) {
    total += howMany[between] * between;
    if (total > budget) return Math.max(4, between);
  }
  return Number.POSITIVE_INFINITY;
}
