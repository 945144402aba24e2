/**
 * Decides which groups are open.
 *
 * By default: first the nodes that must be visible are revealed, most important first, each with its siblings put
 * together, never with more than `maxBoxes` boxes in all. Then groups that look alike are opened together, outermost
 * first, as long as one screen holds them. Groups that the user closed are closed in the end, which changes nothing else.
 *
 * After an earlier picture its groups stay open or closed, and new groups get another screen. Only if there is no room
 * left for a node that must be visible, everything is folded from the start.
 */

import type { Slices } from "../slices.ts";
import { className } from "./names.ts";
import { childrenOf, childrenSlices, feeds, Group, type Line } from "./tree.ts";
import type { FoldState, Openness, Standing } from "./types.ts";

export const MAX_BOXES = 60;
/** One screen holds this many cards, one below the other: groups that nobody asked for are opened only up to here. */
export const ONE_SCREEN = 24;
/** Longest list of children that is shown in full; a longer one is cut into stretches. */
const MAX_CHILDREN = 32;
const STRETCHES = 16;
/** A repeat of more units stays folded unless a node in it must be visible. */
const MAX_UNROLLED = 16;
/** The same for a repeat whose units stand side by side. */
const MAX_SIDE_BY_SIDE = 4;
const SLICE = 1024;

/** Opens groups of the default view. False: there is no room for all `positions`. */
export function openDefault(
  line: Line,
  root: Group,
  positions: readonly number[],
  maxBoxes: number,
  before?: Standing,
): boolean {
  root.state = "reveal";
  if (before?.groups) restore(line, root, before.groups);
  const fits = reveal(line, root, positions, maxBoxes);
  const most = Math.min(maxBoxes, ONE_SCREEN + (before ? countShown(line, root) : 0));
  const isNew = ({ a, key }: Group) =>
    !before || !(before.groups?.has(key) || before.graph.indexOf(line.graph.uid[line.order[a]]) >= 0);
  widen(line, root, most, isNew);
  openAlike(line, root, most, isNew);
  return fits;
}

/** Opens the groups that were open in the earlier picture; children shown one by one stay so. */
function restore(line: Line, root: Group, groups: NonNullable<Standing["groups"]>): void {
  const stack = [{ group: root, around: groups.get(root.key) }];
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { group } = top;
    if (group.b - group.a === 1) continue;
    const alone = childrenOf(line, group).filter(({ key }) => groups.has(key));
    // A group that contained all nodes had no box of its own: the state of the group around it is used.
    const state = groups.get(group.key) ?? (alone.length ? top.around : undefined);
    if (!state || state === "closed") continue;
    group.state = state;
    group.wanted = new Set(alone);
    for (const child of shownChildren(line, group)) stack.push({ group: child, around: state });
  }
}

/** The state of all groups, with which the next picture begins. */
export function standingOf(line: Line, root: Group): Standing["groups"] {
  const groups = new Map<string, Openness>();
  const stack = [root];
  for (let group = stack.pop(); group; group = stack.pop()) {
    groups.set(group.key, group.state);
    if (group.state !== "closed") stack.push(...shownChildren(line, group));
  }
  return groups;
}

/** Shows the siblings of revealed groups one by one where they fit, outermost first. Long repeats stay folded. */
function widen(line: Line, root: Group, maxBoxes: number, isNew: (group: Group) => boolean): void {
  let ring = [root];
  while (ring.length) {
    const inner: Group[] = [];
    for (const group of ring) {
      if (group.state === "closed" || group.b - group.a === 1) continue;
      if (isNew(group) && !isLong(line, group)) {
        group.state = "open";
        if (countShown(line, root) > maxBoxes) group.state = "reveal";
      }
      inner.push(...shownChildren(line, group));
    }
    ring = inner;
  }
}

/** The children of an open group that are shown, in the order of the line. Cached, as many functions ask for them. */
function shownChildren(line: Line, group: Group): Group[] {
  const { state, wanted, shown } = group;
  if (shown && shown.state === state && shown.wanted === wanted) return shown.groups;
  const groups = findShown(line, group);
  group.shown = { state, wanted, groups };
  return groups;
}

function findShown(line: Line, group: Group): Group[] {
  const children = childrenOf(line, group);
  if (group.state === "all") return children;
  const short = group.state === "open" && children.length <= MAX_CHILDREN;
  if (short || children.length <= 3) return children;
  const alone = new Set<number>();
  for (const child of group.wanted ?? []) alone.add(indexAt(children, child.a));
  if (group.kind === "repeat") alone.add(group.chunk ? children.length - 1 : 0);
  const shown: Group[] = [];
  let from = 0;
  for (const i of [...alone].sort((a, b) => a - b)) {
    pushStretch(line, group, children.slice(from, i), shown);
    shown.push(children[i]);
    from = i + 1;
  }
  pushStretch(line, group, children.slice(from), shown);
  return shown;
}

/** Adds siblings that are not shown one by one: as one stretch if only others must be visible, else as several. */
function pushStretch(line: Line, group: Group, rest: Group[], shown: Group[]): void {
  if (rest.length <= 1) {
    shown.push(...rest);
    return;
  }
  const whole = group.state === "reveal" || (group.kind === "repeat" && !group.chunk);
  const size = whole ? rest.length : Math.max(2, Math.ceil(childrenOf(line, group).length / STRETCHES));
  for (let i = 0; i < rest.length; i += size) shown.push(stretch(group, rest.slice(i, i + size)));
}

