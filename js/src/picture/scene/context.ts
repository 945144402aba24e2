/** Facts that all parts of the scene need, computed once: which roots reach a box, what is gone, which names show. */

import { bytes, ints } from "../arrays.ts";
import { targetsOf } from "../fold/focus.ts";
import { boxOfUid, type Folded } from "../fold/index.ts";
import { collect, type Rows, rowOf, topological } from "../layout/types.ts";
import { rootLook, SLOT_LOOKS } from "../marks.ts";
import type { Measure } from "../measure.ts";
import { type Call, type Graph, isForecast, type Owner, orderOfCall, placeOf, type Root } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import * as SLOT from "../slot.ts";
import { whenText } from "../words.ts";
import type { Card, LeafPart, Level, RootView, SceneOptions } from "./types.ts";

export interface Context {
  graph: Graph;
  folded: Folded;
  options: SceneOptions;
  measure: Measure;
  level: Level;
  roots: RootView[];
  /** Per node: bits of the roots that reach it. */
  nodeReach: Uint32Array;
  /** Per box: bits of the roots that reach it. */
  reach: Uint32Array;
  /** Per box: whether two or more roots reach one of its nodes. */
  shared: Uint8Array;
  /** Per box: whether all its nodes are gone. */
  ghost: Uint8Array;
  /** Per box: its first node, which stands for it; -1: it has none. */
  main: Int32Array;
  /** Per box: boxes above (towards the inputs) and below. */
  above: Rows;
  below: Rows;
  /** Node -> names that its tags show. */
  names: Map<number, string[]>;
  /** Old node at the border -> path of its carrier. */
  carriers: Map<number, string>;
  /** uid -> position in engine order (from 1) of the call whose failure is shown. */
  engineOrder: Map<number, number>;
  raised: ReadonlySet<number>;
  /** uid -> text beside the dashed octagon. */
  wouldRaise: ReadonlyMap<number, string>;
  /** Per slot: index of SLOT_LOOKS; its state, or "will" if the forecast call would free it. */
  looks: Uint8Array;
  /** Per box: whether the current search found something in it; null: there is no search. */
  hit: Uint8Array | null;
  /** Whether the code rail is drawn. */
  rail: boolean;
  /** Bytes of the box that holds most, for the bars; 0: there are no bars. */
  mostBytes: number;
  /** Whether no two boxes stand side by side: then cards may be wide. */
  oneLane: boolean;
  /** Cards of groups, kept because counting takes long. Cards of single nodes are made again for each drawing. */
  cards: Map<number, Card>;
  /** Per box: the badges of its leaves. */
  leaves: LeafPart[][];
  /** Number of boxes in a slice of work: fewer where boxes hold many nodes. */
  pace: number;
}

/** Number of roots that get lines of their own: one bit of a mask each. */
const MAX_LINES = 31;
/** The engine order is written beside nodes only if the call ran at most this many. */
const MAX_ORDER_NOTES = 12;

/** From this scale on everything is written out: the smallest text, of 11 px, has 9 px on screen. */
export const FULL_SCALE = 0.82;
/** Level of detail at a scale. The large names have 9 px on screen down to 0.55. */
export const levelOf = (scale: number) => [0.3, 0.55, FULL_SCALE].filter((least) => scale >= least).length as Level;

/** Classes of a text: below level 3 it is written larger. */
export const sized = ({ level }: Pick<Context, "level">, look: string) => (level === 3 ? look : `${look} far`);

