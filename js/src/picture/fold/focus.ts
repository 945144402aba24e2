/** Parts of the graph that a user asks to see alone. All pure: node masks. */
import type { Graph } from "../model.ts";
import * as SLOT from "../slot.ts";
import type { Focus } from "./types.ts";

/** 1 for every node in focus. An unknown uid gives an empty picture, never an error. */
export function focusMask(graph: Graph, focus: Focus): Uint8Array {
  switch (focus.kind) {
    case "around":
      return around(graph, focus.uid, focus.levels);
    case "path":
      return between(graph, focus.from, focus.to);
    case "root":
      return reachFrom(graph, focus.uid);
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

function reachFrom(graph: Graph, uid: number): Uint8Array {
  const mask = new Uint8Array(graph.n);
  const start = graph.indexOf.get(uid);
  if (start === undefined) return mask;
  const stack = [start];
  mask[start] = 1;
  for (let v = stack.pop(); v !== undefined; v = stack.pop()) {
    for (let e = graph.edgeStart[v]; e < graph.edgeStart[v + 1]; e++) {
      const t = graph.edgeTo[e];
      if (mask[t]) continue;
      mask[t] = 1;
      stack.push(t);
    }
  }
  return mask;
}

/** Nodes from which `uid` is reached, itself included. */
function reachedBy(graph: Graph, uid: number): Uint8Array {
  const mask = new Uint8Array(graph.n);
  const target = graph.indexOf.get(uid);
  if (target === undefined) return mask;
  mask[target] = 1;
  const users = usersOf(graph);
  const stack = [target];
  for (let v = stack.pop(); v !== undefined; v = stack.pop()) {
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      if (mask[users.item[k]]) continue;
      mask[users.item[k]] = 1;
      stack.push(users.item[k]);
    }
  }
  return mask;
}

/** Every node on any path between two, whichever of them stands lower. */
function between(graph: Graph, a: number, b: number): Uint8Array {
  const both = (from: number, to: number) => {
    const down = reachFrom(graph, from);
    const up = reachedBy(graph, to);
    let any = false;
    for (let v = 0; v < graph.n; v++) any = (down[v] &= up[v]) === 1 || any;
    return any ? down : null;
  };
  return both(a, b) ?? both(b, a) ?? new Uint8Array(graph.n);
}

function around(graph: Graph, uid: number, levels: number): Uint8Array {
  const mask = new Uint8Array(graph.n);
  const centre = graph.indexOf.get(uid);
  if (centre === undefined) return mask;
  const users = usersOf(graph);
  mask[centre] = 1;
  let ring = [centre];
  for (let level = 0; level < levels && ring.length; level++) {
    const next: number[] = [];
    const visit = (v: number) => {
      if (mask[v]) return;
      mask[v] = 1;
      next.push(v);
    };
    for (const v of ring) {
      for (let e = graph.edgeStart[v]; e < graph.edgeStart[v + 1]; e++) visit(graph.edgeTo[e]);
      for (let k = users.start[v]; k < users.start[v + 1]; k++) visit(users.item[k]);
    }
    ring = next;
  }
  return mask;
}

/** Who uses a node, in compressed rows. */
export function usersOf(graph: Graph): { start: Int32Array; item: Int32Array } {
  const { n, edgeStart, edgeTo } = graph;
  const start = new Int32Array(n + 1);
  for (let e = 0; e < edgeTo.length; e++) start[edgeTo[e] + 1]++;
  for (let v = 0; v < n; v++) start[v + 1] += start[v];
  const item = new Int32Array(edgeTo.length);
  const next = start.slice(0, n);
  for (let v = 0; v < n; v++) for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) item[next[edgeTo[e]]++] = v;
  return { start, item };
}
