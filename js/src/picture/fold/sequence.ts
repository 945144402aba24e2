/**
 * The line on which all groups are intervals: the drawn nodes in the order in which the forward pass made them.
 *
 * It is always a topological order, inputs first. Contracting disjoint intervals of such an order can never make a
 * cycle, whatever the groups are. On real graphs it is the order of the sequence numbers; where these are unknown,
 * repeated (threads) or against an edge, a heap keeps as near to it as the edges allow.
 */
import { doubles, ints } from "../arrays.ts";
import type { Graph } from "../model.ts";
import type { Slices } from "../slices.ts";
import { usersOf } from "./focus.ts";

/** Nodes taken from the heap between two pauses. */
const SLICE = 8192;

/** Indices of the nodes with `drawn[v]`, inputs first. */
export function* forwardOrder(graph: Graph, drawn: Uint8Array): Slices<Int32Array> {
  const order = bySequence(graph, drawn);
  yield;
  return followsEdges(graph, drawn, order) ? order : yield* byHeap(graph, drawn, order.length);
}

function bySequence(graph: Graph, drawn: Uint8Array): Int32Array {
  const { n, seq } = graph;
  let count = 0;
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let v = 0; v < n; v++) {
    if (!drawn[v]) continue;
    count++;
    if (seq[v] < least) least = seq[v];
    if (seq[v] > most) most = seq[v];
  }
  const order = ints(count);
  if (!count) return order;
  // Discovery runs from the losses up: among equals the later found is the earlier made.
  if (most - least < 4 * n + 1024) {
    const start = ints(most - least + 2);
    for (let v = 0; v < n; v++) if (drawn[v]) start[seq[v] - least + 1]++;
    for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
    for (let v = n - 1; v >= 0; v--) if (drawn[v]) order[start[seq[v] - least]++] = v;
  } else {
    const keys = doubles(count);
    let at = 0;
    for (let v = n - 1; v >= 0; v--) if (drawn[v]) keys[at++] = (seq[v] - least) * n + (n - 1 - v);
    keys.sort();
    for (let i = 0; i < count; i++) order[i] = n - 1 - (keys[i] % n);
  }
  return order;
}

function followsEdges(graph: Graph, drawn: Uint8Array, order: Int32Array): boolean {
  const { edgeStart, edgeTo } = graph;
  const position = ints(graph.n);
  for (let i = 0; i < order.length; i++) position[order[i]] = i;
  for (const v of order) {
    for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) {
      if (drawn[edgeTo[e]] && position[edgeTo[e]] >= position[v]) return false;
    }
  }
  return true;
}

/** Kahn's algorithm, always taking the ready node with the smallest sequence number; one without follows its targets. */
function* byHeap(graph: Graph, drawn: Uint8Array, count: number): Slices<Int32Array> {
  const { n, seq, edgeStart, edgeTo } = graph;
  const users = usersOf(graph);
  const waiting = ints(n);
  const key = seq.slice();
  const heap: number[] = [];
  const before = (a: number, b: number) => key[a] < key[b] || (key[a] === key[b] && a > b);
  for (let v = 0; v < n; v++) {
    if (!drawn[v]) continue;
    for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) if (drawn[edgeTo[e]] && edgeTo[e] !== v) waiting[v]++;
    if (waiting[v] === 0) push(heap, v, before);
  }
  yield;
  const order = ints(count);
  let filled = 0;
  let stuck = 0;
  while (filled < count) {
    if (filled % SLICE === SLICE - 1) yield;
    if (!heap.length) {
      // A cycle cannot come from autograd; should one arrive, the first node still waiting goes next.
      while (!drawn[stuck] || waiting[stuck] <= 0) stuck++;
      push(heap, stuck, before);
    }
    const v = pop(heap, before);
    waiting[v] = -1;
    order[filled++] = v;
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      const user = users.item[k];
      if (seq[user] < 0 && key[v] > key[user]) key[user] = key[v];
      if (waiting[user] > 0 && --waiting[user] === 0) push(heap, user, before);
    }
  }
  return order;
}

function push(heap: number[], v: number, before: (a: number, b: number) => boolean): void {
  let i = heap.length;
  heap.push(v);
  while (i > 0) {
    const up = (i - 1) >> 1;
    if (!before(v, heap[up])) break;
    heap[i] = heap[up];
    i = up;
  }
  heap[i] = v;
}

function pop(heap: number[], before: (a: number, b: number) => boolean): number {
  const top = heap[0];
  const v = heap.pop() as number;
  const size = heap.length;
  if (!size) return top;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= size) break;
    if (child + 1 < size && before(heap[child + 1], heap[child])) child++;
    if (!before(heap[child], v)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = v;
  return top;
}
