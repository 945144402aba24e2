/** Nodes that are drawn as badges of their users: leaves, and nodes that only prepare a leaf for its single use. */
import { bytes, ints } from "../arrays.ts";
import { type Graph, KIND } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";

export interface Badges {
  /** 1: the node is no box of its own. A leaf without users, or at which a call began, is a box. */
  isBadge: Uint8Array;
  /** Preparation nodes and leaves of a node, in the order of its edges. */
  preparedStart: Int32Array;
  prepared: Int32Array;
  leafStart: Int32Array;
  leaf: Int32Array;
}

/** Nodes read between two pauses. */
const SLICE = 16384;

/** Operations that change only the shape or the type of a parameter. */
const PREPARATION =
  /^(T|Transpose|Permute|View|UnsafeView|ReshapeAlias|Expand|ToCopy|Alias|Unsqueeze|Squeeze|AsStrided|Contiguous|Detach)Backward\d*$/;

export function* findBadges(graph: Graph, keep: ReadonlySet<number>): Slices<Badges> {
  const { edgeTo } = graph;
  const users = ints(graph.n);
  for (let e = 0; e < edgeTo.length; e++) users[edgeTo[e]]++;
  yield;
  const isBadge = bytes(graph.n);
  let candidates = yield* leavesAndCandidates(graph, keep, users, isBadge);
  // A chain of preparation nodes grows from the leaf, by one node per round.
  for (let left = -1; left !== candidates.length; yield) {
    left = candidates.length;
    candidates = candidates.filter((v) => {
      isBadge[v] = isBadge[edgeTo[graph.edgeStart[v]]];
      return !isBadge[v];
    });
  }
  return { isBadge, ...(yield* attach(graph, isBadge)) };
}

/** Marks the leaves; returns the nodes that would be preparation if they came right after a leaf. */
function* leavesAndCandidates(
  graph: Graph,
  keep: ReadonlySet<number>,
  users: Int32Array,
  isBadge: Uint8Array,
): Slices<number[]> {
  const { n, edgeStart, kind, name, uid } = graph;
  const stands = bytes(n);
  for (const { node } of graph.owners) stands[node] = 1;
  for (const { node } of graph.roots) if (node >= 0) stands[node] = 2;
  const prepares = graph.names.map((each) => PREPARATION.test(each));
  const candidates: number[] = [];
  const classify = (v: number) => {
    if (kind[v] === KIND.accumulate) {
      if (users[v] > 0 && stands[v] < 2) isBadge[v] = 1;
    } else if (prepares[name[v]] && users[v] === 1 && !stands[v] && edgeStart[v + 1] - edgeStart[v] === 1) {
      if (!keep.has(uid[v])) candidates.push(v);
    }
  };
  yield* eachSlice(n, classify, SLICE);
  return candidates;
}

/** Lists the badges above every node that is a box. */
function* attach(graph: Graph, isBadge: Uint8Array): Slices<Omit<Badges, "isBadge">> {
  const { n, edgeStart, edgeTo, kind } = graph;
  const preparedStart = ints(n + 1);
  const leafStart = ints(n + 1);
  const prepared: number[] = [];
  const leaf: number[] = [];
  const follow = (v: number) => {
    for (let e = edgeStart[v]; e < edgeStart[v + 1] && !isBadge[v]; e++) {
      let at = edgeTo[e];
      if (!isBadge[at]) continue;
      while (kind[at] !== KIND.accumulate) {
        prepared.push(at);
        at = edgeTo[edgeStart[at]];
      }
      if (leaf.indexOf(at, leafStart[v]) < 0) leaf.push(at);
    }
    preparedStart[v + 1] = prepared.length;
    leafStart[v + 1] = leaf.length;
  };
  yield* eachSlice(n, follow, SLICE);
  return { preparedStart, prepared: Int32Array.from(prepared), leafStart, leaf: Int32Array.from(leaf) };
}
