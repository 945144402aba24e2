/**
 * The tree of groups over the line. A group is an interval; its children are found only when they are asked for:
 * split at the first level that tells its nodes apart, equal runs among the pieces folded to a repeat, linear chains
 * of single nodes collapsed.
 */
import type { Graph, Place } from "../model.ts";
import type { Levels } from "./levels.ts";
import { findRepeats } from "./repeats.ts";

export interface Group {
  kind: "node" | "group" | "repeat" | "chain";
  /** Positions on the line: first, and one past the last. */
  a: number;
  b: number;
  /** First level at which the interval may still split. */
  level: number;
  key: string;
  /** What the keys of children begin with. */
  prefix: string;
  parent: Group | null;
  times: number;
  /** Counted from 1 for a unit of several pieces in a repeat, else 0. */
  unit: number;
  /** Equal for groups that look alike. */
  alike: number;
  /** Pieces of a repeat, chain or chunk; null: not looked for yet. */
  children: Group[] | null;
  /** A stretch of siblings put together only to be short. */
  chunk: boolean;
  /** Closed, only these children shown, or all of them. */
  state: "closed" | "reveal" | "open" | "all";
  wanted: Set<Group> | null;
  /** Found when the group is named. */
  common: Common | null;
}

/** What all nodes of a group have in common. */
export interface Common {
  /** Innermost module prefix, -1: none. */
  prefix: number;
  /** Place of the first node. */
  place: Place | null;
  sameLine: boolean;
  sameOuterLine: boolean;
  sameIteration: boolean;
  sameCell: boolean;
}

export interface Line {
  graph: Graph;
  order: Int32Array;
  levels: Levels;
  hash: (a: number, b: number) => number;
  /** The one target (user) of a node by position, -1: none or several. */
  onlyTarget: Int32Array;
  onlyUser: Int32Array;
  /** Off for small graphs: nothing but the levels of provenance. */
  reduce: boolean;
}

/** A chain is worth collapsing from three nodes on, and in lists longer than this. */
const LONG_LIST = 12;
const CHAIN = 3;

export function makeGroup(
  fields: Pick<Group, "kind" | "a" | "b" | "level" | "key" | "parent"> & Partial<Group>,
): Group {
  return {
    prefix: fields.key,
    times: 1,
    unit: 0,
    alike: 0,
    children: null,
    chunk: false,
    state: "closed",
    wanted: null,
    common: null,
    ...fields,
  };
}

/** Children of a group in the order of the line; at least two, unless it is a node. */
export function childrenOf(line: Line, group: Group): Group[] {
  if (group.children) return group.children;
  let children = split(line, group);
  if (line.reduce) {
    children = foldRepeats(line, group, children);
    if (children.length > LONG_LIST && children[0].level === line.levels.single)
      children = foldChains(line, group, children);
  }
  while (children.length === 1 && children[0].kind !== "node") children = adopt(line, group, children[0]);
  group.children = children;
  return children;
}

/** A group that is nothing but one repeat or chain is that repeat or chain itself. */
function adopt(line: Line, group: Group, only: Group): Group[] {
  if (group.kind === "group") group.kind = only.kind;
  if (only.times > 1) group.times = only.times;
  const children = childrenOf(line, only);
  for (const child of children) child.parent = group;
  return children;
}

function split(line: Line, group: Group): Group[] {
  const { order, levels } = line;
  const { a, b } = group;
  let prefix = group.prefix;
  let level = group.level;
  for (; level < levels.single; level++) {
    const first = levels.key(level, order[a]);
    let i = a + 1;
    while (i < b && levels.key(level, order[i]) === first) i++;
    if (i < b) break;
    const tag = levels.tag(level, order[a]);
    if (tag) prefix += `/${tag}`;
  }
  group.level = level;
  return level < levels.single ? splitAt(line, group, level, prefix) : splitNodes(line, group, prefix);
}

