/** The marks of a card at every level of detail. */

import {
  callNumberHalf,
  callNumberMark,
  type Mark,
  rect,
  SLOT_H,
  SLOT_W,
  slot as slotMark,
  stripe,
  text,
} from "../../marks.ts";
import { shorten } from "../../measure.ts";
import * as SLOT from "../../slot.ts";
import { callNumber, join } from "../../words.ts";
import { type Context, hueOfCall, isIn, sized } from "../context.ts";
import type { Rect } from "../rects.ts";
import type { Card, SlotPlace } from "../types.ts";
import {
  BOWL,
  type Cell,
  freedWidth,
  GAP,
  numberLook,
  numberWidth,
  rowWidth,
  slotClass,
  slotRows,
  textInset,
} from "./cards.ts";

/** Middles of the two lines of a card, as shares of its height. */
const FIRST = 0.31;
const SECOND = 0.7;
/** A cut note that is still useful: fewer letters say nothing, and the end of a number would be another number. */
const TELLING = /^…\D.../;
/** Paths of modules differ at their ends: `…h[11]`. */
const PATH = /^[\w.[\]'" …]+ ▸$/;

/** All marks of a card. `bowl`: line 1 has to leave room for the bowl of a leaf. */
export function cardMarks(context: Context, card: Card, b: number, bowl: boolean): Mark[] {
  const { level } = context;
  const ghost = context.ghost[b] === 1;
  const marks = outline(context, card, b, ghost);
  if (level <= 1) return marks.concat(stateBar(context, card));
  for (const [i, view] of card.stripes.entries())
    marks.push(...stripe(5 + 5 * i, 6, card.h - 6, view.style, view.hue, ghost));
  const quiet = ghost || isDim(context, b) ? " quiet" : "";
  return marks.concat(nameMarks(context, card, quiet, bowl), slotMarks(context, card, ghost, bowl));
}

const BYTES_H = 3;

/** The bytes held: a bar under the texts, as long as they are many beside those of the box that holds most. */
function byteBar({ mostBytes }: Context, card: Card): Mark[] {
  const { w, h, box } = card;
  if (!mostBytes || !box.bytes) return [];
  const x = textInset(card);
  const length = (w - x - 8) * (box.bytes / mostBytes);
  return [rect(x, h - BYTES_H - 1.5, Math.max(1.5, length), BYTES_H, "bytebar", 1.5)];
}

/** Whether there is a search and it did not find anything in this box. */
const isDim = ({ hit }: Context, b: number) => hit !== null && !hit[b];

function outline(context: Context, card: Card, b: number, ghost: boolean): Mark[] {
  const { options, level, hit } = context;
  const { w, h, box } = card;
  const marks: Mark[] = [];
  if (isIn(context, b, options.hit)) marks.push(rect(-4, -4, w + 8, h + 8, "hitring", 9));
  if (level === 0) return marks;
  const look = join(
    " ",
    "node",
    ghost && "ghost",
    card.counts[SLOT.stale] && "stalecard",
    [...context.raised].some((uid) => isIn(context, b, uid)) && "failcard",
    hit && (hit[b] ? "hitcard" : "dim"),
  );
  const edges = box.kind === "repeat" ? [8, 4] : box.kind === "node" ? [] : [4];
  for (const step of edges) marks.push(rect(step, step, w, h, ghost ? "node ghost" : "node", 6));
  marks.push(rect(0, 0, w, h, look, 6));
  if (level >= 2) marks.push(...byteBar(context, card));
  const changed = changeOf(context, card);
  if (changed && level >= 2) marks.push(...changeBadge(context, changed));
  if (box.times > 1 && level >= 2) marks.push(...timesBadge(context, w, box.times));
  return marks;
}

/** What happened to the nodes of a box between two moments: "new", or "3 new, 2 freed" for several. */
export function changeOf({ graph, options: { changes } }: Context, { box }: Card): string {
  if (!changes) return "";
  const counts = new Map<string, number>();
  for (const node of box.nodes) {
    const word = changes.get(graph.uid[node]!);
    if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].map(([word, n]) => (box.kind === "node" ? word : `${n} ${word}`)).join(", ");
}

/** A label on the upper edge at the left. */
function changeBadge(context: Context, words: string): Mark[] {
  const look = sized(context, "raised");
  const width = context.measure(words, look) + 10;
  return [rect(-6, -12, width, 16, "changed", 8), text(-6 + width / 2, -4, words, `${look} changeword`, "middle")];
}

function timesBadge(context: Context, w: number, times: number): Mark[] {
  const label = `×${times}`;
  const look = sized(context, "times");
  const width = Math.max(24, context.measure(label, look) + 12);
  const x = w + 10 - width;
  return [rect(x, -10, width, 20, "badge", 10), text(x + width / 2, 0, label, look, "middle")];
}

/** Below scale 0.55 a box is a bar: filled, hollow, or amber. */
function stateBar({ level }: Context, { counts, w, h }: Card): Mark[] {
  const [x, y, wide, high] = level === 1 ? [w * 0.14, h / 2 - 7, w * 0.72, 14] : [0, 0, w, h];
  const bar = (classes: string, share = 1) => rect(x!, y!, wide! * share, high!, classes, 4);
  const held = counts[SLOT.held]! + counts[SLOT.packed]!;
  const gone = counts[SLOT.freed]!;
  if (counts[SLOT.stale]) return [bar("stale")];
  if (held && gone) return [bar("freed"), bar("held", held / (held + gone))];
  const state = held ? "held" : gone ? "freed" : counts[SLOT.unknown] ? "unknown" : level === 0 && "band";
  return state ? [bar(state)] : [];
}

interface FirstLine {
  x: number;
  y: number;
  right: number;
  title: string;
  suffix: string;
  note: string;
  /** Left end of the note; without a note, the right end of the room. */
  end: number;
}

/** Fits line 1 into its room. In order of priority: the name, the end of the note, the suffix of the name. */
function firstLine(context: Context, card: Card, bowl: boolean): FirstLine {
  const { measure, level } = context;
  const near = level === 3;
  const op = sized(context, "op");
  const x = textInset(card);
  const right = card.w - 8 - (card.oneLine ? slotRow(context, card, bowl).w : 0);
  const room = right - x - bowlRoom(bowl);
  const name = measure(card.title, op);
  const cut = near ? shorten(card.note, room - name - 10, "note", measure, 1) : "";
  const note = cut === card.note || TELLING.test(cut) ? cut : "";
  const end = note ? right - measure(note, "note") : right;
  const left = room + end - right - (note ? 10 : 0);
  return {
    x,
    y: card.oneLine ? card.h / 2 : card.h * FIRST,
    right,
    title: shorten(card.title, left, op, measure, PATH.test(card.title) ? 1 : 0).replace(/^…\w*\.(?=\w)/, "…"),
    suffix: near && name + measure(card.suffix, "op suffix") <= left ? card.suffix : "",
    note,
    end,
  };
}

const bowlRoom = (bowl: boolean) => (bowl ? BOWL + 5 : 0);

/** Where a leaf's bowl stands when there is no room beside the card: on line 1, left of the note. */
export function bowlPlace(context: Context, card: Card): { x: number; y: number } {
  const line = firstLine(context, card, true);
  return { x: line.end - (line.note ? 5 : 0) - BOWL, y: line.y - 2 };
}

function nameMarks(context: Context, card: Card, quiet: string, bowl: boolean): Mark[] {
  const { x, y, right, title, suffix, note } = firstLine(context, card, bowl);
  const marks: Mark[] = [];
  if (note) marks.push(text(right, y, note, `note${quiet}`, "end"));
  const name = text(x, y, title + suffix, sized(context, `op${quiet}`));
  name.cut = title !== card.title || suffix !== card.suffix || note !== card.note;
  const runs = [
    { text: title, classes: "" },
    { text: suffix, classes: `suffix${quiet}` },
  ];
  marks.push(suffix ? { ...name, runs } : name);
  return marks;
}

/** The most detailed row of saved tensors that fits: under the name, or, on one-line cards, right of it. */
function slotRow(context: Context, card: Card, bowl: boolean): { row: Cell[]; w: number; freed: number } {
  const near = context.level === 3;
  const freed = freedWidth(context, card);
  // On one line the name needs a gap behind it. The last label of a row needs no gap.
  const beside = card.oneLine ? -3 - bowlRoom(bowl) - context.measure(card.title, sized(context, "op")) : GAP;
  // On one line the number of a call has its room before there is one: then nothing moves when the call comes.
  const kept = card.oneLine && card.slots.length > 0 ? Math.max(freed, numberWidth(context, 0)) : freed;
  const room = card.w - textInset(card) - 8 - kept + beside;
  const rows = slotRows(card, near);
  const row = rows.find((cells) => rowWidth(context, cells) <= room) ?? rows.at(-1)!;
  const w = rowWidth(context, row) + kept;
  return { row, w: w && card.oneLine ? w + 3 : w, freed };
}

/** Where each saved tensor is drawn; none where they are drawn as counts. */
export function slotPlaces(context: Context, card: Card, bowl: boolean): SlotPlace[] {
  const places: Rect[] = [];
  if (context.level >= 2) slotMarks(context, card, false, bowl, (place) => places.push(place));
  const isEach = places.length === card.slots.length;
  return isEach ? places.map((place, i) => ({ ...place, slot: card.slots[i]!.slot })) : [];
}

/** `placed` is called with the place of each glyph and its label. */
function slotMarks(
  context: Context,
  card: Card,
  ghost: boolean,
  bowl: boolean,
  placed?: (place: Rect) => void,
): Mark[] {
  const { row, w, freed } = slotRow(context, card, bowl);
  const marks: Mark[] = [];
  const middle = card.oneLine ? card.h / 2 : card.h * SECOND;
  /** Draws the number of a call; `x`: its right end. */
  const number = (n: number, x: number) => {
    const { look, r } = numberLook(context);
    const half = callNumberHalf(callNumber(n), r, look);
    return callNumberMark(x - half, middle, callNumber(n), hueOfCall(context, n), { r, look });
  };
  let x = card.oneLine ? card.w - 5 - w : textInset(card);
  for (const { look, label, by } of row) {
    // The letter in a slot is drawn only at the level where letters are large enough.
    marks.push(...slotMark(x, middle - SLOT_H / 2, look).filter(({ kind }) => context.level === 3 || kind !== "text"));
    const left = x;
    x += SLOT_W + 3;
    if (label) {
      const c = sized(context, ghost ? "note quiet" : slotClass(look));
      marks.push({ ...text(x, middle, label, c), cut: label.includes("…") });
      x += context.measure(label, c) + GAP;
    }
    placed?.({ x: left, y: middle - SLOT_H / 2, w: x - left - (label ? GAP : 3), h: SLOT_H });
    if (by < 0) continue;
    const wide = numberWidth(context, by);
    marks.push(...number(by, x + wide - 5));
    x += wide;
  }
  if (freed) marks.push(...number(card.freedBy, card.w - 6));
  if (freed && !card.oneLine && context.level === 3) {
    const end = card.w - 6 - numberWidth(context, card.freedBy) + 1;
    marks.push(text(end, middle, "freed", "note quiet", "end"));
  }
  return marks;
}
