/**
 * The line on which all groups are intervals: the drawn nodes in the order in which the forward pass made them.
 *
 * It is always a topological order, inputs first. Contracting disjoint intervals of such an order can never make a
 * cycle, whatever the groups are. On real graphs it is the order of the sequence numbers. Where these are unknown,
 * repeated (threads) or contradict an edge, the order stays as close to them as the edges allow.
 */
import { doubles, ints } from "../arrays.ts";
import { topological } from "../layout/types.ts";
import type { Graph } from "../model.ts";
import type { Slices } from "../slices.ts";
import { usersOf } from "./focus.ts";

/** Indices of the nodes with `drawn[v]`, inputs first. */
export function* forwardOrder(graph: Graph, drawn: Uint8Array): Slices<Int32Array> {
  // Nodes are numbered from the losses up: of nodes with equal numbers, the one found later was made earlier.
  const backwards = ints(graph.n).map((_, i) => graph.n - 1 - i);
  const order = yield* sorted(backwards, graph.seq, drawn);
  yield;
  if (followsEdges(graph, drawn, order)) return order;
  yield;
  // A node with a smaller number than one of its targets comes right after that target.
  const users = usersOf(graph);
  yield;
  const byEdges = yield* topological(users);
  const seq = graph.seq.slice();
  for (const v of byEdges) {
    if (!drawn[v]) continue;
    for (let k = users.start[v]; k < users.start[v + 1]; k++) seq[users.item[k]] = Math.max(seq[users.item[k]], seq[v]);
  }
  yield;
  return yield* sorted(byEdges, seq, drawn);
}

/** The drawn ones of `nodes`, sorted by sequence number; nodes with equal numbers stay in their order. */
function* sorted(nodes: Int32Array, seq: Float64Array, drawn: Uint8Array): Slices<Int32Array> {
  const n = nodes.length;
  const keys = doubles(n);
  let count = 0;
  let least = seq[0];
  for (let v = 1; v < n; v++) if (seq[v] < least) least = seq[v];
  // One number holds both keys: a typed array sorts numbers many times faster than a comparator does.
  for (let i = 0; i < n; i++) if (drawn[nodes[i]]) keys[count++] = (seq[nodes[i]] - least) * n + i;
  yield;
  keys.subarray(0, count).sort();
  const order = ints(count);
  for (let i = 0; i < count; i++) order[i] = nodes[keys[i] % n];
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
