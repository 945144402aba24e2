/**
 * The scene: the list of all items to draw, for a graph that has been folded, planned and laid out. Pure: no DOM, no
 * theme. picture.ts runs the steps in order.
 */

import { doubles } from "../arrays.ts";
import { boxOfUid } from "../fold/index.ts";
import type { LayoutOutput } from "../layout/index.ts";
import { rowOf } from "../layout/types.ts";
import { LEAF_H } from "../marks.ts";
import { type Graph, isForecast, type Root } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { type DrawnBorder, drawBorder, hullItems, writeBorder } from "./areas.ts";
import { leavesAbove } from "./cards/cards.ts";
import { cardItems, leafBadges } from "./cards/items.ts";
import { type Context, levelOf } from "./context.ts";
import { lowerEdges, type Plan } from "./plan.ts";
import { RAIL_WIDTH, railItems, railWidth } from "./rail.ts";
import { Free, middleOf, type Rect, rectAt, unite } from "./rects.ts";
import { drawFlag } from "./roots.ts";
import { octagonItems, orderNote, placeTag } from "./tags.ts";
import type { Item, Scene } from "./types.ts";
import type { Gap } from "./wires/tracks.ts";
import { type Courses, keepPassages, wireCourses, wireItems } from "./wires/wires.ts";
import { writeItems } from "./wires/writes.ts";

const MARGIN = 12;
const HULL_SIDE = 10;
/** Least distance of an item from the left edge. */
const EDGE = 4;

export function* sceneSlices(plan: Plan, placed: LayoutOutput): Slices<Scene> {
  const { context, flags, cardWidth, cardHeight, height, top } = plan;
  const { boxes } = context.folded;
  // The same with and without a hull, and however wide the rail is: that must not move the cards.
  const shift = [(context.rail ? RAIL_WIDTH : MARGIN) + HULL_SIDE, MARGIN] as const;
  const rail = context.rail ? railWidth(context, placed) : 0;
  const left = placed.left - Math.max(0, rail - RAIL_WIDTH);
  const places = doubles(4 * height.length);
  yield* eachSlice(height.length, (i) => {
    const x = placed.x[i]! + shift[0] - cardWidth[i]! / 2;
    const y = placed.y[i]! + shift[1] - height[i]! / 2 + top[i]!;
    places.set([x, y, cardWidth[i]!, cardHeight[i]!], 4 * i);
  });
  const at = (i: number) => rectAt(places, i);
  const area = (b: number) => withLeaves(context, b, at(b));
  const whole = { x: placed.left + shift[0], y: placed.top + shift[1], w: placed.width, h: placed.height };
  const span = { ...whole, w: whole.w + (context.engineOrder.size > 0 ? 28 : 0) };
  const border = plan.border && drawBorder(plan.border, at, span);
  const gaps = gapsOf(plan, placed, shift[1], (i) => withEdges(plan, i, at(i)));
  const courses = yield* wireCourses(context, plan, (i) => withEdges(plan, i, at(i)), placed, shift, gaps);

  // Items that need a free place, the most important first.
  const free = new Free();
  yield* eachSlice(boxes.length, (b) => free.add(area(b)));
  const flagAreas = flags.map((flag, f) => {
    const pill = at(boxes.length + f);
    return { x: middleOf(pill) - flag.w / 2, y: pill.y, w: flag.w, h: flag.h };
  });
  for (const flag of flagAreas) free.add(flag);
  const least = context.rail ? whole.x : Number.NEGATIVE_INFINITY;
  const tags = yield* tagItems(plan, at, courses, border, least, free);
  if (border) writeBorder(context, border, least, free);
  const badges = yield* leafBadges(context, places, whole, free);

  const keyOf = (i: number) => boxes[i]?.key ?? `root${flags[i - boxes.length]!.view.root.id}`;
  const flagAt = (f: number) => (f < 0 ? undefined : at(boxes.length + f));
  const layers = [
    yield* hullItems(context, area, flagAreas),
    border ? [border.item] : [],
    yield* wireItems(context, courses, keyOf),
    context.rail
      ? yield* railItems(context, { left, width: rail }, at, (root) =>
          flagAt(flags.findIndex(({ view }) => view.root === root)),
        )
      : [],
    badges.items,
    yield* cardItems(context, places, badges.inside),
    badges.onCards,
    flags.flatMap((flag, f) => drawFlag(context, flag, middleOf(flagAt(f)!), flagAt(f)!.y)),
    tags.reverse(),
  ];
  const { seen } = context.options;
  const room = seen && roomFor(unite([whole, seen]), least);
  layers.push(signs(context, at, whole, room, free));
  layers.splice(3, 0, writeItems(context, at, whole, room, free));
  const look = (scale: number) => {
    context.level = levelOf(scale);
  };
  return { ...(yield* extent(([] as Item[]).concat(...layers), whole, left)), rail, look };
}

