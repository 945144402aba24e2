/** First phase: every edge gets a lower and an upper end so that there is no cycle; boxes get a topological order. */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import { collect, type LayoutInput, type Rows, topological } from "./types.ts";

export interface Directed {
  n: number;
  m: number;
  /** Ends of edge e; -1 for an edge that would close a cycle: autograd has none, and the layout ignores it. */
  lower: Int32Array;
  upper: Int32Array;
  /** Boxes below, per box: its consumers in the forward pass. */
  users: Rows;
  /** Topological, inputs first. */
  order: Int32Array;
}

export function* direct({ n, edges }: LayoutInput): Slices<Directed> {
  const m = edges.length >> 1;
  const lower = ints(m);
  const upper = ints(m);
  for (let e = 0; e < m; e++) {
    lower[e] = edges[2 * e];
    upper[e] = edges[2 * e + 1];
  }
  yield;
  const users = collect(n, upper, lower);
  const order = yield* topological(users);
  const position = ints(n);
  for (let i = 0; i < n; i++) position[order[i]] = i;
  for (let e = 0; e < m; e++) if (position[lower[e]] <= position[upper[e]]) lower[e] = upper[e] = -1;
  yield;
  return { n, m, lower, upper, users: upper.includes(-1) ? collect(n, upper, lower) : users, order };
}
