/** What every part of the scene needs to know, worked out once: who reaches what, who is gone, which names are shown. */

import type { Box, Folded } from "../fold/index.ts";
import type { Call, Graph, Root } from "../model.ts";
import type { SceneOptions } from "../scene.ts";

/** How a root is drawn wherever it appears. */
export interface RootView {
  root: Root;
  /** Its bit in reach masks. */
  bit: number;
  /** Class that carries the hue. */
  hue: string;
  /** Stroke style, 1 to 4. */
  style: number;
  gone: boolean;
  /** Beside the name where other roots have the same: `iteration 1`. */
  sub: string;
}

/** 3: everything; 2: names and states; 1: states; 0: a bar per box. */
export type Level = 0 | 1 | 2 | 3;

export interface Context {
  graph: Graph;
  folded: Folded;
  options: SceneOptions;
  level: Level;
  roots: RootView[];
  /** By node: the roots that reach it, as a mask. */
  nodeReach: Uint32Array;
  /** Per box: bits of the roots that reach it. */
  reach: Uint32Array;
  /** Per box: whether two roots meet in one of its nodes. */
  shared: Uint8Array;
  /** Per box: whether all of it is gone. */
  ghost: Uint8Array;
  /** Per box: the node it stands for, the first one of a group. */
  main: Int32Array;
  /** Per box: boxes above (towards the inputs) and below. */
  above: number[][];
  below: number[][];
  /** Node -> names that its tags show. */
  names: Map<number, string[]>;
  /** Node (an old one, at the border) -> the path that carried it over. */
  carriers: Map<number, string>;
  /** uid -> position in engine order (from 1) of the call whose failure is shown. */
  engineOrder: Map<number, number>;
  raised: ReadonlySet<number>;
  /** uid -> what is written beside the dashed octagon. */
  wouldRaise: ReadonlyMap<number, string>;
  /** Slots that the forecast call would free. */
  wouldFree: ReadonlySet<number>;
}

const MAX_ROOTS = 31;
/** Beyond this many nodes, engine order is not written beside each. */
const MAX_ORDER_NOTES = 12;

/** Text of 10.5 px stays above 9 down to 0.86, the large names down to 0.55. */
export function levelOf(scale: number): Level {
  if (scale >= 0.86) return 3;
  if (scale >= 0.55) return 2;
  return scale >= 0.3 ? 1 : 0;
}

export function makeContext(graph: Graph, folded: Folded, options: SceneOptions): Context {
  const roots = rootViews(graph);
  const nodes = reachOfNodes(graph, roots);
  const boxes = folded.boxes;
  const reach = new Uint32Array(boxes.length);
  const shared = new Uint8Array(boxes.length);
  const ghost = new Uint8Array(boxes.length);
  const main = new Int32Array(boxes.length);
  boxes.forEach((box, b) => {
    let gone = 1;
    for (const node of box.nodes) {
      const mask = nodes[node]!;
      reach[b]! |= mask;
      if (mask & (mask - 1)) shared[b] = 1;
      if (!graph.ghost[node]) gone = 0;
    }
    ghost[b] = box.nodes.length ? gone : 0;
    main[b] = mainNode(graph, box);
  });
  const above: number[][] = boxes.map(() => []);
  const below: number[][] = boxes.map(() => []);
  for (let e = 0; e + 1 < folded.edges.length; e += 2) {
    const from = folded.edges[e]!;
    const to = folded.edges[e + 1]!;
    above[from]!.push(to);
    below[to]!.push(from);
  }
  const last = shownFailure(graph);
  return {
    graph,
    folded,
    options,
    level: levelOf(options.scale ?? 1),
    roots,
    nodeReach: nodes,
    reach,
    shared,
    ghost,
    main,
    above,
    below,
    names: tagNames(graph),
    carriers: carriersByNode(graph),
    engineOrder: engineOrder(last),
    raised: raisedUids(graph, last),
    wouldRaise: wouldRaise(graph, options),
    wouldFree: wouldFree(graph, options),
  };
}

function mainNode(graph: Graph, box: Box): number {
  if (box.kind === "node") {
    for (const node of box.nodes) if (box.key === `n${graph.uid[node]}`) return node;
  }
  return box.nodes[0] ?? -1;
}

function rootViews(graph: Graph): RootView[] {
  const shown = graph.roots
    .filter((root) => root.node >= 0)
    .sort((a, b) => a.order - b.order || a.id - b.id)
    .slice(0, MAX_ROOTS);
  return shown.map((root, position) => {
    const order = root.order;
    return {
      root,
      bit: 1 << position,
      hue: order < 8 ? `r${(order % 4) + 1}` : "r0",
      style: order < 8 ? ((order + (order >> 2)) % 4) + 1 : 1,
      gone: !root.alive,
      sub: shown.some((other) => other !== root && other.path === root.path) ? generation(graph, root) : "",
    };
  });
}

/** What tells roots of one name apart: the iteration, else the cell. */
function generation(graph: Graph, root: Root): string {
  const place = graph.places[graph.place[root.node]!];
  if (!place) return "";
  if (place.iteration !== null) return `iteration ${place.iteration}`;
  return place.cell === null ? "" : `In[${place.cell}]`;
}

