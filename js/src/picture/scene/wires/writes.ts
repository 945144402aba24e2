/** A line that modified saved tensors in place: a note with a pencil, and a dashed line to each card that it made stale. */

import { isPast } from "../../fold/index.ts";
import { type Mark, path, pencil, rect, shape, text } from "../../marks.ts";
import { shorten } from "../../measure.ts";
import type { Finding } from "../../model.ts";
import * as SLOT from "../../slot.ts";
import { join } from "../../words.ts";
import { cardOf } from "../cards/cards.ts";
import { type Context, sized } from "../context.ts";
import { type Free, type Rect, unite } from "../rects.ts";
import type { Item } from "../types.ts";

/** Room around its words, in px; less in a low note. */
const PAD = 10;
const LOW_PAD = 5;
const PENCIL = 18;
const LINE = 17;
/** Distance of the note from the cards; the dashed lines turn in it. */
const AWAY = 26;
const LOW_AWAY = 18;
const STEP = 20;
/** Where the picture must not move, a note has its whole words, only the line of code, or so many px of it. */
const CUTS = [90, 64, 40];
/** With more stale cards than this, the note alone says enough. */
const MOST = 12;

/** The finding about the write that is drawn: the first of the present that knows the line. */
export function writeToDraw({ graph }: Context): Finding | undefined {
  return graph.findings.find((one) => one.kind === "inplace" && one.wrote !== "" && !isPast(one, graph));
}

type Size = Pick<Rect, "w" | "h">;

/**
 * A free place right of the stale cards, the nearest to their middle; else one right of the whole picture, which must
 * not be beyond `room`.
 */
function place(cards: Rect, whole: Rect, { w, h }: Size, free: Free, room?: Rect): Rect | undefined {
  const middle = cards.y + cards.h / 2 - h / 2;
  const steps = Array.from({ length: 1 + Math.ceil(cards.h / STEP) }, (_, i) => (i % 2 ? i + 1 : -i) * (STEP / 2));
  const most = room ? room.x + room.w - w : Number.POSITIVE_INFINITY;
  for (let x = cards.x + cards.w + AWAY; x <= most; x += STEP) {
    const ys = x > whole.x + whole.w ? steps.slice(0, 1) : steps;
    const found = free.take(ys.map((dy) => ({ x, y: middle + dy, w, h })));
    if (found) return found;
  }
  return undefined;
}

/** The free place within `room` that is nearest to the stale cards, right or left of them; undefined: there is none. */
function placeWithin(room: Rect, cards: Rect, { w, h }: Size, away: number, free: Free): Rect | undefined {
  const middle = cards.y + cards.h / 2 - h / 2;
  const right = cards.x + cards.w + away;
  const left = cards.x - away - w;
  const places: Rect[] = [];
  for (let y = room.y; y + h <= room.y + room.h; y += STEP / 2) {
    for (let x = right; x + w <= room.x + room.w; x += STEP / 2) places.push({ x, y, w, h });
    for (let x = left; x >= room.x; x -= STEP / 2) places.push({ x, y, w, h });
  }
  const far = ({ x, y }: Rect) => (x < cards.x ? left - x : x - right) + Math.abs(y - middle);
  return free.take(places.sort((a, b) => far(a) - far(b)));
}

/** The words of a note, and what is around them. */
interface Form {
  lines: (readonly [words: string, look: string])[];
  pad: number;
  away: number;
  cut: boolean;
}

/** Where the line stands, and what it wrote. */
const moreOf = ({ wroteAt, tensor }: Finding) => join(" ", wroteAt, tensor && `wrote ${tensor}`);

/** The note from its longest form to its shortest. */
function* formsOf(context: Context, finding: Finding): Iterable<Form> {
  const { wrote } = finding;
  const look = sized(context, "tagname");
  const more = moreOf(finding);
  const first = [wrote, look] as const;
  const isTold = context.level === 3 && more !== "";
  yield { lines: isTold ? [first, [more, "note"]] : [first], pad: PAD, away: AWAY, cut: false };
  const low = { pad: LOW_PAD, away: LOW_AWAY };
  yield { lines: [first], ...low, cut: isTold };
  for (const px of CUTS) yield { lines: [[shorten(wrote, px, look, context.measure), look]], ...low, cut: true };
}

/**
 * The note, right of the cards, and its lines. `at`: the rectangle of a card. `room`: where the note may stand so that
 * the picture on screen need not move; undefined: anywhere.
 */
export function writeItems(
  context: Context,
  at: (b: number) => Rect,
  whole: Rect,
  room: Rect | undefined,
  free: Free,
): Item[] {
  // While the student says what a call will do, nothing tells it.
  const finding = context.options.asks ? undefined : writeToDraw(context);
  if (!finding || context.level < 2) return [];
  const stale = [...context.folded.boxes.keys()].filter((b) => cardOf(context, b).counts[SLOT.stale]);
  if (!stale.length) return [];
  const cards = stale.map(at);
  const around = unite(cards);
  const sizeOf = ({ lines, pad }: Form) => ({
    w: 2 * pad + Math.max(...lines.map(([words, look], i) => context.measure(words, look) + (i ? 0 : PENCIL))),
    h: 2 * pad + LINE * lines.length,
  });
  const forms = [...formsOf(context, finding)];
  let form = forms[0]!;
  let found: Rect | undefined;
  for (const one of room ? forms : []) {
    found = place(around, whole, sizeOf(one), free, room) ?? placeWithin(room!, around, sizeOf(one), one.away, free);
    if (!found) continue;
    form = one;
    break;
  }
  found ??= place(around, whole, sizeOf(form), free)!;
  const { lines, pad, away, cut } = form;
  const marks: Mark[] = [rect(0, 0, found.w, found.h, "node stalecard", 6), ...pencil(pad, pad + 3)];
  lines.forEach(([words, look], i) => {
    marks.push({ ...text(pad + (i ? 0 : PENCIL), pad + LINE * (i + 0.5), words, look), cut });
  });
  const label = join(", ", finding.wrote, moreOf(finding));
  const note: Item = { key: "write", role: "note", ...found, marks, label, data: { role: "write" } };
  return [...cards.slice(0, MOST).map((card, i) => lineTo(found, card, away, i)), note];
}

/** The dashed line from a card to the note, on that side of both on which they face each other. */
function lineTo(note: Rect, card: Rect, away: number, i: number): Item {
  const isRight = note.x > card.x;
  const start = isRight ? card.x + card.w : card.x;
  const end = isRight ? note.x : note.x + note.w;
  const turn = end + ((isRight ? -1 : 1) * away) / 2;
  const from = card.y + card.h / 2;
  const middle = note.y + note.h / 2;
  const [x, y] = [Math.min(start, end), Math.min(from, middle)];
  const d = path`M${start - x} ${from - y}H${turn - x}V${middle - y}H${end - x}`;
  const size = { w: Math.abs(end - start), h: Math.abs(from - middle) };
  return { key: `write${i}`, role: "wire", x, y, ...size, marks: [shape(d, "pencilline")] };
}
