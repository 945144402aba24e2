/** The marks of a card at every level of detail. */

import {
  callNumberMark,
  rect,
  SLOT_H,
  SLOT_LOOKS,
  SLOT_W,
  type SlotLook,
  slot as slotMark,
  stripe,
  text,
} from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import { SLOT } from "../model.ts";
import type { Mark, SlotBox } from "../scene.ts";
import { callNumber, shortBytes } from "../words.ts";
import { BOWL, type Card, GAP, glyphRoom, hasNoSlots, slotClass, slotLabel, textInset } from "./cards.ts";
import { type Context, hueOfCall } from "./context.ts";

export interface CardMarks {
  marks: Mark[];
  slots: SlotBox[];
}

/** `bowl`: line 1 has to leave room for the bowl of a leaf. */
export function cardMarks(context: Context, card: Card, b: number, bowl: boolean): CardMarks {
  const marks = [...outline(context, card, b)];
  const slots: SlotBox[] = [];
  if (context.level <= 1) return { marks: marks.concat(stateBar(context, card)), slots };
  const ghost = context.ghost[b] === 1;
  card.stripes.forEach((view, i) => {
    marks.push(...stripe(5 + 5 * i, 6, card.h - 6, view.style, view.hue, ghost));
  });
  if (context.level === 2) marks.push(...farText(context, card, ghost, isDim(context, card)));
  else marks.push(...nearText(context, card, ghost, isDim(context, card), bowl));
  const line = secondLine(context, card, ghost);
  return { marks: marks.concat(line.marks), slots: line.slots };
}

/** Not found by the search that is going on. */
function isDim(context: Context, card: Card): boolean {
  const hits = context.options.hits;
  if (!hits) return false;
  for (const node of card.box.nodes) if (hits.has(context.graph.uid[node]!)) return false;
  return true;
}

function outline(context: Context, card: Card, b: number): Mark[] {
  const { graph, options, level } = context;
  const { w, h, box } = card;
  const uids = Array.from(box.nodes, (node) => graph.uid[node]!);
  const has = (set: { has(uid: number): boolean } | undefined) => set !== undefined && uids.some((uid) => set.has(uid));
  const marks: Mark[] = [];
  const key = box.key;
  if (options.focus === key) marks.push(rect(-4, -4, w + 8, h + 8, "focus", 9));
  if (options.hit !== null && options.hit !== undefined && uids.includes(options.hit)) {
    marks.push(rect(-4, -4, w + 8, h + 8, "hitring", 9));
  }
  const ghost = context.ghost[b] === 1;
  const shift = box.kind === "repeat" ? [8, 4] : box.kind === "node" ? [] : [4];
  const looks = ["node"];
  if (ghost) looks.push("ghost");
  if (card.counts[SLOT.stale]) looks.push("stalecard");
  if (has(context.raised)) looks.push("failcard");
  if (isDim(context, card)) looks.push("dimcard");
  else if (options.hits) looks.push("hitcard");
  if (options.selected === key) looks.push("selected");
  if (options.running !== null && options.running !== undefined && uids.includes(options.running))
    looks.push("running");
  if (level === 0) return marks;
  for (const step of shift) marks.push(rect(step, step, w, h, ghost ? "stack ghost ghostbg" : "stack", 6));
  if (ghost) marks.push(rect(0, 0, w, h, "ghostbg", 6));
  marks.push(rect(0, 0, w, h, looks.join(" "), 6));
  if (box.times > 1 && level >= 2) marks.push(...timesBadge(context, w, box.times));
  return marks;
}

function timesBadge(context: Context, w: number, times: number): Mark[] {
  const label = `×${times}`;
  const look = context.level === 3 ? "times" : "timesfar";
  const width = Math.max(24, context.options.measure(label, look) + 12);
  const x = w + 10 - width / 2;
  return [rect(x - width / 2, -10, width, 20, "badge", 10), text(x, look === "times" ? 4 : 6, label, look, "middle")];
}

/** Below 0.55 a box is a bar: filled, hollow, or amber with a sign. */
function stateBar(context: Context, card: Card): Mark[] {
  const { counts, w, h } = card;
  const bar = context.level === 1 ? { x: w * 0.14, y: h / 2 - 7, w: w * 0.72, h: 14 } : { x: 0, y: 0, w, h };
  const of = (c: string) => rect(bar.x, bar.y, bar.w, bar.h, c, 4);
  if (counts[SLOT.stale]) return [of("stale")];
  const held = counts[SLOT.held]! + counts[SLOT.packed]!;
  const gone = counts[SLOT.freed]!;
  if (held && gone) return [of("freed"), rect(bar.x, bar.y, (bar.w * held) / (held + gone), bar.h, "held", 4)];
  if (held) return [of("held")];
  if (gone) return [of("freed")];
  if (counts[SLOT.unknown]) return [of("unknown")];
  return context.level === 1 ? [] : [of("barbg")];
}

interface FirstLine {
  x: number;
  y: number;
  right: number;
  title: string;
  suffix: string;
  note: string;
  /** Left end of the note, or of where one would be. */
  end: number;
}

