/** Parts of the graph that a user asks to see alone. All pure: node masks. */
import type { Graph } from "../model.ts";
import * as SLOT from "../slot.ts";
import type { Focus } from "./types.ts";

/** 1 for every node in focus. An unknown uid gives an empty picture, never an error. */
export function focusMask(graph: Graph, focus: Focus): Uint8Array {
  switch (focus.kind) {
    case "around":
      return spread(graph, focus.uid, [targetsOf(graph), usersOf(graph)], focus.levels);
    case "path":
      return between(graph, focus.from, focus.to);
    case "root":
      return spread(graph, focus.uid, [targetsOf(graph)]);
    case "freed":
      return where(graph, (v) => {
        for (let s = graph.slotStart[v]; s < graph.slotStart[v + 1]; s++)
          if (graph.slotState[s] === SLOT.freed) return true;
        return false;
      });
    case "cell":
      return where(graph, (v) => {
        const place = graph.place[v] < 0 ? null : graph.places[graph.place[v]];
        return place !== null && (place.cell === focus.cell || place.outerCell === focus.cell);
      });
  }
}

function where(graph: Graph, test: (v: number) => boolean): Uint8Array {
  const mask = new Uint8Array(graph.n);
  for (let v = 0; v < graph.n; v++) if (test(v)) mask[v] = 1;
  return mask;
}

/** Lists of nodes, in compressed rows. */
interface Rows {
  start: Int32Array;
  item: Int32Array;
}

/** 1 for a node and all that is met from it along these lists, at most so many steps away. */
function spread(graph: Graph, uid: number, lists: readonly Rows[], levels = Number.POSITIVE_INFINITY): Uint8Array {
  const mask = new Uint8Array(graph.n);
  const next: number[] = [];
  const visit = (v: number | undefined) => {
    if (v === undefined || mask[v]) return;
    mask[v] = 1;
    next.push(v);
  };
  visit(graph.indexOf.get(uid));
  for (let level = 0, at = 0; level < levels && at < next.length; level++) {
    for (const end = next.length; at < end; at++) {
      const v = next[at];
      for (const { start, item } of lists) for (let k = start[v]; k < start[v + 1]; k++) visit(item[k]);
    }
  }
  return mask;
}

/** Every node on any path between two, whichever of them stands lower. */
function between(graph: Graph, a: number, b: number): Uint8Array {
  const both = (from: number, to: number) => {
    const up = spread(graph, to, [usersOf(graph)]);
    const mask = spread(graph, from, [targetsOf(graph)]).map((reached, v) => reached & up[v]);
    return mask.includes(1) ? mask : null;
  };
  return both(a, b) ?? both(b, a) ?? new Uint8Array(graph.n);
}

function targetsOf({ edgeStart, edgeTo }: Graph): Rows {
  return { start: edgeStart, item: edgeTo };
}

/** Who uses a node, in compressed rows. */
export function usersOf(graph: Graph): Rows {
  const { n, edgeStart, edgeTo } = graph;
  const start = new Int32Array(n + 1);
  for (let e = 0; e < edgeTo.length; e++) start[edgeTo[e] + 1]++;
  for (let v = 0; v < n; v++) start[v + 1] += start[v];
  const item = new Int32Array(edgeTo.length);
  const next = start.slice(0, n);
  for (let v = 0; v < n; v++) for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) item[next[edgeTo[e]]++] = v;
  return { start, item };
}