function splitAt(line: Line, group: Group, level: number, prefix: string): Group[] {
  const { order, levels, hash } = line;
  const ordinals = new Map<string, number>();
  const children: Group[] = [];
  let from = group.a;
  let key = levels.key(level, order[from]);
  for (let i = group.a + 1; i <= group.b; i++) {
    const next = i < group.b ? levels.key(level, order[i]) : Number.NaN;
    if (next === key) continue;
    const name = numbered(ordinals, levels.tag(level, order[from]) || "-");
    children.push(
      makeGroup({
        kind: i - from === 1 ? "node" : "group",
        a: from,
        b: i,
        level: level + 1,
        key: `${prefix}/${name}`,
        parent: group,
        alike: hash(from, i) + 7919 * (levels.shape(level, order[from]) + 2),
      }),
    );
    from = i;
    key = next;
  }
  return children;
}

function splitNodes(line: Line, group: Group, prefix: string): Group[] {
  const { graph, order, hash, levels } = line;
  const ordinals = new Map<string, number>();
  const children: Group[] = new Array(group.b - group.a);
  for (let i = group.a; i < group.b; i++) {
    const name = numbered(ordinals, graph.names[graph.name[order[i]]] ?? "?");
    children[i - group.a] = makeGroup({
      kind: "node",
      a: i,
      b: i + 1,
      level: levels.single,
      key: `${prefix}/${name}`,
      parent: group,
      alike: hash(i, i + 1),
    });
  }
  return children;
}

function numbered(ordinals: Map<string, number>, tag: string): string {
  const before = ordinals.get(tag) ?? 0;
  ordinals.set(tag, before + 1);
  return before ? `${tag}#${before}` : tag;
}

function foldRepeats(line: Line, group: Group, children: Group[]): Group[] {
  const alike = new Float64Array(children.length);
  for (let i = 0; i < children.length; i++) alike[i] = children[i].alike;
  const repeats = findRepeats(alike);
  if (!repeats.length) return children;
  const folded: Group[] = [];
  let at = 0;
  for (const { at: first, period, times } of repeats) {
    while (at < first) folded.push(children[at++]);
    const repeat = makeGroup({
      kind: "repeat",
      a: children[first].a,
      b: children[first + period * times - 1].b,
      level: group.level,
      key: `${children[first].key}*`,
      parent: group,
      times,
    });
    repeat.alike = line.hash(repeat.a, repeat.b);
    repeat.children = [];
    for (let unit = 0; unit < times; unit++) {
      const pieces = children.slice(first + unit * period, first + (unit + 1) * period);
      repeat.children.push(period === 1 ? pieces[0] : together(line, repeat, pieces, "group", "+"));
      repeat.children[unit].parent = repeat;
      if (period > 1) repeat.children[unit].unit = unit + 1;
    }
    folded.push(repeat);
    at = first + period * times;
  }
  while (at < children.length) folded.push(children[at++]);
  return folded;
}

/** A group made of neighbouring siblings. */
export function together(line: Line, parent: Group, pieces: Group[], kind: Group["kind"], mark: string): Group {
  const a = pieces[0].a;
  const b = pieces[pieces.length - 1].b;
  const group = makeGroup({
    kind,
    a,
    b,
    level: parent.level,
    key: `${pieces[0].key}${mark}`,
    parent,
    alike: line.hash(a, b),
  });
  group.children = pieces;
  for (const piece of pieces) piece.parent = group;
  return group;
}

/** Collapses runs of single nodes, each the only target of the next. */
function foldChains(line: Line, group: Group, children: Group[]): Group[] {
  const folded: Group[] = [];
  let from = 0;
  for (let i = 1; i <= children.length; i++) {
    if (i < children.length && linked(line, children[i - 1], children[i])) continue;
    const run = children.slice(from, i);
    if (run.length >= CHAIN && run.length < children.length) folded.push(together(line, group, run, "chain", "~"));
    else folded.push(...run);
    from = i;
  }
  return folded;
}

function linked(line: Line, before: Group, after: Group): boolean {
  if (before.kind !== "node" || after.kind !== "node") return false;
  return line.onlyTarget[after.a] === before.a && line.onlyUser[before.a] === after.a;
}
