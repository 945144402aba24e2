/**
 * The tree of groups over the line. A group is an interval. Its children are computed on demand: it is split at the
 * first level at which its nodes differ, equal runs among the pieces are folded into a repeat, and linear chains of
 * single nodes are collapsed.
 */
import { doubles } from "../arrays.ts";
import { type Rows, rowOf } from "../layout/types.ts";
import type { Graph, Place } from "../model.ts";
import { runSlices, type Slices } from "../slices.ts";
import { targetsOf } from "./focus.ts";
import type { Levels } from "./levels.ts";
import { findRepeats } from "./repeats.ts";
import type { Openness } from "./types.ts";

type Kind = "node" | "group" | "repeat" | "chain";

export class Group {
  kind: Kind;
  /** Positions on the line: first, and one past the last. */
  a: number;
  b: number;
  /** First level at which the interval may still split. */
  level: number;
  key: string;
  parent: Group | null;
  /** Equal for siblings that look alike. */
  alike: number;
  times = 1;
  /** Number of a unit of several pieces in a repeat, from 1; else 0. */
  unit = 0;
  /** The children; null: not computed yet. */
  children: Group[] | null = null;
  /** Whether it is a stretch of siblings, put together only to save room. */
  chunk = false;
  state: Openness = "closed";
  /** Children that must be visible. */
  wanted: Set<Group> | null = null;
  /** Cache of `shownChildren`: the state for which they were computed, and the children. */
  shown: { state: Group["state"]; wanted: Set<Group> | null; groups: Group[] } | null = null;
  /** Cache of `commonOf`. */
  common: Common | null = null;

  constructor(kind: Kind, a: number, b: number, level: number, key: string, parent: Group | null, alike = 0) {
    this.kind = kind;
    this.a = a;
    this.b = b;
    this.level = level;
    this.key = key;
    this.parent = parent;
    this.alike = alike;
  }
}

/** What all nodes of a group have in common. */
export interface Common {
  /** Innermost module prefix of all nodes, -1: none. */
  prefix: number;
  /** Place of the first node. */
  place: Place | null;
  sameLine: boolean;
  sameOuterLine: boolean;
  sameIteration: boolean;
  sameCell: boolean;
  /** First and last line, outer lines where known; NaN: a node has no known line. */
  least: number;
  most: number;
}

export interface Line {
  graph: Graph;
  order: Int32Array;
  levels: Levels;
  hash: (a: number, b: number) => number;
  /** Position of each node on the line; -1: it is drawn as a badge, or left out. */
  position: Int32Array;
  users: Rows;
  /** Whether repeats and chains are folded; false for small graphs, which are split by provenance only. */
  reduce: boolean;
}

/** Number of nodes between two pauses; groups of this size are split in slices of their own. */
const LARGE = 4096;
/** A chain is worth collapsing from three nodes on, and in lists longer than this. */
const LONG_LIST = 12;
const CHAIN = 3;

/** Children of a group in the order of the line; at least two, unless it is a node. */
export function childrenOf(line: Line, group: Group): Group[] {
  return group.children ?? runSlices(childrenSlices(line, group));
}

/** The same in slices. */
export function* childrenSlices(line: Line, group: Group): Slices<Group[]> {
  if (group.children) return group.children;
  let children = yield* split(line, group);
  if (line.reduce) {
    children = yield* foldRepeats(group, children);
    if (children.length > LONG_LIST && children[0].level === line.levels.single)
      children = yield* foldChains(line, group, children);
  }
  // A group that consists of one repeat or chain only becomes that repeat or chain.
  while (children.length === 1 && children[0].kind !== "node") {
    const [only] = children;
    if (group.kind === "group") group.kind = only.kind;
    if (only.times > 1) group.times = only.times;
    children = yield* childrenSlices(line, only);
    for (const child of children) child.parent = group;
  }
  group.children = children;
  return children;
}

/** Computes the children of all large groups in advance, so that later calls of `childrenOf` take no long time. */
export function* splitLarge(line: Line, root: Group): Slices<void> {
  const stack = [root];
  for (let group = stack.pop(); group; group = stack.pop()) {
    if (group.b - group.a < LARGE) continue;
    for (const child of yield* childrenSlices(line, group)) stack.push(child);
  }
}