export function* contextSlices(graph: Graph, folded: Folded, options: SceneOptions): Slices<Context> {
  const { boxes } = folded;
  const n = boxes.length;
  const roots = rootViews(graph, folded, options.inner);
  const nodeReach = yield* reachOfNodes(graph, roots);
  const reach = new Uint32Array(n);
  const shared = bytes(n);
  const ghost = bytes(n);
  const main = ints(n);
  const pace = Math.ceil((48 * n) / (graph.n + 1));
  yield* eachSlice(
    n,
    (b) => {
      const { nodes } = boxes[b]!;
      ghost[b] = nodes.length && 1;
      for (const node of nodes) {
        const mask = nodeReach[node]!;
        reach[b]! |= mask;
        if (mask & (mask - 1)) shared[b] = 1;
        if (!graph.ghost[node]) ghost[b] = 0;
      }
      main[b] = nodes[0] ?? -1;
    },
    pace,
  );
  const [from, to] = sides(folded.edges);
  // Only the failure of the newest call is shown.
  const [failed] = graph.calls.slice(-1).filter((call) => call.result === "raised");
  const carriers = carriersByNode(graph);
  yield;
  const names = tagNames(graph, carriers);
  yield;
  const above = collect(n, from, to);
  yield;
  const below = collect(n, to, from);
  yield;
  const { hits } = options;
  const hit = hits ? bytes(n) : null;
  for (const uid of hits ?? []) hit![boxOfUid({ graph, folded }, uid)] = 1;
  return {
    graph,
    folded,
    options,
    measure: options.measure,
    level: options.level ?? 3,
    roots,
    nodeReach,
    reach,
    shared,
    ghost,
    main,
    above,
    below,
    names,
    carriers,
    engineOrder: engineOrder(failed),
    raised: new Set(failed?.failedUid == null ? [] : [failed.failedUid]),
    wouldRaise: wouldRaise(graph, options),
    looks: slotLooks(graph, options),
    hit,
    rail: false,
    mostBytes: options.inner || boxes.some(({ kind }) => kind !== "node") ? mostBytes(boxes) : 0,
    oneLane: false,
    cards: new Map(),
    leaves: [],
    pace,
  };
}

const mostBytes = (boxes: Folded["boxes"]) => boxes.reduce((most, { bytes }) => Math.max(most, bytes), 0);

/** Splits a list of pairs into two columns. */
export function sides(edges: Int32Array): [Int32Array, Int32Array] {
  const from = ints(edges.length >> 1);
  const to = from.slice();
  for (let e = 0; e < from.length; e++) {
    from[e] = edges[2 * e]!;
    to[e] = edges[2 * e + 1]!;
  }
  return [from, to];
}

/** Visits every edge of an acyclic graph; the edges into an item come before the edges out of it. */
export function* descend(rows: Rows, visit: (from: number, to: number) => void): Slices<void> {
  const order = yield* topological(rows);
  yield* eachSlice(order.length, (k) => rowOf(rows, order[k]!).forEach((to) => void visit(order[k]!, to)), 1024);
}

function rootViews(graph: Graph, { boxOf }: Folded, inner = false): RootView[] {
  const seen = (root: Root) => root.node >= 0 && (inner || boxOf[root.node]! >= 0);
  const shown = graph.roots.filter(seen).sort((a, b) => a.order - b.order || a.id - b.id);
  const times = new Map<string, number>();
  for (const { path } of shown) times.set(path, (times.get(path) ?? 0) + 1);
  return shown.map((root, position) => ({
    root,
    bit: position < MAX_LINES ? 1 << position : 0,
    ...rootLook(root.order),
    gone: !root.alive,
    // Tells roots of the same name apart.
    sub: times.get(root.path)! > 1 ? whenText(placeOf(graph, root.node)) : "",
  }));
}

function* reachOfNodes(graph: Graph, roots: readonly RootView[]): Slices<Uint32Array> {
  const reach = new Uint32Array(graph.n);
  for (const { root, bit } of roots) reach[root.node]! |= bit;
  yield* descend(targetsOf(graph), (from, to) => (reach[to]! |= reach[from]!));
  return reach;
}

/** Kinds of owners whose names the user did not choose: shown only for nodes without another name. */
const UNCHOSEN = new Set(["out", "traceback", "frame", "other", "hook", "grad"]);

/** The names of each node: those that the user chose; other names only where there is none. */
function tagNames(graph: Graph, carriers: ReadonlyMap<number, string>): Map<number, string[]> {
  const flagged = new Set(graph.roots.filter((root) => root.alive).map((root) => `${root.node} ${root.path}`));
  const names = new Map([...carriers].map(([node, path]) => [node, [path]]));
  const add = (owners: readonly Owner[], open: (node: number) => boolean) => {
    for (const { node, path } of owners) {
      if (node < 0 || graph.leaves.has(node) || flagged.has(`${node} ${path}`) || !open(node)) continue;
      const list = names.get(node);
      if (!list) names.set(node, [path]);
      else if (!list.includes(path)) list.push(path);
    }
  };
  const isChosen = ({ kind }: Owner) => !UNCHOSEN.has(kind);
  add(graph.owners.filter(isChosen), () => true);
  const named = new Set(names.keys());
  add(
    graph.owners.filter((owner) => !isChosen(owner)),
    (node) => !named.has(node),
  );
  return names;
}

