/** Marks on wires and cards: variable tags, order notes, octagons; each takes a free place. */

import { boxOfUid } from "../fold/index.ts";
import { octagon, octagonOpen, TAG_H, tag, tagWidth, text } from "../marks.ts";
import { MIDDLE, shorten } from "../measure.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { ordinal } from "../words.ts";
import type { DrawnBorder } from "./areas.ts";
import { type Context, sized } from "./context.ts";
import type { Free, Rect } from "./rects.ts";
import type { Item } from "./types.ts";
import { type Courses, courseAt } from "./wires/wires.ts";

const MAX_NAME = 150;
/** The carrier is the answer to the question which variable: it is written in full. */
const MAX_CARRIER = 420;
/** Where there is hardly room for cards, a name of more than about 35 letters is cut even so. */
const MAX_CARRIER_IN_COMPACT = 240;
/** Room for a name below level 3, in px. */
const FAR_ROOM = 40;

export interface TagText {
  text: string;
  carrier: boolean;
  node: number;
  w: number;
}

/** The tags of boxes: the names of their outputs. */
export function* tagTexts(context: Context): Slices<Map<number, TagText>> {
  const { boxOf } = context.folded;
  const named = new Set([...context.names.keys()].map((node) => boxOf[node]!).filter((b) => b >= 0));
  const order = [...named].sort((a, b) => a - b);
  const tags = new Map<number, TagText>();
  yield* eachSlice(
    order.length,
    (i) => {
      const tag = tagText(context, order[i]!);
      if (tag) tags.set(order[i]!, tag);
    },
    context.pace,
  );
  return tags;
}

function tagText(context: Context, b: number): TagText | null {
  const { graph, measure, names, carriers } = context;
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
  const gone = graph.ghost[node] === 1;
  if (gone && !carrier) return null;
  const longest = context.options.compact ? MAX_CARRIER_IN_COMPACT : MAX_CARRIER;
  const most = carrier ? longest : MAX_NAME;
  const label = shorten(shortNames(all, box.kind === "repeat"), most, "tagname", measure, MIDDLE);
  return { text: label, carrier, node, w: Math.ceil(tagWidth(measure(label, "tagname"))) };
}

/** `y`, `y +2`; `history[0] … history[7]` on a repeat. */
function shortNames(names: readonly string[], repeated: boolean): string {
  const [first, ...more] = names;
  const last = repeated && more.findLast((name) => name.split("[")[0] === first!.split("[")[0]);
  return last ? `${first} … ${last}` : more.length ? `${first} +${more.length}` : first!;
}

/**
 * Places the tag of a box: on its wire, just below the card; for a carrier on the border. Not left of `least`. Where no
 * place is free there is none, unless it is a carrier: it explains the error.
 */
export function placeTag(
  context: Context,
  near: TagText,
  card: Rect,
  courses: Courses,
  wires: Int32Array,
  border: DrawnBorder | null,
  least: number,
  free: Free,
): Item | null {
  const label = context.level === 3 ? near : farText(context, near);
  const below = card.y + card.h + (context.options.compact ? 2 : 6);
  const places = tagPlaces(label, card, below, courses, tagWires(context, courses, wires), border);
  let found = free.take(places.filter(({ x }) => x >= least));
  if (!found && !label.carrier) return null;
  if (!found) {
    found = places[0]!;
    free.add(found);
  }
  const { left, ...area } = found;
  const gone = context.graph.ghost[label.node] === 1;
  const look = label.carrier ? "carrier" : gone ? "gone" : "";
  const uid = context.graph.uid[label.node]!;
  return {
    key: `tag${uid}`,
    role: "tag",
    uid,
    ...area,
    label: (context.names.get(label.node) ?? [label.text]).join(", "),
    data: { role: "tag", ...(label.carrier && { carrier: "true" }) },
    marks: tag(left ? area.w : 0, 0, label.text, area.w, look, left, sized(context, "tagname")),
  };
}

/** The text of a tag below level 3: the name in larger letters, cut to fit; nothing at the lowest levels. */
function farText(context: Context, label: TagText): TagText {
  const { level, measure } = context;
  const look = sized(context, "tagname");
  const room = label.carrier ? Number.POSITIVE_INFINITY : Math.max(label.w, FAR_ROOM);
  const text = level === 2 ? shorten(label.text, room, look, measure, MIDDLE) : "";
  return { ...label, text, w: text ? Math.ceil(tagWidth(measure(text, look))) : 28 };
}

