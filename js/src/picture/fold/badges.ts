/** Which nodes are drawn as badges of their users: leaves, and what only prepares a leaf for its one use. */
import { type Graph, KIND } from "../model.ts";

export interface Badges {
  /** 1: not a box of its own. A leaf without users, or from which a call began, is. */
  isBadge: Uint8Array;
  /** Preparation nodes and leaves of a node, in the order of its edges. */
  preparedStart: Int32Array;
  prepared: Int32Array;
  leafStart: Int32Array;
  leaf: Int32Array;
}

/** Operations that change how a parameter is looked at and nothing else. */
const PREPARATION =
  /^(T|Transpose|Permute|View|UnsafeView|ReshapeAlias|Expand|ToCopy|Alias|Unsqueeze|Squeeze|AsStrided|Contiguous|Detach)Backward\d*$/;

export function findBadges(graph: Graph, keep: ReadonlySet<number>): Badges {
  const { n, edgeStart, edgeTo } = graph;
  const users = new Int32Array(n);
  for (let e = 0; e < edgeTo.length; e++) users[edgeTo[e]]++;
  const isRoot = new Uint8Array(n);
  for (const root of graph.roots) if (root.node >= 0) isRoot[root.node] = 1;
  const named = new Uint8Array(n);
  for (const owner of graph.owners) named[owner.node] = 1;
  const prepares = graph.names.map((name) => PREPARATION.test(name));

  const isBadge = new Uint8Array(n);
  for (let v = 0; v < n; v++) {
    if (graph.kind[v] === KIND.accumulate && users[v] > 0 && !isRoot[v]) isBadge[v] = 1;
  }
  // A chain of preparation is found from the leaf on, one link per round.
  for (let changed = true; changed; ) {
    changed = false;
    for (let v = 0; v < n; v++) {
      if (isBadge[v] || !prepares[graph.name[v]] || users[v] !== 1 || isRoot[v] || named[v]) continue;
      if (edgeStart[v + 1] - edgeStart[v] !== 1 || !isBadge[edgeTo[edgeStart[v]]] || keep.has(graph.uid[v])) continue;
      isBadge[v] = 1;
      changed = true;
    }
  }
  return { isBadge, ...attach(graph, isBadge) };
}

/** Follows the badges above every other node. */
function attach(graph: Graph, isBadge: Uint8Array): Omit<Badges, "isBadge"> {
  const { n, edgeStart, edgeTo } = graph;
  const preparedStart = new Int32Array(n + 1);
  const leafStart = new Int32Array(n + 1);
  const prepared: number[] = [];
  const leaf: number[] = [];
  for (let v = 0; v < n; v++) {
    if (!isBadge[v]) {
      for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) {
        let at = edgeTo[e];
        if (!isBadge[at]) continue;
        while (graph.kind[at] !== KIND.accumulate) {
          prepared.push(at);
          at = edgeTo[edgeStart[at]];
        }
        if (leaf.indexOf(at, leafStart[v]) < 0) leaf.push(at);
      }
    }
    preparedStart[v + 1] = prepared.length;
    leafStart[v + 1] = leaf.length;
  }
  return { preparedStart, prepared: Int32Array.from(prepared), leafStart, leaf: Int32Array.from(leaf) };
}
