/** First phase: every edge gets a lower and an upper end such that there is no cycle, and boxes get a topological order. */
import { bytes, ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import { collect, type LayoutInput, type Rows } from "./types.ts";

export interface Directed {
  n: number;
  m: number;
  /** Ends of edge e after the edges that close a cycle were turned round; -1 for an edge from a box to itself. */
  lower: Int32Array;
  upper: Int32Array;
  flipped: Uint8Array;
  /** Boxes below, per box: its consumers in the forward pass. */
  users: Rows;
  /** Topological, inputs first. */
  order: Int32Array;
}

export function* direct(input: LayoutInput): Slices<Directed> {
  const { n, edges } = input;
  const m = edges.length >> 1;
  const lower = ints(m);
  const upper = ints(m);
  for (let e = 0; e < m; e++) {
    lower[e] = edges[2 * e];
    upper[e] = edges[2 * e + 1];
    if (lower[e] === upper[e]) lower[e] = upper[e] = -1;
  }
  const flipped = bytes(m);
  yield;
  let users = collect(n, upper, lower);
  yield;
  const { order, forced } = topologicalOrder(n, users, lower);
  if (forced) {
    turnBackEdges(order, lower, upper, flipped);
    users = collect(n, upper, lower);
  }
  return { n, m, lower, upper, flipped, users, order };
}

/** Kahn's algorithm from the inputs. In a cycle the waiting box with the smallest number goes first. */
function topologicalOrder(n: number, users: Rows, lower: Int32Array): { order: Int32Array; forced: boolean } {
  const order = ints(n);
  const waiting = ints(n);
  let filled = 0;
  for (let e = 0; e < lower.length; e++) if (lower[e] >= 0) waiting[lower[e]]++;
  for (let v = 0; v < n; v++) if (waiting[v] === 0) order[filled++] = v;
  let forced = false;
  let candidate = 0;
  for (let at = 0; at < n; at++) {
    if (at === filled) {
      forced = true;
      while (waiting[candidate] <= 0) candidate++;
      waiting[candidate] = 0;
      order[filled++] = candidate;
    }
    const v = order[at];
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      const user = users.item[k];
      if (--waiting[user] === 0) order[filled++] = user;
    }
  }
  return { order, forced };
}

function turnBackEdges(order: Int32Array, lower: Int32Array, upper: Int32Array, flipped: Uint8Array): void {
  const position = ints(order.length);
  for (let i = 0; i < order.length; i++) position[order[i]] = i;
  for (let e = 0; e < lower.length; e++) {
    if (lower[e] < 0 || position[lower[e]] > position[upper[e]]) continue;
    const swap = lower[e];
    lower[e] = upper[e];
    upper[e] = swap;
    flipped[e] = 1;
  }
}