/** What fits on line 1: the name, then the note, then the name's suffix. */
function firstLine(context: Context, card: Card, bowl: boolean): FirstLine {
  const { measure } = context.options;
  const x = textInset(card);
  const right = card.w - 8 - glyphRoom(card);
  const spare = bowl ? BOWL + 5 : 0;
  const whole = measure(card.title, "op") + measure(card.suffix, "op suffix");
  const least = card.suffix ? measure(`${card.title}…`, "op") : whole;
  const room = right - x - spare - 10 - least;
  const note = measure(card.note, "note") <= room ? card.note : room > 40 ? tail(card.note, room, measure) : "";
  const end = right - (note ? measure(note, "note") : 0);
  const left = end - x - spare - (note ? 10 : 0);
  const fits = whole <= left;
  return {
    x,
    y: card.oneLine ? card.h / 2 + 4 : 17,
    right,
    title: fits ? card.title : shorten(card.suffix ? `${card.title}…` : card.title, left, "op", measure),
    suffix: fits ? card.suffix : "",
    note,
    end,
  };
}

/** The end of a module path matters most: `…stage1.conv1`. */
function tail(note: string, room: number, measure: Measure): string {
  if (!note.includes(".")) return shorten(note, room, "note", measure);
  const parts = note.split(".");
  for (let from = 1; from < parts.length; from++) {
    const rest = `…${parts.slice(from).join(".")}`;
    if (measure(rest, "note") <= room) return rest;
  }
  return shorten(parts[parts.length - 1]!, room, "note", measure);
}

/** Where a leaf's bowl stands when there is no room beside the card: on line 1, left of the note. */
export function bowlPlace(context: Context, card: Card): { x: number; y: number } {
  const line = firstLine(context, card, true);
  return { x: line.end - (line.note ? 5 : 0) - BOWL, y: line.y - 6 };
}

function nearText(context: Context, card: Card, ghost: boolean, dim: boolean, bowl: boolean): Mark[] {
  const line = firstLine(context, card, bowl);
  const quiet = ghost || dim ? " gonename" : "";
  const marks: Mark[] = [];
  if (line.note) marks.push(text(line.right, line.y, line.note, `note${quiet && " goneword"}`, "end"));
  const name = text(line.x, line.y, line.title + line.suffix, `op${quiet}`) as Mark & { t: "text" };
  if (line.suffix) {
    name.runs = [
      { s: line.title, c: "" },
      { s: line.suffix, c: `suffix${quiet}` },
    ];
  }
  marks.push(name);
  return marks;
}

/** How large a group is, in words of different lengths. */
function groupSizes({ box }: Card): string[] {
  const bytes = box.bytes > 0 ? shortBytes(box.bytes) : "";
  return [...(bytes ? [`${box.count} · ${bytes}`, bytes] : []), String(box.count)];
}

/** From afar only the name, large enough to stay above 9 px. */
function farText(context: Context, card: Card, ghost: boolean, dim: boolean): Mark[] {
  const x = textInset(card);
  const room = card.w - x - 8 - glyphRoom(card);
  const { measure } = context.options;
  const name = shorten(card.title, room, "opfar", measure);
  const y = card.oneLine ? card.h / 2 + 6 : 18;
  const marks = [text(x, y, name, `opfar${ghost || dim ? " gonename" : ""}`)];
  const left = room - measure(name, "opfar") - 8;
  const size =
    card.box.kind === "node" ? undefined : groupSizes(card).find((words) => measure(words, "notefar") <= left);
  if (size) marks.push(text(card.w - 8, y, size, "notefar", "end"));
  return marks;
}

function secondLine(context: Context, card: Card, ghost: boolean): CardMarks {
  if (card.box.kind !== "node") return { marks: groupLine(context, card), slots: [] };
  if (hasNoSlots(card)) {
    const free = card.oneLine && (!card.note || context.level === 2);
    return { marks: free ? slotMark(card.w - 22, card.h / 2 - 5.5, "none") : [], slots: [] };
  }
  return card.oneLine ? glyphsOnly(context, card) : slotLine(context, card, ghost);
}

/** A saved tensor's glyph; its letter only where letters are large enough. */
function glyph(context: Context, x: number, y: number, look: SlotLook): Mark[] {
  const marks = slotMark(x, y, look);
  return context.level === 3 ? marks : marks.filter((mark) => mark.t !== "text");
}

/** Glyphs and call number at the right end of a one-line card. */
function glyphsOnly(context: Context, card: Card): CardMarks {
  const marks: Mark[] = [];
  const slots: SlotBox[] = [];
  const y = card.h / 2 - 5.5;
  let x = card.w - 8 - glyphRoom(card) + 3;
  for (const { slot, look } of card.slots) {
    marks.push(...glyph(context, x, y, look));
    slots.push({ slot, x: x - 5, y: y - 4, w: 24, h: 18 });
    x += 17;
  }
  if (card.freedBy >= 0) marks.push(...freedMark(context, card.freedBy, card.w - 13, y + 5.5));
  return { marks, slots };
}

