/** Wires: from the loss up to the inputs, one line per root, side by side in one bed. */

import type { LayoutOutput } from "../layout/index.ts";
import { arrowhead, path, wire } from "../marks.ts";
import type { Item, Mark } from "../scene.ts";
import type { Context, RootView } from "./context.ts";
import { isDimmed, rootsOf } from "./context.ts";
import { lazyItem } from "./lazy.ts";
import type { Rect } from "./rects.ts";

export interface Edge {
  from: number;
  to: number;
  /** The root whose flag it leaves; null between boxes. */
  flag: RootView | null;
}

/** A wire's course: points from the lower box to the upper one. */
export interface Course {
  edge: Edge;
  points: [number, number][];
  roots: (RootView | null)[];
  gone: boolean;
}

const LINE_GAP = 6;
const MAX_LINES = 4;
const PORT_GAP = 52;
const ARROW = 4;
/** A wire this far from straight is drawn straight. */
const NEARLY = 22;

/** Where every wire runs. `rects`: the visible rectangle of each laid-out box. */
export function wireCourses(
  context: Context,
  edges: readonly Edge[],
  rects: readonly Rect[],
  placed: LayoutOutput,
  shift: readonly [number, number],
): Course[] {
  const courses = edges.map((edge, e): Course => {
    const points: [number, number][] = [];
    for (let p = placed.routeStart[e]!; p < placed.routeStart[e + 1]!; p += 2) {
      points.push([placed.route[p]! + shift[0], placed.route[p + 1]! + shift[1]]);
    }
    const near = placed.rank[edge.from]! - placed.rank[edge.to]! === 1;
    const inner = near ? [] : points.slice(1, -1);
    const ends = [centreTop(rects[edge.from]!), centreBottom(rects[edge.to]!)] as const;
    return { edge, points: [ends[0], ...inner, ends[1]], ...linesOf(context, edge) };
  });
  spread(courses, rects, "from");
  spread(courses, rects, "to");
  for (const course of courses) straighten(course, rects);
  return courses;
}

/** Upright pieces of long wires, for what must not stand on them. */
export function passages(courses: readonly Course[]): Rect[] {
  const areas: Rect[] = [];
  for (const { points, roots } of courses) {
    const half = (roots.length * LINE_GAP) / 2;
    for (let i = 1; i < points.length; i++) {
      const [ax, ay] = points[i - 1]!;
      const [bx, by] = points[i]!;
      if (Math.abs(ax - bx) < 1 && points.length > 2) areas.push({ x: ax - half, y: by, w: 2 * half, h: ay - by });
    }
  }
  return areas;
}

const centreTop = (box: Rect): [number, number] => [box.x + box.w / 2, box.y];
const centreBottom = (box: Rect): [number, number] => [box.x + box.w / 2, box.y + box.h];

function linesOf(context: Context, edge: Edge): { roots: (RootView | null)[]; gone: boolean } {
  if (edge.flag) return { roots: [edge.flag], gone: edge.flag.gone };
  const roots = rootsOf(context, context.reach[edge.from]!);
  return { roots: roots.length ? roots.slice(0, MAX_LINES) : [null], gone: context.ghost[edge.from] === 1 };
}

/** Gives the wires at one side of a box their own places, in the order of where they come from. */
function spread(courses: Course[], rects: readonly Rect[], end: "from" | "to"): void {
  const byBox = new Map<number, Course[]>();
  for (const course of courses) {
    const list = byBox.get(course.edge[end]);
    if (list) list.push(course);
    else byBox.set(course.edge[end], [course]);
  }
  for (const [box, list] of byBox) {
    if (list.length < 2) continue;
    const neighbour = (course: Course) =>
      end === "from" ? course.points[1]![0] : course.points[course.points.length - 2]![0];
    list.sort((a, b) => neighbour(a) - neighbour(b));
    const { x, w } = rects[box]!;
    const gap = Math.min(PORT_GAP, (w - 40) / list.length);
    list.forEach((course, i) => {
      const at = x + w / 2 + (i - (list.length - 1) / 2) * gap;
      course.points[end === "from" ? 0 : course.points.length - 1]![0] = at;
    });
  }
}

