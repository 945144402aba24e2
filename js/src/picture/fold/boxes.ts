/** Contents of boxes and edges between them, after each node has been assigned to a box. */
import { ints } from "../arrays.ts";
import { type Graph, KIND } from "../model.ts";
import type { Slices } from "../slices.ts";
import * as SLOT from "../slot.ts";
import type { Badges } from "./badges.ts";
import type { Box } from "./types.ts";

type Contents = Pick<Box, "count" | "leaves" | "bytes">;

/** Counts the contents of boxes one after the other; storages are counted once per box. */
export class Counter {
  private readonly graph: Graph;
  private readonly badges: Badges;
  private readonly seenStorage: Int32Array;
  private readonly seenLeaf: Int32Array;
  private stamp = 0;

  constructor(graph: Graph, badges: Badges) {
    this.graph = graph;
    this.badges = badges;
    this.seenStorage = ints(graph.storageBytes.length);
    this.seenLeaf = ints(graph.n);
  }

  contents(nodes: Int32Array): Contents {
    const { leafStart, leaf, preparedStart, prepared } = this.badges;
    this.stamp++;
    let count = 0;
    let bytes = 0;
    const used: number[] = [];
    for (const v of nodes) {
      if (this.graph.kind[v] !== KIND.accumulate) count++;
      bytes += this.bytesOf(v);
      for (let k = preparedStart[v]; k < preparedStart[v + 1]; k++) {
        count++;
        bytes += this.bytesOf(prepared[k]);
      }
      for (let k = leafStart[v]; k < leafStart[v + 1]; k++) {
        if (this.seenLeaf[leaf[k]] === this.stamp) continue;
        this.seenLeaf[leaf[k]] = this.stamp;
        used.push(leaf[k]);
      }
    }
    return { count, leaves: used.length ? Int32Array.from(used) : NONE, bytes };
  }

  /** Bytes held by a node, without storages already counted for this box. */
  private bytesOf(v: number): number {
    const { slotStart, slotState, slotBytes, slotStorage, storageBytes } = this.graph;
    let bytes = 0;
    for (let s = slotStart[v]; s < slotStart[v + 1]; s++) {
      const state = slotState[s];
      if (state !== SLOT.held && state !== SLOT.stale && state !== SLOT.packed) continue;
      const storage = slotStorage[s];
      if (storage < 0) bytes += slotBytes[s];
      else if (this.seenStorage[storage] !== this.stamp) {
        this.seenStorage[storage] = this.stamp;
        bytes += storageBytes[storage];
      }
    }
    return bytes;
  }
}

/** Shared by all boxes without leaves, which are the most: an array for each would cost time. */
const NONE = ints(0);

const SLICE = 4096;

/** One edge for each pair of boxes with a graph edge between them, in the order of the boxes and of next_functions. */
export function* boxEdges(graph: Graph, boxes: readonly Box[], boxOf: Int32Array): Slices<Int32Array> {
  const { edgeStart, edgeTo } = graph;
  const edges = ints(2 * edgeTo.length);
  /** Per box: the last box with an edge to it. */
  const from = ints(boxes.length).fill(-1);
  let used = 0;
  for (let a = 0; a < boxes.length; a++) {
    if (a % SLICE === SLICE - 1) yield;
    for (const v of boxes[a].nodes) {
      for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) {
        const b = boxOf[edgeTo[e]];
        // A leaf without a box of its own: -1.
        if (b < 0 || b === a || from[b] === a) continue;
        from[b] = a;
        edges[used++] = a;
        edges[used++] = b;
      }
    }
  }
  return edges.slice(0, used);
}