function freedMark(context: Context, n: number, x: number, y: number): Mark[] {
  if (context.level < 3) return [];
  return callNumberMark(x, y, callNumber(n), hueOfCall(context, n), false, 6.5);
}

function slotLine(context: Context, card: Card, ghost: boolean): CardMarks {
  const { measure } = context.options;
  const marks: Mark[] = [];
  const slots: SlotBox[] = [];
  const near = context.level === 3;
  const y = card.h - 18;
  const x0 = textInset(card);
  const freedWidth = card.freedBy >= 0 && near ? measure("freed", "slotname") + 26 : 0;
  const room = card.w - x0 - 8 - freedWidth;
  const labels = near ? labelsThatFit(context, card, room) : card.slots.map(() => "");
  if (labels.length < card.slots.length) return slotTotals(context, card, x0, y);
  let x = x0;
  card.slots.forEach(({ slot, look, freedBy: n }, i) => {
    marks.push(...glyph(context, x, y, look));
    const label = labels[i]!;
    const width = SLOT_W + (label ? 3 + measure(label, slotClass(look)) : 0);
    const tone = ghost ? "slotname goneword" : slotClass(look);
    if (label) marks.push(text(x + SLOT_W + 3, y + 9.2, label, tone));
    slots.push({ slot, x: x - 3, y: y - 3.5, w: Math.max(24, width + 6), h: SLOT_H + 7 });
    x += width + (label ? GAP : 3);
    if (n >= 0 && card.freedBy < 0 && near) {
      marks.push(...freedMark(context, n, x + 4, y + 5.5));
      x += 18;
    }
  });
  if (freedWidth) {
    marks.push(...freedMark(context, card.freedBy, card.w - 14, y + 5.5));
    marks.push(text(card.w - 24, y + 9.2, "freed", "slotname goneword", "end"));
  }
  return { marks, slots };
}

/** Labels lose their bytes, then their names; nothing at all when even the glyphs do not fit. */
function labelsThatFit(context: Context, card: Card, room: number): string[] {
  const { measure } = context.options;
  const inline = card.freedBy < 0 ? card.slots.filter((slot) => slot.freedBy >= 0).length * 18 : 0;
  const full = card.slots.map(({ name, bytes }) => slotLabel(name, bytes));
  const names = card.slots.map(({ name }) => name);
  const none = card.slots.map(() => "");
  for (const labels of [full, names, none]) {
    let width = inline - GAP;
    labels.forEach((label, i) => {
      width += SLOT_W + (label ? 3 + measure(label, slotClass(card.slots[i]!.look)) + GAP : 3);
    });
    if (width <= room) return labels;
  }
  return [];
}

/** `4 held`, `2 freed`: one glyph per state, for groups and for more slots than fit. */
function slotTotals(context: Context, card: Card, x0: number, y: number): CardMarks {
  const { measure } = context.options;
  const marks: Mark[] = [];
  let x = x0;
  for (const state of [SLOT.held, SLOT.stale, SLOT.freed, SLOT.packed, SLOT.unknown]) {
    const count = card.counts[state]!;
    if (!count) continue;
    const forecast = state === SLOT.held && card.box.nodes.length > 0 && allWouldBeFreed(context, card);
    marks.push(...glyph(context, x, y, forecast ? "will" : SLOT_LOOKS[state]!));
    x += SLOT_W + 3;
    if (context.level < 3) continue;
    const label = `${count} ${SLOT_LOOKS[state]}`;
    const tone = state === SLOT.stale ? " staleword" : state === SLOT.freed ? " goneword" : "";
    if (x + measure(label, `slotname${tone}`) > card.w - 30) break;
    marks.push(text(x, y + 9.2, label, `slotname${tone}`));
    x += measure(label, `slotname${tone}`) + GAP;
  }
  if (card.freedBy >= 0 && card.counts[SLOT.freed])
    marks.push(...freedMark(context, card.freedBy, card.w - 14, y + 5.5));
  return { marks, slots: [] };
}

function allWouldBeFreed(context: Context, card: Card): boolean {
  const { graph } = context;
  if (context.wouldFree.size === 0) return false;
  for (const node of card.box.nodes) {
    for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) {
      if (graph.slotState[slot] === SLOT.held && !context.wouldFree.has(slot)) return false;
    }
  }
  return true;
}

function groupLine(context: Context, card: Card): Mark[] {
  if (card.oneLine) return [];
  const marks = slotTotals(context, card, textInset(card), card.h - 18).marks;
  const bytes = card.box.bytes;
  if (bytes > 0 && card.freedBy < 0 && context.level === 3) {
    const label = shortBytes(bytes);
    const used = marks.reduce((most, mark) => Math.max(most, textEnd(context, mark)), 0);
    if (used + context.options.measure(label, "note") + 12 < card.w - 8) {
      marks.push(text(card.w - 8, card.h - 8.8, label, "note", "end"));
    }
  }
  return marks;
}

function textEnd(context: Context, mark: Mark): number {
  return mark.t === "text" && mark.anchor === "start" ? mark.x + context.options.measure(mark.s, mark.c) : 0;
}
