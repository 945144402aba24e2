/** Wires: from the loss up to the inputs. The lines of several roots run side by side in one wire. */

import { doubles, ints } from "../../arrays.ts";
import type { LayoutOutput } from "../../layout/index.ts";
import { collect, type Rows, rowOf } from "../../layout/types.ts";
import { arrowhead, type Mark, path, wire } from "../../marks.ts";
import { eachSlice, type Slices } from "../../slices.ts";
import { type Context, isDimmed, rootsOf, sides } from "../context.ts";
import { LazyItem } from "../lazy.ts";
import { type Free, middleOf, type Rect } from "../rects.ts";
import type { Flag } from "../roots.ts";
import type { Item, RootView } from "../types.ts";
import { type Gap, LINE_GAP, layTracks, noTracks, type Tracks, trackData } from "./tracks.ts";

/** Pairs of laid-out boxes, from the lower to the upper one; the wires of flags come last. */
interface Links {
  edges: Int32Array;
  flags: readonly Flag[];
}

/** The courses of all wires: points from the lower box to the upper one. */
export interface Courses {
  from: Int32Array;
  to: Int32Array;
  /** Per box: the wires that end there. */
  arriving: Rows;
  /** x, y, x, y ... of wire e: `points[start[e]]` to `points[start[e + 1]]`. */
  start: Int32Array;
  points: Float64Array;
  /** The flat runs of its pieces. */
  tracks: Tracks;
  /** The root whose flag wire e leaves; null for a wire between boxes. */
  flagOf(e: number): RootView | null;
  /** The roots whose lines run in wire e. */
  rootsOf(e: number): readonly (RootView | null)[];
  isGone(e: number): boolean;
}

const MAX_LINES = 4;
const PORT_GAP = 52;
const ARROW = 4;
/** A wire whose ends are at most this many px apart horizontally is drawn straight, if possible. */
const NEARLY = 22;
/** If boxes are lower than their rows by more than this many px, wires run straight beside higher neighbours. */
const HIGHER = 9;

/** The number of lines in a wire that these roots reach. */
export function linesIn(mask: number): number {
  let lines = 0;
  for (let rest = mask; rest && lines < MAX_LINES; rest &= rest - 1) lines++;
  return lines;
}

/** The courses of all wires. `at`: the visible rectangle of a laid-out box. `gaps`: above the rows; none: no tracks. */
export function* wireCourses(
  context: Context,
  { edges, flags }: Links,
  at: (i: number) => Rect,
  { rank, route, routeStart }: LayoutOutput,
  [dx, dy]: readonly [number, number],
  gaps: readonly Gap[],
): Slices<Courses> {
  const [from, to] = sides(edges);
  const count = from.length;
  const start = ints(count + 1);
  const points = doubles(route.length + 4 * count);
  yield* eachSlice(count, (e) => {
    const lower = at(from[e]!);
    const upper = at(to[e]!);
    let p = start[e]!;
    const add = (x: number, y: number) => {
      points[p++] = x;
      points[p++] = y;
    };
    add(middleOf(lower), lower.y);
    const first = routeStart[e]! + 2;
    const last = routeStart[e + 1]! - 4;
    // Between neighbouring rows a wire needs no points between its ends, unless other boxes in these rows are higher.
    const beside = lower.y - route[first + 1]! + route[last + 1]! - upper.y - upper.h;
    if (last > first + 2 || beside > HIGHER)
      for (let r = first; r <= last; r += 2) add(route[r]! + dx, route[r + 1]! + dy);
    add(middleOf(upper), upper.y + upper.h);
    start[e + 1] = p;
  });
  const ids = from.map((_, e) => e);
  const arriving = collect(rank.length, to, ids);
  yield;
  const leaving = collect(rank.length, from, ids);
  yield;
  const flagOf = (e: number) => flags[e - (count - flags.length)]?.view ?? null;
  const courses: Courses = {
    from,
    to,
    arriving,
    start,
    points,
    tracks: noTracks(points),
    flagOf,
    rootsOf(e) {
      const flag = flagOf(e);
      if (flag) return [flag];
      const roots = rootsOf(context, context.reach[from[e]!]!).slice(0, MAX_LINES);
      return roots.length ? roots : [null];
    },
    isGone: (e) => flagOf(e)?.gone ?? context.ghost[from[e]!] === 1,
  };
  yield* spread(courses, leaving, at, 0);
  yield* spread(courses, arriving, at, 1);
  yield* eachSlice(count, (e) => straighten(courses, e, at));
  if (gaps.length) courses.tracks = layTracks(courses, gaps, (e) => courses.rootsOf(e).length);
  return courses;
}