function reachOfNodes(graph: Graph, roots: readonly RootView[]): Uint32Array {
  const reach = new Uint32Array(graph.n);
  const stack: number[] = [];
  for (const { root, bit } of roots) {
    stack.push(root.node);
    while (stack.length) {
      const node = stack.pop()!;
      if (reach[node]! & bit) continue;
      reach[node]! |= bit;
      for (let e = graph.edgeStart[node]!; e < graph.edgeStart[node + 1]!; e++) stack.push(graph.edgeTo[e]!);
    }
  }
  return reach;
}

/** Holders that nobody chose a name for are shown only where there is no other. */
const UNCHOSEN = new Set(["out", "traceback", "frame", "other", "hook", "grad"]);

function tagNames(graph: Graph): Map<number, string[]> {
  const found = new Map<number, { chosen: string[]; others: string[] }>();
  const flagged = new Set(graph.roots.filter((root) => root.alive).map((root) => `${root.node} ${root.path}`));
  for (const owner of graph.owners) {
    if (owner.node < 0 || graph.leaves.has(owner.node) || flagged.has(`${owner.node} ${owner.path}`)) continue;
    let names = found.get(owner.node);
    if (!names) found.set(owner.node, (names = { chosen: [], others: [] }));
    const into = UNCHOSEN.has(owner.kind) ? names.others : names.chosen;
    if (!into.includes(owner.path)) into.push(owner.path);
  }
  const names = new Map<number, string[]>();
  for (const [node, { chosen, others }] of found) names.set(node, chosen.length ? chosen : others);
  for (const [node, carrier] of carriersByNode(graph)) {
    names.set(node, [carrier, ...(names.get(node) ?? []).filter((name) => name !== carrier)]);
  }
  return names;
}

function carriersByNode(graph: Graph): Map<number, string> {
  const carriers = new Map<number, string>();
  for (const { oldUid, path } of graph.boundary) {
    const node = graph.indexOf.get(oldUid);
    if (node !== undefined && path && !carriers.has(node)) carriers.set(node, path);
  }
  return carriers;
}

/** The call whose failure the picture tells: the newest one, if it raised. */
function shownFailure(graph: Graph): Call | undefined {
  const last = graph.calls[graph.calls.length - 1];
  return last?.result === "raised" ? last : undefined;
}

function engineOrder(call: Call | undefined): Map<number, number> {
  const order = new Map<number, number>();
  if (!call?.executed || call.executed.length > MAX_ORDER_NOTES) return order;
  call.executed.forEach((uid, position) => {
    order.set(uid, position + 1);
  });
  if (call.failedUid !== null) order.set(call.failedUid, call.executedCount + 1);
  return order;
}

function raisedUids(graph: Graph, call: Call | undefined): Set<number> {
  const uids = new Set<number>();
  if (call && call.failedUid !== null) uids.add(call.failedUid);
  for (const finding of graph.findings) {
    if (finding.severity === "error" && finding.uid !== null) uids.add(finding.uid);
  }
  return uids;
}

function wouldRaise(graph: Graph, options: SceneOptions): Map<number, string> {
  const uids = new Map<number, string>();
  for (const finding of graph.findings) {
    if (finding.severity !== "warning" || finding.uid === null) continue;
    if (finding.kind === "second_backward" || finding.kind === "inplace") uids.set(finding.uid, "would raise here");
  }
  const forecast = options.forecast;
  if (forecast && forecast.failsAt !== null) uids.set(forecast.failsAt, forecast.note ?? "would raise here");
  return uids;
}

function wouldFree(graph: Graph, options: SceneOptions): Set<number> {
  const slots = new Set<number>();
  for (const [uid, position] of options.forecast?.frees ?? []) {
    const node = graph.indexOf.get(uid);
    if (node === undefined) continue;
    const slot = graph.slotStart[node]! + position;
    if (slot < graph.slotStart[node + 1]!) slots.add(slot);
  }
  return slots;
}

/** The roots of a reach mask, in the order in which their lines run side by side. */
export function rootsOf(context: Context, mask: number): RootView[] {
  return context.roots.filter((view) => mask & view.bit);
}

/** Whether a line of this root is drawn faintly because another one is looked at. */
export function isDimmed(context: Context, view: RootView | null): boolean {
  const only = context.options.onlyRoot;
  return only !== null && only !== undefined && view?.root.id !== only;
}

/** Whether a call began at this root. Two names of one node: the one that the call was made by. */
export function startsAt(context: Context, call: Call, view: RootView): boolean {
  const { graph, roots } = context;
  if (!call.rootUids.includes(graph.uid[view.root.node]!)) return false;
  if (call.roots.includes(view.root.path)) return true;
  return !roots.some(({ root }) => root.node === view.root.node && call.roots.includes(root.path));
}

export function rootOfCall(context: Context, call: Call): RootView | undefined {
  return context.roots.find((view) => startsAt(context, call, view));
}

/** Hue class of call n. */
export function hueOfCall(context: Context, n: number): string {
  const call = context.graph.calls.find((one) => one.n === n);
  return (call && rootOfCall(context, call)?.hue) || "r0";
}