/** Splits at the first level at which the nodes differ. */
function* split(line: Line, group: Group): Slices<Group[]> {
  const { graph, order, levels, hash } = line;
  const { a, b } = group;
  let prefix = group.key;
  let level = group.level;
  for (; level < levels.single; level++) {
    const first = levels.key(level, order[a]);
    let i = a + 1;
    while (i < b && levels.key(level, order[i]) === first) i++;
    if (i < b) break;
    const tag = levels.tag(level, order[a]);
    if (tag) prefix += `/${tag}`;
    if (b - a > LARGE) yield;
  }
  group.level = level;
  const single = level === levels.single;
  const ordinals = new Map<string, number>();
  const children: Group[] = [];
  for (let from = a, i = a + 1; i <= b; i++) {
    if (i % LARGE === 0) yield;
    const v = order[from];
    if (!single && i < b && levels.key(level, order[i]) === levels.key(level, v)) continue;
    const tag = single ? (graph.names[graph.name[v]] ?? "?") : levels.tag(level, v) || "-";
    const before = ordinals.get(tag) ?? 0;
    ordinals.set(tag, before + 1);
    const kind = i - from === 1 ? "node" : "group";
    const key = `${prefix}/${before ? `${tag}#${before}` : tag}`;
    const alike = hash(from, i) + (single ? 0 : 7919 * (levels.shape(level, v) + 2));
    children.push(new Group(kind, from, i, single ? level : level + 1, key, group, alike));
    from = i;
  }
  return children;
}

function* foldRepeats(group: Group, children: Group[]): Slices<Group[]> {
  const alike = doubles(children.length);
  for (let i = 0; i < alike.length; i++) alike[i] = children[i].alike;
  const repeats = yield* findRepeats(alike);
  if (!repeats.length) return children;
  const folded: Group[] = [];
  let at = 0;
  for (const { at: first, period, times } of repeats) {
    while (at < first) folded.push(children[at++]);
    const end = first + period * times;
    const [a, b] = [children[first].a, children[end - 1].b];
    const repeat = new Group("repeat", a, b, group.level, `${children[first].key}*`, group);
    repeat.times = times;
    repeat.children = [];
    for (; at < end; at += period) {
      const unit = period === 1 ? children[at] : together(repeat, children.slice(at, at + period), "group", "+");
      unit.parent = repeat;
      repeat.children.push(unit);
      if (period > 1) unit.unit = repeat.children.length;
      if (unit.b % LARGE === 0) yield;
    }
    folded.push(repeat);
  }
  while (at < children.length) folded.push(children[at++]);
  return folded;
}

/** A group made of neighbouring siblings. */
function together(parent: Group, pieces: Group[], kind: Kind, mark: string): Group {
  const { a } = pieces[0];
  const { b } = pieces[pieces.length - 1];
  const group = new Group(kind, a, b, parent.level, `${pieces[0].key}${mark}`, parent);
  group.children = pieces;
  for (const piece of pieces) piece.parent = group;
  return group;
}

/** Collapses runs of single nodes, each the only target of the next. */
function* foldChains(line: Line, group: Group, children: Group[]): Slices<Group[]> {
  const folded: Group[] = [];
  let from = 0;
  for (let i = 1; i <= children.length; i++) {
    if (i % LARGE === 0) yield;
    if (i < children.length && linked(line, children[i - 1], children[i])) continue;
    if (i - from >= CHAIN && i - from < children.length)
      folded.push(together(group, children.slice(from, i), "chain", "~"));
    else for (; from < i; from++) folded.push(children[from]);
    from = i;
  }
  return folded;
}

function linked(line: Line, before: Group, after: Group): boolean {
  if (before.kind !== "node" || after.kind !== "node") return false;
  const { graph, order, users } = line;
  return (
    onlyOne(line, targetsOf(graph), order[after.a]) === before.a && onlyOne(line, users, order[before.a]) === after.a
  );
}

/** Position of the one node of a list that is on the line, -1: none or several. */
function onlyOne({ position }: Line, rows: Rows, list: number): number {
  const [only, other] = rowOf(rows, list).filter((v) => position[v] >= 0);
  return other === undefined ? (position[only] ?? -1) : -1;
}

/** Whether a node in group `to` has a target in the earlier group `from`. */
export function feeds({ graph, order, position }: Line, from: Group, to: Group): boolean {
  const isFrom = (v: number) => position[v] >= from.a && position[v] < from.b;
  return order.subarray(to.a, to.b).some((v) => rowOf(targetsOf(graph), v).some(isFrom));
}
