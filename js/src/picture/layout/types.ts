/** Input and output of a layout. All lengths in CSS px; typed arrays throughout. */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";

export interface LayoutInput {
  /** Number of boxes. */
  n: number;
  width: Float32Array;
  height: Float32Array;
  /** m pairs `from`, `to`: `from` stands lower on the page (towards the loss), `to` higher (towards the inputs). */
  edges: Int32Array;
  /** Number of lines that run side by side in each edge; default: one. */
  lines?: Uint8Array;
  /** Px at the foot of each box, inside its height, through which wires may run flat; default: none. */
  foot?: Float32Array;
  /** Lane of each box; NaN or absent: free. In a row, boxes of a smaller lane stand left of boxes of a larger one. */
  lane?: Float32Array;
  /** Centres from an earlier layout, NaN for a new box. Old boxes keep row, order and, where possible, their place. */
  previous?: { x: Float32Array; y: Float32Array };
  /** Smallest gap between two rows and between two neighbours in a row. */
  ranksep: number;
  nodesep: number;
  /** Parts that are not connected stand below each other where they are wider than this together, in px. */
  most?: number | undefined;
}

export interface LayoutOutput {
  /** Centres. y grows from the inputs (top) to the losses (bottom). */
  x: Float32Array;
  y: Float32Array;
  rank: Int32Array;
  /**
   * The route of edge e is `route[routeStart[e]]` to `route[routeStart[e + 1]]`: x, y, x, y ... from the border of
   * `from` to the border of `to`.
   */
  routeStart: Int32Array;
  route: Float32Array;
  /** Top left corner of everything drawn. */
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Smallest distance in px between the centres of an item and its right neighbour. */
export type Apart = (v: number, w: number) => number;

/** Old rows and boxes stay in place while this share of the gap between them is left. */
export const ENOUGH = 1 / 2;

/** Steps between two pauses. */
const SLICE = 1024;

/** Lists of numbers in compressed rows: list i is `item[start[i]]` to `item[start[i + 1]]`. */
export interface Rows {
  start: Int32Array;
  item: Int32Array;
}

/** Number of rows, if box v stands in row rank[v]. */
export function rowsOf(rank: Int32Array): number {
  let rows = 0;
  for (let v = 0; v < rank.length; v++) if (rank[v] >= rows) rows = rank[v] + 1;
  return rows;
}

export const rowOf = ({ start, item }: Rows, list: number) => item.subarray(start[list], start[list + 1]);

/** Lists in which `item[e]` stands on list `list[e]`, in the order of e. Entries with a negative list are left out. */
export function collect(lists: number, list: Int32Array, item: Int32Array): Rows {
  const start = ints(lists + 1);
  const m = list.length;
  for (let e = 0; e < m; e++) if (list[e] >= 0) start[list[e]]++;
  // `start` holds the ends of the lists at first: they are filled from the end.
  for (let i = 0; i < lists; i++) start[i + 1] += start[i];
  const items = ints(start[lists]);
  for (let e = m - 1; e >= 0; e--) if (list[e] >= 0) items[--start[list[e]]] = item[e];
  return { start, item: items };
}

/** Topological order: each v comes before the items on its list. Members of a cycle, and all after it, come last. */
export function* topological({ start, item }: Rows): Slices<Int32Array> {
  const n = start.length - 1;
  const missing = ints(n);
  for (let e = 0; e < item.length; e++) {
    if (e % SLICE === 0) yield;
    missing[item[e]]++;
  }
  const order = ints(n);
  let filled = 0;
  for (let v = 0; v < n; v++) {
    if (v % SLICE === 0) yield;
    if (!missing[v]) order[filled++] = v;
  }
  for (let k = 0; k < filled; k++) {
    if (k % SLICE === 0) yield;
    const end = start[order[k] + 1];
    for (let e = start[order[k]]; e < end; e++) if (--missing[item[e]] === 0) order[filled++] = item[e];
  }
  for (let v = 0; filled < n; v++) if (missing[v] > 0) order[filled++] = v;
  return order;
}