/** The wires for a tag, best first: a wire that crosses the border, else a wire of the newest live root. */
function tagWires(context: Context, { from, rootsOf, isGone }: Courses, wires: Int32Array): number[] {
  const fresh = new Set(context.graph.boundary.map(({ newUid }) => boxOfUid(context, newUid)));
  const order = (e: number) =>
    (isGone(e) ? 0 : fresh.has(from[e]!) ? 2000 : 1000) + (rootsOf(e).at(-1)?.root.order ?? -1);
  return [...wires].sort((a, b) => order(b) - order(a));
}

interface TagPlace extends Rect {
  /** Whether the tag stands left of its wire. */
  left: boolean;
}

/** Possible places of a tag: on its wires; beside the card where the wires are too close together. */
function tagPlaces(
  { w, carrier }: TagText,
  card: Rect,
  below: number,
  courses: Courses,
  wires: readonly number[],
  border: DrawnBorder | null,
): TagPlace[] {
  const h = TAG_H;
  const places: TagPlace[] = [];
  const add = (x: number, y: number, left = false) => places.push({ x, y, w, h, left });
  if (carrier && border && wires.length) {
    if (border.horizontal) add(courseAt(courses, wires[0]!, border.at) - 10, border.at - h / 2);
    else add(border.at - w / 2, below);
  }
  for (const wire of wires) {
    const half = courses.rootsOf(wire).length * 3 + 4;
    const end = Math.min(below + 80, courses.points[courses.start[wire]! + 1]!);
    for (let y = below; y + h / 2 < end; y += 12) {
      const sides = [y, Math.min(y + h, end)].map((at) => courseAt(courses, wire, at));
      add(Math.max(...sides) + half, y);
      add(Math.min(...sides) - half - w, y, true);
    }
  }
  if (!wires.length) add(card.x + 24, below);
  add(card.x + card.w + 8, card.y + (card.h - h) / 2);
  add(card.x - 8 - w, card.y + (card.h - h) / 2, true);
  return places;
}

/** `4th` beside a card: its position in the engine order of the failed call. */
export function orderNote(context: Context, uid: number, card: Rect, free: Free): Item | null {
  const failed = context.raised.has(uid);
  const words = ordinal(context.engineOrder.get(uid)!);
  const size = { y: card.y + card.h / 2 + (failed ? 3 : -6), w: context.measure(words, "order"), h: 12 };
  const found = free.take([
    { x: card.x + card.w + (failed ? 9 : 7), ...size },
    { x: card.x - size.w - 6, ...size },
  ]);
  if (!found) return null;
  const marks = [text(0, 6, words, failed ? "order failword" : "order")];
  return { key: `turn${uid}`, role: "note", uid, ...found, marks };
}

/** A solid octagon where a call raised; a dashed one, with a text beside it, where a call would raise. */
export function octagonItems(
  context: Context,
  uid: number,
  card: Rect,
  whole: Rect,
  room: Rect | undefined,
  free: Free,
): Item[] {
  const raised = context.raised.has(uid);
  const label = raised ? "raised here" : context.wouldRaise.get(uid)!;
  const marks = raised ? octagon(9, 9) : octagonOpen(9, 9);
  const right = card.x + card.w;
  const items: Item[] = [{ key: `x${uid}`, role: "octagon", uid, x: right - 9, y: card.y - 9, w: 18, h: 18, marks }];
  if (raised || context.level < 3) return items;
  const size = { w: context.measure(label, "raised"), h: 14 };
  const places = [
    { x: right + 12, y: card.y + 8, ...size },
    { x: right + 12, y: card.y + card.h - 8, ...size },
    { x: card.x - size.w - 12, y: card.y + card.h / 2 - 7, ...size },
    { x: right - size.w - 14, y: card.y - 16, ...size },
    { x: right - size.w, y: card.y + card.h + 2, ...size },
  ];
  const most = room ? room.x + room.w : Number.POSITIVE_INFINITY;
  const found = free.take(places.filter(({ x }) => x >= whole.x && x + size.w <= most));
  if (found) items.push({ key: `would${uid}`, role: "note", uid, ...found, marks: [text(0, 7, label, "raised")] });
  return items;
}
