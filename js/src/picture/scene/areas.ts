/** Areas around and between cards: the hull of the shared part, the border of old and new. */

import { ints } from "../arrays.ts";
import { rowOf } from "../layout/types.ts";
import { path, rect, shape, text } from "../marks.ts";
import { placeOf } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { listText, whenText } from "../words.ts";
import { type Context, rootsOf, sized } from "./context.ts";
import { Free, middleOf, type Rect, unite } from "./rects.ts";
import type { Item } from "./types.ts";

const PAD = 13;
/** Smaller padding where other things are near, and where there is hardly any room. */
const NEAR = 8;
const LEAST = 2;

// ---- Hull ---------------------------------------------------------------------------------------------------------

const HULL_TOP = 20;
/** Room for the names of those who share it, in px: with longer names their number is said. */
const NAMES_ROOM = 320;

/** Whether there is a hull: two or more roots reach some of the boxes, but not all. */
const hasHull = ({ shared }: Context) => shared.includes(1) && shared.includes(0);

/** Pieces of a hull are not joined beyond this height (px): it takes too long to find what stands in between. */
const HIGHEST = 4096;

/**
 * One hull for each connected shared part, in pieces where something else stands in between. `area`: the rectangle of a
 * box with its leaves; `flags`: those of flags with their buttons.
 */
export function* hullItems(context: Context, area: (b: number) => Rect, flags: readonly Rect[]): Slices<Item[]> {
  const { shared } = context;
  const items: Item[] = [];
  if (!hasHull(context)) return items;
  const partOf = ints(shared.length);
  const parts: number[][] = [];
  yield* eachSlice(shared.length, (start) => {
    if (!shared[start] || partOf[start]) return;
    const next = (b: number) => [...rowOf(context.above, b), ...rowOf(context.below, b)];
    parts.push(reachable([start], next, partOf, shared, parts.length + 1));
  });
  const free = new Free();
  yield* eachSlice(shared.length, (b) => free.add(area(b), partOf[b]));
  for (const flag of flags) free.add(flag);
  yield* eachSlice(parts.length, (i) => {
    const part = parts[i]!;
    let words = sharedWords(context, part);
    const isFree = (place: Rect) => free.has(place, i + 1);
    const pieces: { b: number; at: Rect }[] = [];
    for (const next of part.map((b) => ({ b, at: area(b) })).sort((p, q) => p.at.y - q.at.y)) {
      const last = pieces.at(-1);
      const both = unite([(last ?? next).at, next.at]);
      if (last && both.h < HIGHEST && isFree(around(context, both, NEAR))) last.at = both;
      else pieces.push(next);
    }
    for (const { b, at } of pieces) {
      const tries = [around(context, at, PAD, words), around(context, at, NEAR, words), around(context, at, NEAR)];
      const { said, ...place } = tries.find(isFree) ?? around(context, at, LEAST);
      const marks = [rect(0, 0, place.w, place.h, "hull", 10)];
      if (said && context.level === 3) marks.push(text(10, 10, said, "hullname"));
      if (said) words = "";
      free.add(place, i + 1);
      items.push({ key: `hull${context.folded.boxes[b]!.key}`, role: "hull", ...place, marks });
    }
  });
  return items;
}

/** All boxes that can be reached from `starts` through boxes in `within`; sets `seen` to `mark` for each of them. */
function reachable(
  starts: readonly number[],
  next: (b: number) => Iterable<number>,
  seen: Int32Array,
  within?: Uint8Array,
  mark = 1,
): number[] {
  const found: number[] = [];
  const stack = [...starts];
  while (stack.length) {
    const b = stack.pop()!;
    if (seen[b] || (within && !within[b])) continue;
    seen[b] = mark;
    found.push(b);
    for (const other of next(b)) stack.push(other);
  }
  return found;
}

/** `shared by loss1 and loss2`; `shared by 2 graphs` where the roots have one name. */
function sharedWords(context: Context, part: readonly number[]): string {
  const mask = part.reduce((all, b) => all | context.reach[b]!, 0);
  const names = rootsOf(context, mask).map((view) => view.root.path);
  const different = new Set(names);
  const more = context.roots.at(-1)!.bit ? "" : "+";
  const named = `shared by ${listText(names, 3)}`;
  const isTold = !more && different.size === names.length && !different.has("");
  if (isTold && context.measure(named, "hullname") <= NAMES_ROOM) return named;
  return `shared by ${names.length}${more} graphs`;
}

/** The rectangle of a hull around `at`, with room above for its text `said`. */
function around({ level, measure }: Context, at: Rect, pad: number, said = "") {
  const top = said ? HULL_TOP : pad;
  const w = Math.max(at.w + 2 * pad, said && level === 3 ? measure(said, "hullname") + 20 : 0);
  return { x: middleOf(at) - w / 2, y: at.y - top, w, h: at.h + top + pad, said };
}

// ---- Border between old and new ---------------------------------------------------------------------------------------

export interface Border {
  old: number[];
  fresh: number[];
  /** New boxes that lead into the old part. */
  entry: number[];
  /** The texts on its two sides. */
  oldWords: string;
  newWords: string;
}