function carriersByNode(graph: Graph): Map<number, string> {
  const carriers = new Map<number, string>();
  // Where both graphs were built at once there is no border; the finding names the variable all the same.
  const finding = graph.findings.find(({ kind, severity }) => kind === "second_backward" && severity === "error");
  if (finding && finding.call === graph.calls.at(-1)?.n)
    for (const path of finding.carriers) {
      const owner = graph.owners.find((one) => one.path === path && one.node >= 0 && !graph.leaves.has(one.node));
      const isRoot = owner && graph.roots.some((root) => root.node === owner.node && root.path === path);
      if (owner && !isRoot && !graph.boundary.length) carriers.set(owner.node, path);
    }
  for (const { oldUid, path } of graph.boundary) {
    const node = graph.indexOf(oldUid);
    if (node >= 0 && path && !carriers.has(node)) carriers.set(node, path);
  }
  return carriers;
}

/** uid -> position in engine order, from 1. */
function engineOrder(call: Call | undefined): Map<number, number> {
  if (!call?.executed || call.executed.length > MAX_ORDER_NOTES) return new Map();
  const order = new Map(call.executed.map((uid, position) => [uid, position + 1]));
  if (call.failedUid !== null) order.set(call.failedUid, call.executedCount + 1);
  return order;
}

function wouldRaise({ findings }: Graph, { forecast, asks }: SceneOptions): Map<number, string> {
  const uids = new Map<number, string>();
  if (asks) return uids;
  for (const finding of findings) if (isForecast(finding)) uids.set(finding.uid!, "would raise here");
  if (forecast && forecast.failsAt !== null) uids.set(forecast.failsAt, "would raise here");
  return uids;
}

function slotLooks({ indexOf, slotStart, slotState }: Graph, { forecast }: SceneOptions): Uint8Array {
  const looks = slotState.slice();
  for (const [uid, position] of forecast?.frees ?? []) {
    const node = indexOf(uid);
    const slot = slotStart[node]! + position;
    if (slot < slotStart[node + 1]! && looks[slot] !== SLOT.freed) looks[slot] = SLOT_LOOKS.indexOf("will");
  }
  return looks;
}

/** The roots of a reach mask, in the order in which their lines run side by side. */
export function rootsOf(context: Context, mask: number): RootView[] {
  return mask ? context.roots.slice(0, MAX_LINES).filter((view) => mask & view.bit) : [];
}

/** Whether the node of this uid is inside a box. */
export const isIn = (context: Context, b: number, uid: number | null = null) => boxOfUid(context, uid) === b;

/** Whether a line of this root is drawn faintly because another root is highlighted. */
export function isDimmed({ options: { onlyRoot = null } }: Context, view: RootView | null): boolean {
  return onlyRoot !== null && view?.root.id !== onlyRoot;
}

/** Whether a call began at this root. If its node has several names, it is the name in the text of the call. */
export function startsAt(context: Context, call: Call, view: RootView): boolean {
  const { graph, roots } = context;
  // Of the calls of a long loop only the number and the names are known: one began here if it freed what is saved here.
  if (!call.rootUids.length) return call.roots.includes(view.root.path) && hasFreed(graph, call.n, view.root.node);
  if (!call.rootUids.includes(graph.uid[view.root.node]!)) return false;
  if (call.roots.includes(view.root.path)) return true;
  return !roots.some(({ root }) => root.node === view.root.node && call.roots.includes(root.path));
}

/** Whether a call freed a saved tensor of a node; where it saved none, of a node right above. */
function hasFreed({ slotStart, slotFreedBy, edgeStart, edgeTo }: Graph, call: number, node: number): boolean {
  const saves = slotStart[node + 1]! > slotStart[node]!;
  const nodes = saves ? [node] : edgeTo.subarray(edgeStart[node], edgeStart[node + 1]);
  return nodes.some((each) => slotFreedBy.subarray(slotStart[each], slotStart[each + 1]).includes(call));
}

export function rootOfCall(context: Context, call: Call): RootView | undefined {
  return context.roots.find((view) => startsAt(context, call, view));
}

/** Hue class of call n. */
export function hueOfCall({ graph }: Context, n: number): string {
  const order = orderOfCall(graph, n);
  return order < 0 ? "r0" : rootLook(order).hue;
}
