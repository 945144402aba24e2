/** What hangs on wires and cards: variable tags, order notes, octagons; each finds a place where nothing else stands. */

import { octagon, octagonOpen, TAG_H, tag, tagWidth, text } from "../marks.ts";
import { shorten } from "../measure.ts";
import type { Item } from "../scene.ts";
import { ordinal } from "../words.ts";
import type { DrawnBorder } from "./areas.ts";
import type { Context } from "./context.ts";
import type { Free, Rect } from "./rects.ts";
import { type Course, pointAt } from "./wires.ts";

const MAX_NAME = 150;

export interface TagText {
  text: string;
  all: string[];
  carrier: boolean;
  node: number;
  w: number;
}

/** The tag of a box: its output's names; null where nothing names it. */
export function tagText(context: Context, b: number): TagText | null {
  const { graph, options, names, carriers } = context;
  const box = context.folded.boxes[b]!;
  const all: string[] = [];
  let node = -1;
  let carrier = false;
  for (const inside of box.nodes) {
    const found = names.get(inside);
    if (!found) continue;
    const carries = carriers.has(inside);
    if (carries && !carrier) all.unshift(...found);
    else all.push(...found);
    carrier ||= carries;
    if (node < 0 || carries) node = inside;
  }
  if (node < 0) return null;
  const gone = graph.ghost[node] === 1;
  if (gone && !carrier) return null;
  const label = shorten(shortNames(all, box.kind === "repeat"), MAX_NAME, "tagname", options.measure);
  return { text: label, all, carrier, node, w: Math.ceil(tagWidth(options.measure(label, "tagname"))) };
}

/** `y`, `y +2`; `history[0] … history[7]` where only the index differs. */
function shortNames(names: readonly string[], repeated: boolean): string {
  const [first] = names;
  if (names.length === 1) return first!;
  const last = names[names.length - 1]!;
  const stem = (name: string) => name.replace(/\[\d+\]/, "[]");
  if (repeated && names.length > 2 && names.every((name) => stem(name) === stem(first!))) return `${first} … ${last}`;
  return `${first} +${names.length - 1}`;
}

/** Where a box's tag goes: on its wire, just below the card; on the border for the carrier. */
export function placeTag(
  context: Context,
  label: TagText,
  card: Rect,
  courses: readonly Course[],
  border: DrawnBorder | null,
  free: Free,
): Item {
  const course = tagCourse(context, courses);
  const below = card.y + card.h + (context.options.compact ? 2 : 6);
  const candidates = tagPlaces(label, card, below, course, border);
  const found = candidates.find(({ area }) => free.has(area)) ?? candidates[0]!;
  free.add(found.area);
  const { x, y, w, h } = found.area;
  const gone = context.graph.ghost[label.node] === 1;
  const look = label.carrier ? "carrier" : gone ? "gone" : "";
  const uid = context.graph.uid[label.node]!;
  const names = label.all.join(", ");
  return {
    key: `tag${uid}`,
    role: "tag",
    uid,
    index: label.node,
    x,
    y,
    w,
    h,
    marks: context.level === 3 ? tag(found.left ? w : 0, 0, label.text, w, look, found.left) : tag(0, 0, "", 28, look),
    label: label.carrier ? `${names}, carries the old graph into the new one` : `variable ${names}`,
    data: { carrier: String(label.carrier) },
  };
}

/** The wire that the tag hangs on: of the newest root that is not gone. */
function tagCourse(context: Context, courses: readonly Course[]): Course | undefined {
  const fresh = new Set(context.graph.boundary.map(({ newUid }) => newUid));
  const uidsOf = (course: Course) => context.folded.boxes[course.edge.from]?.nodes ?? [];
  const isFresh = (course: Course) => Array.from(uidsOf(course)).some((node) => fresh.has(context.graph.uid[node]!));
  const order = (course: Course) => course.roots[course.roots.length - 1]?.root.order ?? -1;
  const live = courses.filter((course) => !course.gone);
  return live.find(isFresh) ?? [...(live.length ? live : courses)].sort((a, b) => order(b) - order(a))[0];
}

function tagPlaces(
  label: TagText,
  card: Rect,
  below: number,
  course: Course | undefined,
  border: DrawnBorder | null,
): { area: Rect; left: boolean }[] {
  const { w } = label;
  const h = TAG_H;
  const places: { area: Rect; left: boolean }[] = [];
  const add = (x: number, y: number, left = false) => places.push({ area: { x, y, w, h }, left });
  if (!course) {
    add(card.x + 24, below);
    return places;
  }
  if (label.carrier && border?.horizontal) {
    const [x] = pointAt(course, border.at);
    add(x - 10, border.at - h / 2);
    add(x + 8, border.at - h / 2);
  } else if (label.carrier && border) {
    add(border.at - w / 2, below);
  }
  const half = (course.roots.length * 6) / 2 + 4;
  for (const step of [0, 10, 20, 34]) {
    const [x] = pointAt(course, below + step + h / 2);
    add(x + half, below + step);
    add(x - half - w, below + step, true);
  }
  return places;
}

/** `4th` beside a card: its turn in the call that failed. */
export function orderNote(context: Context, uid: number, card: Rect, free: Free): Item | null {
  const turn = context.engineOrder.get(uid);
  if (turn === undefined || context.level < 3) return null;
  const failed = context.raised.has(uid);
  const words = ordinal(turn);
  const w = context.options.measure(words, "order");
  const y = card.y + card.h / 2 + (failed ? 3 : -6);
  const places: Rect[] = [
    { x: card.x + card.w + (failed ? 9 : 7), y, w, h: 12 },
    { x: card.x - w - 6, y, w, h: 12 },
  ];
  const found = places.find((area) => free.has(area));
  if (!found) return null;
  free.add(found);
  const marks = [text(0, 9.5, words, failed ? "order failword" : "order")];
  return { key: `turn${uid}`, role: "note", uid, ...found, marks, label: `ran ${words}` };
}

/** Solid where a call raised, dashed where one would; with words beside it for the latter. */
export function octagonItems(context: Context, uid: number, card: Rect, whole: Rect, free: Free): Item[] {
  const raised = context.raised.has(uid);
  const words = context.wouldRaise.get(uid);
  if (!raised && words === undefined) return [];
  const item: Item = {
    key: `x${uid}`,
    role: "octagon",
    uid,
    x: card.x + card.w - 9,
    y: card.y - 9,
    w: 18,
    h: 18,
    marks: raised ? octagon(9, 9) : octagonOpen(9, 9),
    label: raised ? "raised here" : words!,
  };
  if (raised || context.level < 3) return [item];
  const note = wouldRaiseNote(context, uid, words!, card, whole, free);
  return note ? [item, note] : [item];
}

function wouldRaiseNote(
  context: Context,
  uid: number,
  words: string,
  card: Rect,
  whole: Rect,
  free: Free,
): Item | null {
  const w = context.options.measure(words, "raised");
  const places: Rect[] = [
    { x: card.x + card.w + 12, y: card.y + 8, w, h: 14 },
    { x: card.x + card.w + 12, y: card.y + card.h - 8, w, h: 14 },
    { x: card.x - w - 12, y: card.y + card.h / 2 - 7, w, h: 14 },
  ];
  const found = places.find((area) => area.x >= whole.x && free.has(area));
  if (!found) return null;
  free.add(found);
  return { key: `would${uid}`, role: "note", uid, ...found, marks: [text(0, 10.5, words, "raised")], label: words };
}
