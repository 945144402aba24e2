/** Boxes and the edges between them, once it is decided which nodes stand in which box. */
import { type Graph, KIND } from "../model.ts";
import type { Slices } from "../slices.ts";
import * as SLOT from "../slot.ts";
import type { Badges } from "./badges.ts";
import type { Box } from "./types.ts";

type Contents = Pick<Box, "count" | "leaves" | "prepared" | "held" | "freed" | "stale" | "bytes">;

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
    this.seenStorage = new Int32Array(graph.storageBytes.length);
    this.seenLeaf = new Int32Array(graph.n);
  }

  contents(nodes: Int32Array): Contents {
    const { leafStart, leaf, preparedStart, prepared } = this.badges;
    this.stamp++;
    const result: Contents = { count: 0, leaves: NONE, prepared: NONE, held: 0, freed: 0, stale: 0, bytes: 0 };
    const inside: number[] = [];
    const used: number[] = [];
    for (const v of nodes) {
      if (this.graph.kind[v] !== KIND.accumulate) result.count++;
      this.addSlots(v, result);
      for (let k = preparedStart[v]; k < preparedStart[v + 1]; k++) {
        inside.push(prepared[k]);
        this.addSlots(prepared[k], result);
      }
      for (let k = leafStart[v]; k < leafStart[v + 1]; k++) {
        if (this.seenLeaf[leaf[k]] === this.stamp) continue;
        this.seenLeaf[leaf[k]] = this.stamp;
        used.push(leaf[k]);
      }
    }
    result.count += inside.length;
    if (inside.length) result.prepared = Int32Array.from(inside);
    if (used.length) result.leaves = Int32Array.from(used);
    return result;
  }

  private addSlots(v: number, into: Contents): void {
    const { slotStart, slotState, slotBytes, slotStorage, storageBytes } = this.graph;
    for (let s = slotStart[v]; s < slotStart[v + 1]; s++) {
      const state = slotState[s];
      if (state === SLOT.freed) into.freed++;
      if (state === SLOT.stale) into.stale++;
      if (state !== SLOT.held && state !== SLOT.stale && state !== SLOT.packed) continue;
      if (state !== SLOT.stale) into.held++;
      const storage = slotStorage[s];
      if (storage < 0) into.bytes += slotBytes[s];
      else if (this.seenStorage[storage] !== this.stamp) {
        this.seenStorage[storage] = this.stamp;
        into.bytes += storageBytes[storage];
      }
    }
  }
}

const NONE = new Int32Array(0);

const SLICE = 4096;

export interface BoxEdges {
  edges: Int32Array;
  edgeStart: Int32Array;
  edgeMember: Int32Array;
}

/** One edge for each pair of boxes with a graph edge between them, in the order of the boxes and of next_functions. */
export function* boxEdges(graph: Graph, boxes: readonly Box[], boxOf: Int32Array): Slices<BoxEdges> {
  const { edgeStart: start, edgeTo } = graph;
  // A leaf on its own may stand in no box.
  const most = edgeTo.length;
  const pairOf = new Int32Array(most);
  const member = new Int32Array(most);
  const edges = new Int32Array(2 * most);
  const lastFrom = new Int32Array(boxes.length).fill(-1);
  const pairTo = new Int32Array(boxes.length);
  let pairs = 0;
  let members = 0;
  for (let a = 0; a < boxes.length; a++) {
    if (a % SLICE === SLICE - 1) yield;
    for (const v of boxes[a].nodes) {
      for (let e = start[v]; e < start[v + 1]; e++) {
        const b = boxOf[edgeTo[e]];
        if (b < 0 || b === a) continue;
        if (lastFrom[b] !== a) {
          lastFrom[b] = a;
          pairTo[b] = pairs;
          edges[2 * pairs] = a;
          edges[2 * pairs + 1] = b;
          pairs++;
        }
        pairOf[members] = pairTo[b];
        member[members++] = e;
      }
    }
  }
  yield;
  const edgeStart = new Int32Array(pairs + 1);
  for (let i = 0; i < members; i++) edgeStart[pairOf[i] + 1]++;
  for (let i = 0; i < pairs; i++) edgeStart[i + 1] += edgeStart[i];
  const next = edgeStart.slice(0, pairs);
  const edgeMember = new Int32Array(members);
  for (let i = 0; i < members; i++) edgeMember[next[pairOf[i]]++] = member[i];
  return { edges: edges.slice(0, 2 * pairs), edgeStart, edgeMember };
}
