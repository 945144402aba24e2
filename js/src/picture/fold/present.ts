/**
 * The present: the part of the graph that the default view shows. It is decided here and nowhere else.
 *
 * It belongs to the newest cell that made or ran something that can be drawn: what that cell made, the graphs of the
 * calls that it made (or that were made by buttons since), and the graph of a call that freed what a failing one
 * needed. Older graphs that share nodes with it belong to it, too, unless a call has raised: then only the failing pair
 * is of interest. All other graphs are older. The decision depends on the newest cell only, so it is stable in a loop.
 */
import { bytes } from "../arrays.ts";
import { type Finding, type Graph, KIND, type Root } from "../model.ts";
import { eachSlice, runSlices, type Slices } from "../slices.ts";
import { usersOf } from "./focus.ts";
import type { Present } from "./types.ts";

/** At most so many older graphs that share nodes with the present are shown with it: the newest ones. */
const MOST_JOINED = 3;
const SLICE = 8192;

const known = new WeakMap<Graph, Present>();

export function presentOf(graph: Graph): Present {
  return known.get(graph) ?? runSlices(presentSlices(graph));
}

/** The same in slices. */
export function* presentSlices(graph: Graph): Slices<Present> {
  let present = known.get(graph);
  if (!present) {
    present = yield* decide(graph);
    known.set(graph, present);
  }
  return present;
}

/** The cell in which a node was made, called from there if a function of another cell made it; null: unknown. */
export function cellOf({ places, place }: Graph, node: number): number | null {
  const line = places[place[node] ?? -1];
  return line ? (line.outerCell ?? line.cell) : null;
}

/** Whether a finding is of an earlier cell than the newest that made or ran something, or about an older graph only. */
export function isPast({ cell, uid, uids }: Finding, graph: Graph): boolean {
  const present = presentOf(graph);
  if (cell !== null) return present.cell !== null && cell < present.cell;
  const nodes = [uid, ...uids].map((each) => graph.indexOf(each)).filter((node) => node >= 0);
  return present.mask !== null && nodes.length > 0 && nodes.every((node) => !present.mask![node]);
}

function* decide(graph: Graph): Slices<Present> {
  const drawn = graph.roots.filter((root) => root.node >= 0);
  const made = yield* newestMade(graph);
  const ran = graph.events.findLast(({ kind, cell }) => kind === "call" && cell !== null)?.cell ?? -1;
  const all: Present = { cell: Math.max(made, ran), mask: null, roots: drawn, older: [] };
  if (all.cell! < 0) all.cell = null;
  // A call whose graph is gone and not drawn is past: then the newest graph is what there is to see.
  const starts = ran >= made ? startsOfCalls(graph, ran) : [];
  const cell = starts.length ? ran : made;
  if (cell < 0) return all;
  if (!starts.length) starts.push(...startsOfCalls(graph, cell));
  const isStart = new Set(starts);
  // Of a root that no known cell made nobody knows that it is older.
  const isOwn = ({ node }: Root) => isStart.has(node) || [cell, null].includes(cellOf(graph, node));
  const own = drawn.filter(isOwn);
  if (own.length === drawn.length) return all;
  starts.push(...own.map((root) => root.node));

  yield* eachSlice(
    graph.n,
    (v) => {
      if (graph.kind[v] !== KIND.accumulate && cellOf(graph, v) === cell) starts.push(v);
    },
    SLICE,
  );
  const mask = bytes(graph.n);
  yield* spread(graph, starts, mask);
  if (!hasRaised(graph, cell)) {
    const joins = yield* joining(graph, mask);
    const others = drawn.filter((root) => root.alive && !mask[root.node] && joins[root.node]);
    const newest = others.sort((a, b) => graph.seq[b.node] - graph.seq[a.node]).slice(0, MOST_JOINED);
    yield* spread(
      graph,
      newest.map((root) => root.node),
      mask,
    );
  }
  const older = drawn.filter((root) => !mask[root.node]).sort((a, b) => graph.seq[b.node] - graph.seq[a.node]);
  if (!older.length) return all;
  return { cell: all.cell, mask, roots: drawn.filter((root) => mask[root.node]), older };
}

/** The newest cell that made a node, -1: none is known. */
function* newestMade(graph: Graph): Slices<number> {
  const cells = new Set<number>();
  const lines = new Set<number>();
  yield* eachSlice(
    graph.n,
    (v) => {
      if (graph.kind[v] === KIND.accumulate || lines.has(graph.place[v])) return;
      lines.add(graph.place[v]);
      cells.add(cellOf(graph, v) ?? -1);
    },
    SLICE,
  );
  return Math.max(-1, ...cells);
}

/** The calls of a cell, and those of buttons since, the oldest first. */
function callsOf({ events, calls }: Graph, cell: number) {
  const first = events.findIndex((event) => event.cell === cell);
  const later = first < 0 ? [] : events.slice(first);
  const since = later.filter((event) => event.kind === "call" && (event.cell === cell || event.cell === null));
  const numbers = new Set(since.map((event) => event.call));
  return calls.filter((call) => numbers.has(call.n));
}

/** The drawn nodes at which the calls of a cell began, and the calls that freed what a failing one of them needed. */
function startsOfCalls(graph: Graph, cell: number): number[] {
  const own = callsOf(graph, cell);
  const freeing = new Set(own.slice(-1).map((call) => call.freedBy));
  const all = [...own, ...graph.calls.filter((call) => freeing.has(call.n))];
  return [...new Set(all.flatMap((call) => call.rootUids.map((uid) => graph.indexOf(uid))))].filter(
    (node) => node >= 0,
  );
}

const hasRaised = (graph: Graph, cell: number) => callsOf(graph, cell).at(-1)?.result === "raised";

/** Sets the mask for these nodes and all that they are computed from. */
function* spread({ edgeStart, edgeTo }: Graph, starts: readonly number[], mask: Uint8Array): Slices<void> {
  const stack = starts.filter((v) => !mask[v]);
  for (const v of stack) mask[v] = 1;
  for (let steps = 0, v = stack.pop(); v !== undefined; v = stack.pop()) {
    for (let e = edgeStart[v]; e < edgeStart[v + 1]; e++) {
      const to = edgeTo[e];
      if (mask[to]) continue;
      mask[to] = 1;
      stack.push(to);
    }
    if (++steps % SLICE === 0) yield;
  }
}

/** 1 for the nodes outside of the mask that are computed from a node in it; a leaf alone joins nothing. */
function* joining(graph: Graph, mask: Uint8Array): Slices<Uint8Array> {
  const users = usersOf(graph);
  const joins = bytes(graph.n);
  const stack: number[] = [];
  yield* eachSlice(
    graph.n,
    (v) => {
      if (mask[v] && graph.kind[v] !== KIND.accumulate) stack.push(v);
    },
    SLICE,
  );
  for (let steps = 0, v = stack.pop(); v !== undefined; v = stack.pop()) {
    for (let k = users.start[v]; k < users.start[v + 1]; k++) {
      const user = users.item[k];
      if (joins[user] || mask[user]) continue;
      joins[user] = 1;
      stack.push(user);
    }
    if (++steps % SLICE === 0) yield;
  }
  return joins;
}
