/**
 * Graphs that have nothing to do with each other stand side by side. Where there is no room for that, they stand in
 * shelves, as words in lines: the later ones below.
 */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import { layoutSlices } from "./index.ts";
import { type LayoutInput, type LayoutOutput, rowsOf } from "./types.ts";

/** With more boxes than this, nothing is laid out a second time. */
const MOST_BOXES = 600;
/** Room between two shelves, beyond that of two rows, in px. */
const BETWEEN = 28;

/** The part of the graph that each box belongs to, numbered from 0. */
export function partsOf({ n, edges }: Pick<LayoutInput, "n" | "edges">): Int32Array {
  const first = ints(n).map((_, v) => v);
  const find = (v: number) => {
    let at = v;
    while (first[at] !== at) at = first[at] = first[first[at]!]!;
    return at;
  };
  for (let e = 0; e < edges.length; e += 2) {
    const [a, b] = [find(edges[e]!), find(edges[e + 1]!)];
    first[Math.max(a, b)] = Math.min(a, b);
  }
  const numbers = new Map<number, number>();
  return first.map((_, v) => {
    const root = find(v);
    if (!numbers.has(root)) numbers.set(root, numbers.size);
    return numbers.get(root)!;
  });
}

/**
 * The shelf of each part; each shelf is as full as `most` px allow. Those that stand already come first, from top to
 * bottom, then the others from left to right as in the layout `whole`.
 */
function shelvesOf(part: Int32Array, input: LayoutInput, { x }: LayoutOutput, most: number): number[] {
  const { width, nodesep, previous } = input;
  const extents: { part: number; left: number; right: number; stood: number }[] = [];
  part.forEach((p, v) => {
    const edge = { left: Number.POSITIVE_INFINITY, right: Number.NEGATIVE_INFINITY, stood: Number.MAX_VALUE };
    extents[p] ??= { part: p, ...edge };
    const extent = extents[p];
    extent.left = Math.min(extent.left, x[v]! - width[v]! / 2);
    extent.right = Math.max(extent.right, x[v]! + width[v]! / 2);
    if (previous && Number.isFinite(previous.y[v])) extent.stood = Math.min(extent.stood, previous.y[v]!);
  });
  const shelf: number[] = [];
  let [last, used] = [0, 0];
  for (const { part: p, left, right } of [...extents].sort((a, b) => a.stood - b.stood || a.left - b.left)) {
    const wide = right - left + nodesep;
    if (used > 0 && used + wide > most) [last, used] = [last + 1, 0];
    used += wide;
    shelf[p] = last;
  }
  return shelf;
}

/** The boxes and edges for which `isIn` holds. `back`: their numbers in the whole. */
function piece(input: LayoutInput, isIn: (v: number) => boolean) {
  const { n, edges, lines, foot, lane, previous } = input;
  const boxes = Array.from({ length: n }, (_, v) => v).filter(isIn);
  const at = new Map(boxes.map((v, i) => [v, i]));
  const wires = Array.from({ length: edges.length >> 1 }, (_, e) => e).filter((e) => at.has(edges[2 * e]!));
  const some = (of: Float32Array) => Float32Array.from(boxes, (v) => of[v]!);
  const own: LayoutInput = {
    ...input,
    n: boxes.length,
    width: some(input.width),
    height: some(input.height),
    edges: Int32Array.from(wires.flatMap((e) => [at.get(edges[2 * e]!)!, at.get(edges[2 * e + 1]!)!])),
    ...(lines && { lines: Uint8Array.from(wires, (e) => lines[e]!) }),
    ...(foot && { foot: some(foot) }),
    ...(lane && { lane: some(lane) }),
    ...(previous && { previous: { x: some(previous.x), y: some(previous.y) } }),
  };
  return { own, back: { boxes, wires } };
}

/** `layoutSlices`, with shelves where all parts beside each other are wider than `input.most`. */
export function* shelvedSlices(input: LayoutInput): Slices<LayoutOutput> {
  const whole = yield* layoutSlices(input);
  const { n, edges, previous, ranksep, most = Number.POSITIVE_INFINITY } = input;
  if (whole.width <= most || n > MOST_BOXES) return whole;
  const part = partsOf(input);
  const shelf = shelvesOf(part, input, whole, most);
  const shelves = Math.max(...shelf) + 1;
  if (shelves < 2) return whole;
  const { x, y, rank } = whole;
  const routes: Float32Array[] = [];
  let [left, right, bottom, rows] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
  for (let s = 0; s < shelves; s++) {
    const { own, back } = piece(input, (v) => shelf[part[v]!] === s);
    const laid = yield* layoutSlices(own);
    // What stands already stays where it is, if what is above has not grown.
    const stands = previous !== undefined && own.previous!.y.some(Number.isFinite);
    const dx = stands ? 0 : -laid.left - laid.width / 2;
    const least = s === 0 ? 0 : bottom + ranksep + BETWEEN - laid.top;
    const dy = stands ? Math.max(0, least) : least;
    back.boxes.forEach((v, i) => {
      x[v] = laid.x[i]! + dx;
      y[v] = laid.y[i]! + dy;
      rank[v] = laid.rank[i]! + rows;
    });
    back.wires.forEach((e, i) => {
      routes[e] = laid.route
        .slice(laid.routeStart[i]!, laid.routeStart[i + 1]!)
        .map((value, k) => value + (k % 2 ? dy : dx));
    });
    if (s === 0) whole.top = laid.top + dy;
    left = Math.min(left, laid.left + dx);
    right = Math.max(right, laid.left + laid.width + dx);
    bottom = laid.top + laid.height + dy;
    rows += rowsOf(laid.rank);
  }
  const routeStart = ints((edges.length >> 1) + 1);
  routes.forEach((route, e) => {
    routeStart[e + 1] = routeStart[e]! + route.length;
  });
  const route = new Float32Array(routeStart.at(-1)!);
  routes.forEach((each, e) => void route.set(each, routeStart[e]!));
  return { ...whole, routeStart, route, left, width: right - left, height: bottom - whole.top };
}
