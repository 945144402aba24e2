/**
 * Folding: from the graph to the boxes of the picture. Pure: earlier open groups are an argument and a result.
 *
 *   badges (leaves, parameter preparation) -> the line (forward order) -> tree of groups -> which are open -> boxes
 */
import { bytes, ints } from "../arrays.ts";
import type { Graph } from "../model.ts";
import { runSlices, type Slices } from "../slices.ts";
import { type Badges, findBadges } from "./badges.ts";
import { boxEdges, Counter } from "./boxes.ts";
import { focusMask, usersOf } from "./focus.ts";
import { makeHashes, makeLevels } from "./levels.ts";
import { nameGroup } from "./names.ts";
import { MAX_BOXES, openDefault, standingOf, visibleGroups } from "./open.ts";
import { presentSlices } from "./present.ts";
import { forwardOrder } from "./sequence.ts";
import { Group, type Line, splitLarge } from "./tree.ts";
import type { Box, Folded, FoldState, OpenGroup, Present } from "./types.ts";

export { focusMask } from "./focus.ts";
export { shortOp } from "./names.ts";
export { MAX_BOXES, ONE_SCREEN } from "./open.ts";
export { isPast, presentOf, presentSlices } from "./present.ts";
export { search } from "./search.ts";
export { seedSlices } from "./seed.ts";
export type { Box, Focus, Folded, FoldState, OpenGroup, Present } from "./types.ts";
export { boxOfUid } from "./types.ts";

/** Graphs up to this many boxes are shown as they are. */
export const SMALL_GRAPH = 40;

/** Nodes read between two pauses. */
const SLICE = 2048;

export function fold(graph: Graph, state: FoldState = {}): Folded {
  return runSlices(foldSlices(graph, state));
}

/** The same in slices. */
export function* foldSlices(graph: Graph, state: FoldState = {}): Slices<Folded> {
  const present = yield* presentSlices(graph);
  yield;
  const badges = yield* findBadges(graph, new Set(state.visible ?? []));
  yield;
  const drawn = drawnNodes(graph, badges, state, present);
  yield;
  const order = yield* forwardOrder(graph, drawn);
  yield;
  const boxOf = ints(graph.n).fill(-1);
  let { standing } = state;
  if (!order.length) return { boxes: [], edges: ints(0), boxOf, open: [], standing, present };

  const maxBoxes = state.maxBoxes ?? MAX_BOXES;
  const small = order.length <= (standing?.groups === null ? maxBoxes : Math.min(SMALL_GRAPH, maxBoxes));
  const line = yield* makeLine(graph, order, !small);
  yield;
  let root = wholeLine(order);
  if (!small && !state.expandAll) {
    const wanted = wantedPositions(line, state);
    for (let before = state.focus || !standing?.groups ? undefined : standing; ; before = undefined) {
      yield* splitLarge(line, root);
      if (openDefault(line, root, wanted, maxBoxes, before) || !before) break;
      root = wholeLine(order);
    }
  }
  yield;
  // All that is inside is shown, in stretches if it is a long repeat: else nothing but its first unit could be opened.
  const isWhole = state.focus?.kind === "inside";
  if (root.state === "closed" || (isWhole && root.state === "reveal")) root.state = "open";
  root.chunk = isWhole;
  if (!state.expandAll && !state.focus) standing = { graph, groups: small ? null : standingOf(line, root) };
  const { shown, open } = yield* visibleGroups(line, root, state, small);

  const counter = new Counter(graph, badges);
  yield;
  const boxes: Box[] = [];
  yield* eachGroup(shown, (group) => {
    const box = makeBox(line, counter, group, root);
    for (const v of box.nodes) boxOf[v] = boxes.length;
    boxes.push(box);
  });
  const hulls: OpenGroup[] = [];
  yield* eachGroup(open, (group) => hulls.push(openGroup(line, group, root)));
  return { boxes, edges: yield* boxEdges(graph, boxes, boxOf), boxOf, open: hulls, standing, present };
}

const wholeLine = (order: Int32Array) => new Group("group", 0, order.length, 0, "g", null);

/** Calls `work` for each group, with a pause after about `SLICE` nodes. */
function* eachGroup(groups: readonly Group[], work: (group: Group) => unknown): Slices<void> {
  let nodes = 0;
  for (const group of groups) {
    work(group);
    nodes += 4 + group.b - group.a;
    if (nodes < SLICE) continue;
    nodes = 0;
    yield;
  }
}

/** 1 for the nodes on the line: all in focus, or else present, that are no badges. */
function drawnNodes(graph: Graph, badges: Badges, state: FoldState, present: Present): Uint8Array {
  const mask = state.focus ? focusMask(graph, state.focus) : state.older ? null : present.mask;
  const drawn = bytes(graph.n);
  for (let v = 0; v < graph.n; v++) drawn[v] = badges.isBadge[v] || (mask && !mask[v]) ? 0 : 1;
  return drawn;
}

function* makeLine(graph: Graph, order: Int32Array, reduce: boolean): Slices<Line> {
  const position = ints(graph.n).fill(-1);
  for (let i = 0; i < order.length; i++) position[order[i]] = i;
  yield;
  const users = usersOf(graph);
  yield;
  const levels = makeLevels(graph);
  yield;
  return { graph, order, position, users, levels, hash: yield* makeHashes(graph, order), reduce };
}

/** Positions on the line of the uids that must be visible; a badge has none. */
function wantedPositions({ graph, position }: Line, { visible = [] }: FoldState): number[] {
  const wanted = visible.map((uid) => position[graph.indexOf(uid)]);
  return [...new Set(wanted)].filter((at) => at >= 0);
}

function makeBox(line: Line, counter: Counter, group: Group, root: Group): Box {
  const { graph, order } = line;
  const nodes = order.subarray(group.a, group.b);
  const single = nodes.length === 1;
  const v = nodes[0];
  const contents = counter.contents(nodes);
  const name = single
    ? { title: graph.names[graph.name[v]] ?? "", subtitle: "", line: graph.places[graph.place[v]] }
    : nameGroup(line, group, group.parent, contents.count);
  return {
    key: single ? `n${graph.uid[v]}` : group.key,
    seat: group.key,
    kind: single ? "node" : group.kind,
    nodes,
    ...name,
    parent: parentKey(group, root),
    times: single ? 1 : group.times,
    ...contents,
  };
}

function openGroup(line: Line, group: Group, root: Group): OpenGroup {
  const { title } = nameGroup(line, group, group.parent, group.b - group.a);
  return { key: group.key, title, parent: parentKey(group, root) };
}

function parentKey(group: Group, root: Group): string | null {
  return group.parent && group.parent !== root ? group.parent.key : null;
}