/** Places tags. Carriers come first, also on their wires: they explain the error. */
function* tagItems(
  { context, tags, flags }: Plan,
  at: (i: number) => Rect,
  courses: Courses,
  border: DrawnBorder | null,
  least: number,
  free: Free,
): Slices<Item[]> {
  const { folded, level } = context;
  const items: Item[] = [];
  const withFlag = new Set(flags.map(({ view }) => folded.boxOf[view.root.node]));
  for (const carrier of [true, false]) {
    if (!carrier) yield* keepPassages(courses, free);
    const wanted = [...tags].filter(([, tag]) => tag.carrier === carrier && (carrier || level === 3));
    yield* eachSlice(wanted.length, (i) => {
      const [b, tag] = wanted[i]!;
      const wires = rowOf(courses.arriving, b).filter((e) => !courses.flagOf(e));
      if (!wires.length && withFlag.has(b) && !carrier) return;
      const item = placeTag(context, tag, at(b), courses, wires, border, least, free);
      if (item) items.push(item);
    });
  }
  return items;
}

/** With more boxes than this, wires get no tracks: they could not be told apart anyway. */
const MOST_BOXES = 600;

/** The gap above each row: from the lowest card of the row above to the room of the row. */
function gapsOf({ height, flags }: Plan, { y, rank }: LayoutOutput, dy: number, at: (i: number) => Rect): Gap[] {
  if (height.length > MOST_BOXES) return [];
  const bottom: number[] = [];
  const top: number[] = [];
  const boxes = height.length - flags.length;
  rank.forEach((r, i) => {
    const end = i < boxes ? at(i).y + at(i).h : y[i]! + dy + height[i]! / 2;
    bottom[r] = Math.max(bottom[r] ?? -1 / 0, end);
    top[r] = Math.min(top[r] ?? 1 / 0, y[i]! + dy - height[i]! / 2);
  });
  return top.map((low, r) => ({ high: bottom[r - 1] ?? -1 / 0, low }));
}

/** Where a note may stand: within `area` with a margin, not left of `least`. */
function roomFor({ x, y, w, h }: Rect, least: number): Rect {
  const left = Math.max(least, x + EDGE);
  return { x: left, y: y + MARGIN, w: x + w - MARGIN - left, h: h - 2 * MARGIN };
}

/** The rectangle of a card with the second and third edges of groups and repeats, below which wires end. */
function withEdges({ context }: Plan, i: number, rect: Rect): Rect {
  rect.h += lowerEdges(context.folded.boxes[i]?.kind ?? "node");
  return rect;
}

function withLeaves(context: Context, b: number, at: Rect): Rect {
  const parts = leavesAbove(context, b) ? context.leaves[b]! : [];
  return unite([at, ...parts.map(({ x, y, w }) => ({ x: at.x + x, y: at.y + y, w, h: LEAF_H }))]);
}

/** Octagons and order notes; they are drawn last, over everything. */
function signs(context: Context, at: (b: number) => Rect, whole: Rect, room: Rect | undefined, free: Free): Item[] {
  const { folded, engineOrder, raised, wouldRaise, level } = context;
  const visible = (uids: Iterable<number>) =>
    [...new Set(uids)]
      .map((uid) => [boxOfUid(context, uid), uid] as const)
      .filter(([b]) => b >= 0)
      .sort(([a], [b]) => a - b);
  const turns = visible(level < 3 ? [] : engineOrder.keys()).flatMap(([b, uid]) =>
    folded.boxes[b]!.kind === "node" ? (orderNote(context, uid, at(b), free) ?? []) : [],
  );
  const octagons = visible([...raised, ...wouldRaise.keys()]).flatMap(([b, uid]) =>
    octagonItems(context, uid, at(b), whole, room, free),
  );
  return [...turns, ...octagons];
}

function* extent(items: Item[], whole: Rect, most: number): Slices<Omit<Scene, "look" | "rail">> {
  let left = most;
  let right = whole.x + whole.w;
  let bottom = whole.y + whole.h;
  let top = whole.y;
  yield* eachSlice(
    items.length,
    (i) => {
      const { x, y, w, h } = items[i]!;
      right = Math.max(right, x + w);
      bottom = Math.max(bottom, y + h);
      top = Math.min(top, y);
      left = Math.min(left, x - EDGE);
    },
    1024,
  );
  top = Math.min(0, top - MARGIN);
  return { left, top, width: Math.ceil(right + MARGIN - left), height: Math.ceil(bottom + MARGIN - top), items };
}

/** With more roots than this, only roots at which a call began have to be visible. */
const FEW_ROOTS = 8;

/** uids that a fold should leave visible: failing node, border, findings, these roots. */
export function importantUids(graph: Graph, roots: readonly Root[]): number[] {
  const uids = new Set<number>();
  for (const call of graph.calls.slice(-1)) if (call.failedUid !== null) uids.add(call.failedUid);
  for (const { oldUid, newUid } of graph.boundary) uids.add(oldUid).add(newUid);
  for (const finding of graph.findings) {
    // An error of an earlier call stays in the list, but is not current.
    if (finding.severity !== "error" && finding.uid !== null && (finding.severity === "warning" || isForecast(finding)))
      uids.add(finding.uid);
  }
  const called = new Set(graph.calls.slice(-FEW_ROOTS).flatMap(({ rootUids }) => rootUids));
  for (const { node } of roots) {
    const uid = graph.uid[node];
    if (uid !== undefined && (roots.length <= FEW_ROOTS || called.has(uid))) uids.add(uid);
  }
  return [...uids];
}
