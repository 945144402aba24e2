/** Parts of the graph that a user asks to see alone, as node masks. All functions are pure. */
import { bytes, ints } from "../arrays.ts";
import { collect, type Rows } from "../layout/types.ts";
import type { Graph } from "../model.ts";
import * as SLOT from "../slot.ts";
import type { Focus } from "./types.ts";

/** Number of steps of "around". */
const AROUND = 2;

/** 1 for every node in focus. An unknown uid gives an empty picture, never an error. */
export function focusMask(graph: Graph, focus: Focus): Uint8Array {
  const targets = targetsOf(graph);
  switch (focus.kind) {
    case "around":
      return spread(graph, focus.from, [targets, usersOf(graph)], AROUND);
    case "root":
      return spread(graph, focus.from, [targets]);
    case "inside":
      return where(graph, (v) => focus.uids.has(graph.uid[v]));
    case "freed":
      return where(graph, (v) => {
        for (let s = graph.slotStart[v]; s < graph.slotStart[v + 1]; s++)
          if (graph.slotState[s] === SLOT.freed) return true;
        return false;
      });
    case "cell":
      return where(graph, (v) => {
        const place = graph.places[graph.place[v]];
        return place && (place.cell === focus.from || place.outerCell === focus.from);
      });
  }
}

function where(graph: Graph, test: (v: number) => unknown): Uint8Array {
  const mask = bytes(graph.n);
  for (let v = 0; v < graph.n; v++) if (test(v)) mask[v] = 1;
  return mask;
}

/** 1 for the node of a uid and all nodes that can be reached from it along `lists` in at most `levels` steps. */
function spread(
  graph: Graph,
  uid: number | null,
  lists: readonly Rows[],
  levels = Number.POSITIVE_INFINITY,
): Uint8Array {
  const mask = bytes(graph.n);
  const next: number[] = [];
  const visit = (v: number) => {
    if (v < 0 || mask[v]) return;
    mask[v] = 1;
    next.push(v);
  };
  visit(graph.indexOf(uid));
  for (let level = 0, at = 0; level < levels && at < next.length; level++) {
    for (const end = next.length; at < end; at++) {
      const v = next[at];
      for (const { start, item } of lists) for (let k = start[v]; k < start[v + 1]; k++) visit(item[k]);
    }
  }
  return mask;
}

/** Targets of each node (what it is computed from), in compressed rows. */
export const targetsOf = ({ edgeStart: start, edgeTo: item }: Graph): Rows => ({ start, item });

/** Users of each node, in compressed rows. */
export function usersOf(graph: Graph): Rows {
  const { n, edgeStart, edgeTo } = graph;
  const user = ints(edgeTo.length);
  for (let v = 0; v < n; v++) user.fill(v, edgeStart[v], edgeStart[v + 1]);
  return collect(n, edgeTo, user);
}