/** A wire that is nearly straight becomes straight, where both boxes reach that far. */
function straighten(course: Course, rects: readonly Rect[]): void {
  if (course.points.length !== 2) {
    upright(course.points);
    return;
  }
  const [lower, upper] = course.points as [[number, number], [number, number]];
  const away = upper[0] - lower[0];
  if (away === 0 || Math.abs(away) > NEARLY) return;
  const from = rects[course.edge.from]!;
  if (upper[0] > from.x + 14 && upper[0] < from.x + from.w - 14) lower[0] = upper[0];
}

/** The ends of a long wire leave and arrive straight up through their own rows. */
function upright(points: [number, number][]): void {
  const last = points.length - 1;
  points[1] = [points[0]![0], points[1]![1]];
  if (last > 2) points[last - 1] = [points[last]![0], points[last - 1]![1]];
}

/** Path data through the points, upright at each of them; `dx` shifts one line of a bundle. */
function courseData(points: readonly [number, number][], dx: number, x0: number, y0: number): string {
  const [first] = points;
  let d = path`M${first![0] + dx - x0} ${first![1] - y0}`;
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1]!;
    const [bx, by] = points[i]!;
    const end = i === points.length - 1 ? by + ARROW : by;
    if (Math.abs(ax - bx) < 0.5) {
      d += path`V${end - y0}`;
      continue;
    }
    const pull = bend(ay, end);
    d += path`C${ax + dx - x0} ${ay - pull - y0} ${bx + dx - x0} ${end + pull - y0} ${bx + dx - x0} ${end - y0}`;
  }
  return d;
}

const bend = (below: number, above: number) => Math.max(10, Math.min(26, Math.abs(below - above) * 0.5));

/** The point of a course at height y, for what hangs on it. */
export function pointAt(course: Course, y: number): [number, number] {
  const { points } = course;
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1]!;
    const [bx, by] = points[i]!;
    if (y > ay || y < by) continue;
    const end = i === points.length - 1 ? by + ARROW : by;
    const pull = bend(ay, end);
    let low = 0;
    let high = 1;
    for (let step = 0; step < 12; step++) {
      const t = (low + high) / 2;
      const s = 1 - t;
      const height = s ** 3 * ay + 3 * s * s * t * (ay - pull) + 3 * s * t * t * (end + pull) + t ** 3 * end;
      if (height > y) low = t;
      else high = t;
    }
    const t = (low + high) / 2;
    return [ax + (bx - ax) * (3 * t * t - 2 * t ** 3), y];
  }
  return points[points.length - 1]!;
}

export function wireItem(context: Context, course: Course, key: string): Item {
  const { points, roots } = course;
  const half = (roots.length * LINE_GAP) / 2 + 4;
  let [left, right, top, bottom] = [points[0]![0], points[0]![0], points[0]![1], points[0]![1]];
  for (const [x, y] of points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  const x = left - half;
  const place = { key, role: "wire" as const, x, y: top, w: right + half - x, h: bottom - top };
  const only = roots.length === 1 ? roots[0] : null;
  return lazyItem(only ? { ...place, root: only.root.id } : place, () => ({ marks: lines(context, course, x, top) }));
}

/** One line per root, side by side, each with its arrowhead; relative to x0, y0. */
function lines(context: Context, { points, roots, gone }: Course, x0: number, y0: number): Mark[] {
  const marks: Mark[] = [];
  const [tipX, tipY] = points[points.length - 1]!;
  const far = context.level === 0;
  roots.forEach((view, i) => {
    const dx = far ? 0 : (i - (roots.length - 1) / 2) * LINE_GAP;
    const dim = isDimmed(context, view);
    const hue = view?.hue ?? "r0";
    const d = courseData(points, dx, x0, y0);
    marks.push(...wire(d, far ? 1 : (view?.style ?? 1), hue, dim ? "dim" : gone ? "gone" : "", far));
    if (!far) marks.push(arrowhead(tipX + dx - x0, tipY - y0 + 0.5, hue, dim));
  });
  return marks;
}