/** The old part that the failing call reached, and the new part through which it got there. */
export function findBorder(context: Context): Border | null {
  const { graph, folded } = context;
  const meets = graph.boundary.flatMap(({ oldUid, newUid }) => {
    const pair = [graph.indexOf(oldUid), graph.indexOf(newUid)] as const;
    return pair.includes(-1) ? [] : [pair];
  });
  const [first] = meets;
  if (!first) return null;
  const isOld = ints(folded.boxes.length);
  const inBox = (side: 0 | 1) => [...new Set(meets.map((pair) => folded.boxOf[pair[side]]!))].filter((b) => b >= 0);
  const old = reachable(inBox(0), (b) => rowOf(context.above, b), isOld);
  const entry = inBox(1).filter((b) => !isOld[b]);
  const mask = entry.reduce((all, b) => all | context.reach[b]!, 0);
  const fresh: number[] = [];
  context.reach.forEach((reach, b) => {
    if (reach & mask && !isOld[b] && !context.ghost[b]) fresh.push(b);
  });
  if (!old.length || !fresh.length) return null;
  return { old, fresh, entry, ...borderWords(context, ...first) };
}

function borderWords({ graph }: Context, before: number, after: number): { oldWords: string; newWords: string } {
  const when = (node: number) => whenText(placeOf(graph, node));
  const [old, fresh] = [when(before), when(after)];
  return { oldWords: old ? `kept since ${old}` : "kept from before", newWords: fresh ? `new in ${fresh}` : "new" };
}

export interface DrawnBorder {
  item: Item;
  horizontal: boolean;
  /** y of a horizontal line, x of a vertical one. */
  at: number;
  border: Border;
}

const HALF = 20;

/**
 * A dashed line: across the picture where the new part stands below the old one, vertical where they stand side by
 * side, else under the old part only.
 */
export function drawBorder(border: Border, card: (b: number) => Rect, whole: Rect): DrawnBorder | null {
  const around = (boxes: readonly number[]) => unite(boxes.map(card));
  const [old, fresh, entry] = [around(border.old), around(border.fresh), around(border.entry)];
  const draw = (horizontal: boolean, at: number, area: Rect): DrawnBorder => {
    const marks = [shape(horizontal ? path`M0 ${HALF}H${area.w}` : path`M${HALF} 0V${area.h}`, "boundary")];
    return { item: { key: "boundary", role: "boundary", ...area, marks }, horizontal, at, border };
  };
  const under = (next: Rect, { x, w }: Rect) => {
    const at = Math.round((old.y + old.h + 12 + next.y) / 2);
    return draw(true, at, { x, y: at - HALF, w, h: 2 * HALF });
  };
  if (old.y + old.h < fresh.y) return under(fresh, whole);
  if (old.x + old.w < fresh.x) {
    const at = Math.round((old.x + old.w + fresh.x) / 2);
    return draw(false, at, { x: at - HALF, y: whole.y, w: 2 * HALF, h: whole.h + 22 });
  }
  if (old.y + old.h >= entry.y) return null;
  return under(entry, { ...old, x: old.x - PAD, w: old.w + 2 * PAD });
}

/** Writes the names of both sides on one spot of the line, or beside it, not left of `least`. */
export function writeBorder(context: Context, drawn: DrawnBorder, least: number, free: Free): void {
  const { item, horizontal, at, border } = drawn;
  if (context.level < 2) return;
  const look = sized(context, "carry");
  const high = context.level === 3 ? 13 : 20;
  const both = [border.oldWords, border.newWords];
  if (!horizontal) {
    both.forEach((words, i) => {
      item.marks.push(text(HALF + (i ? 8 : -8), item.h - high / 2, words, look, i ? "start" : "end"));
    });
    return;
  }
  const end = item.x + item.w;
  const w = Math.max(...both.map((words) => context.measure(words, look)));
  const pair = (x: number) => [-4 - high, 4].map((dy) => ({ x, y: at + dy, w, h: high }));
  const isFree = (x: number) => pair(x).every((place) => free.has(place));
  const inside = Array.from({ length: 1 + Math.max(0, Math.floor((item.w - w) / 24)) }, (_, i) => end - w - 24 * i);
  // Beyond the right end is always room: without its words the line says nothing.
  let x = [...inside, item.x, item.x - w - 8].find((x) => x >= least && isFree(x)) ?? end + 8;
  while (!isFree(x)) x += 24;
  // Words beyond the right end, or at the left one, begin there; all others end at the line's end or at the line.
  const begins = x > end - w || x === item.x;
  both.forEach((words, i) => {
    const place = pair(x)[i]!;
    free.add(place);
    const edge = begins ? x : x + w;
    item.marks.push(text(edge - item.x, place.y - item.y + high / 2, words, look, begins ? "start" : "end"));
  });
  const left = Math.min(item.x, x);
  for (const mark of item.marks) if (mark.kind === "text") mark.x += item.x - left;
  item.marks[0] = shape(path`M${item.x - left} ${HALF}H${end - left}`, "boundary");
  Object.assign(item, { x: left, w: Math.max(end, x + w) - left });
}