function stretch(group: Group, rest: Group[]): Group {
  if (rest.length === 1) return rest[0];
  const { a } = rest[0];
  const { b } = rest[rest.length - 1];
  const repeat = group.kind === "repeat";
  // A stretch within a stretch begins with the same group: one more dot makes the keys different.
  const key = `${rest[0].key}${group.chunk ? `${/\.*$/.exec(group.key)}.` : ".."}`;
  const chunk = new Group(repeat ? "repeat" : "group", a, b, group.level, key, group);
  if (repeat) chunk.times = rest.length;
  chunk.children = rest;
  chunk.chunk = true;
  return chunk;
}

/** Opens the groups around each position just far enough to show it. False: there is no room for all of them. */
function reveal(line: Line, root: Group, positions: readonly number[], maxBoxes: number): boolean {
  let fits = true;
  let boxes = countShown(line, root);
  for (const position of positions) {
    if (boxes > maxBoxes) return false;
    const path: Group[] = [];
    for (let group = root; group.b - group.a > 1; group = childAt(line, group, position)) path.push(group);
    const before = path.map(({ state, wanted }) => ({ state, wanted }));
    for (const group of path) {
      group.wanted = new Set(group.wanted ?? []).add(childAt(line, group, position));
      if (group.state === "closed") group.state = "reveal";
    }
    const after = countShown(line, root);
    if (after <= maxBoxes) boxes = after;
    else {
      fits = false;
      path.forEach((group, i) => void Object.assign(group, before[i]));
    }
  }
  return fits && boxes <= maxBoxes;
}

function childAt(line: Line, group: Group, position: number): Group {
  const children = childrenOf(line, group);
  return children[indexAt(children, position)];
}

/** Index of the group that holds a position of the line. */
function indexAt(groups: readonly Group[], position: number): number {
  let low = 0;
  let high = groups.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (groups[middle].a <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

const countShown = (line: Line, root: Group) => frontier(line, root).boxes;

/** Closed groups that look alike: depth of the outermost one; `cost`: number of boxes added if all are opened. */
interface Family {
  alike: number | string;
  groups: Group[];
  depth: number;
  cost: number;
}

/** Opens groups that look alike, either all of them or none; the outermost first, then the cheapest. */
function openAlike(line: Line, root: Group, maxBoxes: number, isNew: (group: Group) => boolean): void {
  const refused = new Set<number | string>();
  const opened = new Map<number | string, Group[]>();
  for (;;) {
    const { closed, boxes } = frontier(line, root);
    const families = new Map<number | string, Family>();
    for (const { group, depth } of closed) {
      // `layers.0` and `layers.1` of one class belong together even if one of them has a node more.
      const ofClass = /\/\[\d+\]$/.test(group.key) && className(line, group);
      const alike = ofClass ? group.key.replace(/\d+/g, ofClass) : line.hash(group.a, group.b);
      if (refused.has(alike) || group.chunk || !isNew(group) || isLong(line, group)) continue;
      const family = families.get(alike) ?? { alike, groups: [], depth, cost: 0 };
      families.set(alike, family);
      family.groups.push(group);
      family.depth = Math.min(family.depth, depth);
      family.cost += openedSize(line, group) - 1;
    }
    let best: Family | null = null;
    for (const family of families.values()) {
      const { alike, depth, cost } = family;
      if (boxes + cost > maxBoxes) {
        refused.add(alike);
        // Groups that look alike and were opened earlier, further out, are closed again.
        for (const group of opened.get(alike) ?? []) group.state = "closed";
      } else if (!best || (depth - best.depth || cost - best.cost) < 0) best = family;
    }
    if (!best) return;
    opened.set(best.alike, best.groups);
    for (const group of best.groups) group.state = "open";
  }
}

/** Whether a repeat would be too high if unrolled; or too wide, if no unit uses the one before it. */
function isLong(line: Line, group: Group): boolean {
  // `childrenOf` may set `kind` to "repeat": it has to run first.
  const units = childrenOf(line, group);
  if (group.kind !== "repeat") return false;
  return units.length > MAX_UNROLLED || (units.length > MAX_SIDE_BY_SIDE && !feeds(line, units[0], units[1]));
}

function openedSize(line: Line, group: Group): number {
  const state = group.state;
  group.state = "open";
  const size = shownChildren(line, group).length;
  group.state = state;
  return size;
}

function frontier(line: Line, root: Group): { closed: { group: Group; depth: number }[]; boxes: number } {
  const closed: { group: Group; depth: number }[] = [];
  let boxes = 0;
  const stack = [{ group: root, depth: 0 }];
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { group, depth } = top;
    if (group.b - group.a === 1) boxes++;
    else if (group.state === "closed") {
      boxes++;
      closed.push(top);
    } else for (const child of shownChildren(line, group)) stack.push({ group: child, depth: depth + 1 });
  }
  closed.reverse();
  return { closed, boxes };
}

/** The boxes to draw, in the order of the line, and the open groups around them. */
export function* visibleGroups(
  line: Line,
  root: Group,
  state: FoldState,
  all: boolean,
): Slices<{ shown: Group[]; open: Group[] }> {
  const shown: Group[] = [];
  const open: Group[] = [];
  const stack = [root];
  let steps = 0;
  for (let group = stack.pop(); group; group = stack.pop()) {
    if (++steps % SLICE === 0) yield;
    if (group.b - group.a === 1) {
      shown.push(group);
      continue;
    }
    if (group !== root && state.closed?.has(group.key)) group.state = "closed";
    else if (all || state.expandAll) group.state = "all";
    if (group.state === "closed") {
      shown.push(group);
      continue;
    }
    if (group !== root) open.push(group);
    yield* childrenSlices(line, group);
    const children = shownChildren(line, group);
    for (let i = children.length - 1; i >= 0; i--) {
      children[i].parent = group;
      stack.push(children[i]);
    }
  }
  return { shown, open };
}
