/**
 * Which groups stand open.
 *
 * By default: first what must be seen is revealed, most important first, each with its siblings put together; then
 * groups that look alike are opened together, outermost first, as long as all of them fit. Never more than
 * `maxBoxes`. What the user opened or closed comes on top and changes nothing else.
 */

import { childrenOf, type Group, type Line, makeGroup } from "./tree.ts";
import type { FoldState } from "./types.ts";

export const MAX_BOXES = 60;
/** Longest list of children that is shown as it is; a longer one is cut into stretches. */
const MAX_CHILDREN = 32;
const STRETCHES = 16;
/** A longer repeat stays folded unless something in it matters. */
const MAX_UNROLLED = 16;

export function openDefault(line: Line, root: Group, positions: readonly number[], maxBoxes: number): void {
  root.state = "reveal";
  reveal(line, root, positions, maxBoxes);
  widen(line, root, maxBoxes);
  openAlike(line, root, maxBoxes);
}

/** Shows the siblings of what was revealed one by one where they fit, outermost first. Long repeats stay folded. */
function widen(line: Line, root: Group, maxBoxes: number): void {
  let ring = [root];
  while (ring.length) {
    const inner: Group[] = [];
    for (const group of ring) {
      if (group.state === "closed" || group.b - group.a === 1) continue;
      const unrolled = group.kind !== "repeat" || childrenOf(line, group).length <= MAX_UNROLLED;
      if (unrolled) group.state = "open";
      if (unrolled && countShown(line, root) > maxBoxes) group.state = "reveal";
      inner.push(...shownChildren(line, group));
    }
    ring = inner;
  }
}

/** What of an open group is shown, in the order of the line. */
export function shownChildren(line: Line, group: Group): Group[] {
  const children = childrenOf(line, group);
  if (group.state === "all") return children;
  const short = group.state === "open" && children.length <= MAX_CHILDREN;
  if (short || children.length <= 3) return children;
  const alone = (child: Group, i: number) =>
    group.wanted?.has(child) === true ||
    (group.kind === "repeat" && (group.chunk ? i === children.length - 1 : i === 0));
  const shown: Group[] = [];
  let from = 0;
  for (let i = 0; i <= children.length; i++) {
    if (i < children.length && !alone(children[i], i)) continue;
    pushStretch(line, group, children.slice(from, i), shown);
    if (i < children.length) shown.push(children[i]);
    from = i + 1;
  }
  return shown;
}

/** Siblings that are not shown one by one: one stretch when only others matter, several when the group is open. */
function pushStretch(line: Line, group: Group, rest: Group[], shown: Group[]): void {
  if (rest.length <= 1) {
    shown.push(...rest);
    return;
  }
  const whole = group.state === "reveal" || (group.kind === "repeat" && !group.chunk);
  const size = whole ? rest.length : Math.max(2, Math.ceil(childrenOf(line, group).length / STRETCHES));
  for (let i = 0; i < rest.length; i += size) shown.push(stretch(line, group, rest.slice(i, i + size)));
}

function stretch(line: Line, group: Group, rest: Group[]): Group {
  if (rest.length === 1) return rest[0];
  const chunk = makeGroup({
    kind: group.kind === "repeat" ? "repeat" : "group",
    a: rest[0].a,
    b: rest[rest.length - 1].b,
    level: group.level,
    // A stretch within a stretch begins with the same group: one more dot tells them apart.
    key: `${rest[0].key}${group.chunk ? `${/\.*$/.exec(group.key)}.` : ".."}`,
    parent: group,
    times: group.kind === "repeat" ? rest.length : 1,
    children: rest,
    chunk: true,
  });
  chunk.alike = line.hash(chunk.a, chunk.b);
  return chunk;
}

/** Opens what lies around each position just far enough to show it, until the picture is full. */
function reveal(line: Line, root: Group, positions: readonly number[], maxBoxes: number): void {
  let boxes = countShown(line, root);
  for (const position of positions) {
    if (boxes >= maxBoxes) return;
    const path: Group[] = [];
    for (let group = root; ; ) {
      if (group.b - group.a === 1) break;
      path.push(group);
      group = childAt(line, group, position);
    }
    const before = path.map((group) => ({ group, state: group.state, wanted: group.wanted }));
    for (let i = 0; i < path.length; i++) {
      const child = i + 1 < path.length ? path[i + 1] : childAt(line, path[i], position);
      path[i].wanted = new Set(path[i].wanted ?? []).add(child);
      if (path[i].state === "closed") path[i].state = "reveal";
    }
    const after = countShown(line, root);
    if (after > maxBoxes) {
      for (const { group, state, wanted } of before) Object.assign(group, { state, wanted });
    } else boxes = after;
  }
}

function childAt(line: Line, group: Group, position: number): Group {
  const children = childrenOf(line, group);
  let low = 0;
  let high = children.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (children[middle].a <= position) low = middle;
    else high = middle - 1;
  }
  return children[low];
}

function countShown(line: Line, root: Group): number {
  let count = 0;
  const stack = [root];
  for (let group = stack.pop(); group; group = stack.pop()) {
    if (group.state === "closed" || group.b - group.a === 1) count++;
    else stack.push(...shownChildren(line, group));
  }
  return count;
}

/** Opens groups that look alike all together or not at all; the outermost first, then the cheapest. */
function openAlike(line: Line, root: Group, maxBoxes: number): void {
  const refused = new Set<number>();
  for (;;) {
    const { closed, boxes } = frontier(line, root);
    const families = new Map<number, { depth: number; groups: Group[] }>();
    for (const { group, depth } of closed) {
      if (refused.has(group.alike) || group.chunk || (group.kind === "repeat" && group.times > MAX_UNROLLED)) continue;
      const family = families.get(group.alike);
      if (!family) families.set(group.alike, { depth, groups: [group] });
      else {
        family.depth = Math.min(family.depth, depth);
        family.groups.push(group);
      }
    }
    let best: { depth: number; cost: number; groups: Group[] } | null = null;
    for (const [alike, { depth, groups }] of families) {
      let cost = 0;
      for (const group of groups) cost += openedSize(line, group) - 1;
      if (boxes + cost > maxBoxes) refused.add(alike);
      else if (!best || depth < best.depth || (depth === best.depth && cost < best.cost))
        best = { depth, cost, groups };
    }
    if (!best) return;
    for (const group of best.groups) group.state = "open";
  }
}

function openedSize(line: Line, group: Group): number {
  if (group.b - group.a > MAX_BOXES && group.level === line.levels.single && !group.children) return MAX_BOXES;
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
export function visibleGroups(
  line: Line,
  root: Group,
  state: FoldState,
  all: boolean,
): { shown: Group[]; open: Group[] } {
  const shown: Group[] = [];
  const open: Group[] = [];
  const stack = [root];
  for (let group = stack.pop(); group; group = stack.pop()) {
    if (group.b - group.a === 1) {
      shown.push(group);
      continue;
    }
    if (group !== root && state.closed?.has(group.key)) group.state = "closed";
    else if (all || state.expandAll) group.state = "all";
    else if (state.opened?.has(group.key)) group.state = "open";
    if (group.state === "closed") {
      shown.push(group);
      continue;
    }
    if (group !== root) open.push(group);
    const children = shownChildren(line, group);
    for (let i = children.length - 1; i >= 0; i--) {
      children[i].parent = group;
      stack.push(children[i]);
    }
  }
  return { shown, open };
}