/** With more wires than this, only vertical pieces are kept free. A slanted piece is kept free in `SLANTS` steps. */
const MANY = 4096;
const SLANTS = 6;

/** Horizontal progress of a slanted piece, from 0 to 1, at the share `t` of its height. */
const bend = (t: number) => t * t * (3 - 2 * t);

/** Marks the places of wires as occupied; of very many wires only the vertical pieces, as slanted ones take long. */
export function* keepPassages({ points, start, rootsOf, tracks }: Courses, free: Free): Slices<void> {
  const slants = start.length < MANY ? SLANTS : 0;
  yield* eachSlice(start.length - 1, (e) => {
    const half = (rootsOf(e).length * LINE_GAP) / 2;
    for (let p = start[e]! + 2; p < start[e + 1]!; p += 2) {
      const [ax, ay, bx, by] = points.subarray(p - 2, p + 2) as unknown as [number, number, number, number];
      const run = tracks.y[p >> 1]!;
      if (!Number.isNaN(run)) {
        const across = (rootsOf(e).length * tracks.pitch[p >> 1]!) / 2;
        free.add({ x: ax - half, y: run, w: 2 * half, h: ay - run });
        free.add({ x: Math.min(ax, bx), y: run - across, w: Math.abs(bx - ax), h: 2 * across });
        free.add({ x: bx - half, y: by, w: 2 * half, h: run - by });
        continue;
      }
      const steps = Math.abs(ax - bx) < 1 ? 1 : slants;
      const h = (ay - by) / steps;
      for (let i = 1, x = ax; i <= steps; i++) {
        const next = ax + (bx - ax) * bend(i / steps);
        free.add({ x: Math.min(x, next) - half, y: ay - i * h, w: Math.abs(next - x) + 2 * half, h });
        x = next;
      }
    }
  });
}

/** Spreads the ends of the wires at one side of each box, in the order of x at their next points. */
function* spread({ start, points }: Courses, wires: Rows, at: (i: number) => Rect, end: 0 | 1): Slices<void> {
  // Index of the end itself in `points`, and x of the point next to it.
  const own = (e: number) => (end ? start[e + 1]! - 2 : start[e]!);
  const next = (e: number) => points[own(e) + (end ? -2 : 2)]!;
  yield* eachSlice(wires.start.length - 1, (box) => {
    const list = rowOf(wires, box);
    if (list.length < 2) return;
    const { x, w } = at(box);
    const gap = Math.min(PORT_GAP, (w - 40) / list.length);
    [...list]
      .sort((a, b) => next(a) - next(b))
      .forEach((e, i) => {
        points[own(e)] = x + w / 2 + (i - (list.length - 1) / 2) * gap;
      });
  });
}

/** Makes a nearly straight wire straight if the lower box is wide enough. A long wire gets vertical ends. */
function straighten({ start, points, from }: Courses, e: number, at: (i: number) => Rect): void {
  const first = start[e]!;
  const last = start[e + 1]! - 2;
  if (last > first + 2) {
    points[first + 2] = points[first]!;
    points[last - 2] = points[last]!;
    return;
  }
  const x = points[last]!;
  const away = x - points[first]!;
  if (away === 0 || Math.abs(away) > NEARLY) return;
  const box = at(from[e]!);
  if (x > box.x + 14 && x < box.x + box.w - 14) points[first] = x;
}

/**
 * Path data through the points of wire e, vertical at each of them, `off` px beside its middle; relative to x0, y0.
 */
function courseData({ start, points: all, tracks }: Courses, e: number, off: number, x0: number, y0: number): string {
  const first = start[e]!;
  const points = all.subarray(first, start[e + 1]);
  const [dx, dy] = [off - x0, -y0];
  let d = path`M${points[0]! + dx} ${points[1]! + dy}`;
  for (let i = 2; i < points.length; i += 2) {
    const [ax, ay, bx, by] = [points[i - 2]! + dx, points[i - 1]! + dy, points[i]! + dx, points[i + 1]! + dy];
    const end = i === points.length - 2 ? by + ARROW : by;
    const k = (first + i) >> 1;
    if (!Number.isNaN(tracks.y[k]!)) {
      // Where a wire turns to the right its right line is the lower one: so the lines do not cross.
      const lower = (Math.sign(bx - ax) * off * tracks.pitch[k]!) / LINE_GAP;
      d += trackData(ax, bx, tracks.y[k]! + lower + dy, end);
      continue;
    }
    const pull = Math.min(26, ay - end, Math.max(10, (ay - end) / 2));
    d += Math.abs(ax - bx) < 0.5 ? path`V${end}` : path`C${ax} ${ay - pull} ${bx} ${end + pull} ${bx} ${end}`;
  }
  return d;
}

/** Approximate x of a course at height y, for tags on it. */
export function courseAt({ points: all, start, tracks }: Courses, e: number, y: number): number {
  const points = all.subarray(start[e], start[e + 1]);
  const last = points.length - 2;
  for (let i = 2; i <= last; i += 2) {
    const [ax, ay, bx, by] = [points[i - 2]!, points[i - 1]!, points[i]!, points[i + 1]!];
    if (y > ay || y < by) continue;
    const run = tracks.y[(start[e]! + i) >> 1]!;
    if (!Number.isNaN(run)) return y > run ? ax : bx;
    // A piece may have no height.
    const t = (ay - y) / (ay - by || 1);
    return ax + (bx - ax) * bend(t);
  }
  return points[last]!;
}

/** One item per wire. `keys`: keys of the laid-out boxes. */
export function* wireItems(context: Context, courses: Courses, keys: (i: number) => string): Slices<Item[]> {
  const { from, to, start, points, rootsOf } = courses;
  const places = doubles(4 * from.length);
  const source = {
    places,
    context,
    key: (e: number) => `w${keys(from[e]!)}>${keys(to[e]!)}`,
    role: () => "wire" as const,
    make: (e: number) => ({ marks: lines(context, courses, e, places[4 * e]!, places[4 * e + 1]!) }),
  };
  const items: Item[] = [];
  yield* eachSlice(from.length, (e) => {
    const half = (rootsOf(e).length * LINE_GAP) / 2 + 4;
    // A wire only goes up: its last point is its top.
    const [first, end] = start.subarray(e, e + 2) as unknown as [number, number];
    const top = points[end - 1]!;
    let [left, right] = [1 / 0, -1 / 0];
    for (let p = first; p < end; p += 2) {
      left = Math.min(left, points[p]!);
      right = Math.max(right, points[p]!);
    }
    places.set([left - half, top, right - left + 2 * half, points[first + 1]! - top], 4 * e);
    items.push(new LazyItem(source, e));
  });
  return items;
}

/** One line per root, side by side, each with its arrowhead; relative to x0, y0. */
function lines(context: Context, courses: Courses, e: number, x0: number, y0: number): Mark[] {
  const marks: Mark[] = [];
  const [tipX, tipY] = courses.points.subarray(0, courses.start[e + 1]).subarray(-2) as unknown as [number, number];
  const far = context.level === 0;
  const roots = courses.rootsOf(e);
  roots.forEach((view, i) => {
    const off = far ? 0 : (i - (roots.length - 1) / 2) * LINE_GAP;
    const hue = view?.hue ?? "r0";
    const look = isDimmed(context, view) ? "dim" : courses.isGone(e) ? "gone" : "";
    marks.push(...wire(courseData(courses, e, off, x0, y0), far ? 1 : (view?.style ?? 1), hue, look, far));
    if (!far && look !== "dim") marks.push(arrowhead(tipX + off - x0, tipY - y0 + 0.5, hue));
  });
  return marks;
}
