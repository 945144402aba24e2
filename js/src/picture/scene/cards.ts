/** Cards: how much room a box needs, and its marks at every level of detail. */

import type { Box } from "../fold/index.ts";
import {
  callNumberMark,
  circle,
  LEAF_H,
  leafWidth,
  rect,
  SLOT_H,
  SLOT_LOOKS,
  SLOT_W,
  type SlotLook,
  slot as slotMark,
  stripe,
  text,
} from "../marks.ts";
import { shorten } from "../measure.ts";
import { SLOT } from "../model.ts";
import type { Mark, SlotBox } from "../scene.ts";
import { bytesText, callNumber, countText, freedBy, placeText, slotCounts } from "../words.ts";
import type { Context, RootView } from "./context.ts";
import { hueOfCall, rootsOf } from "./context.ts";

const WIDTH = 178;
const MIN_WIDTH = 140;
const MAX_WIDTH = 210;
const TWO_LINES = 42;
const ONE_LINE = 26;
const MAX_STRIPES = 4;
/** More boxes than this, and cards shrink to their text. */
const ROOMY = 24;
const GAP = 8;

export interface LeafPart {
  nodes: number[];
  names: string[];
  text: string;
  hasGrad: boolean;
  w: number;
  /** Relative to the card. */
  x: number;
  y: number;
}

interface SlotText {
  slot: number;
  look: SlotLook;
  name: string;
  bytes: string;
  freedBy: number;
}

/** What a card says, before it is known how much of it fits. */
export interface Card {
  box: Box;
  w: number;
  h: number;
  stripes: RootView[];
  /** Op name without its suffix, and the suffix; or a group's title. */
  title: string;
  suffix: string;
  note: string;
  slots: SlotText[];
  /** Call that freed all freed slots; -1: none, or several. */
  freedBy: number;
  /** A group's saved tensors by state. */
  counts: number[];
  oneLine: boolean;
  /** Leaves beside the card: above it, or to its right. */
  leaves: LeafPart[];
  leavesAbove: boolean;
}

/** `Mv` and `Backward0`. */
export function splitName(name: string): [string, string] {
  const at = name.lastIndexOf("Backward");
  return at > 0 ? [name.slice(0, at), name.slice(at)] : [name, ""];
}

export function makeCard(context: Context, b: number, noteFromPlace: boolean): Card {
  const { graph, folded, options } = context;
  const box = folded.boxes[b]!;
  const node = context.main[b]!;
  const single = box.kind === "node";
  const [title, suffix] = single ? splitName(graph.names[graph.name[node]!]!) : [`${box.title} ▸`, ""];
  const slots = single ? slotTexts(context, box) : [];
  const counts = slotCounts(graph, box.nodes);
  const calls = freedBy(graph, box.nodes);
  const card: Card = {
    box,
    w: 0,
    h: 0,
    stripes: rootsOf(context, context.reach[b]!).slice(0, MAX_STRIPES),
    title,
    suffix,
    note: single ? nodeNote(context, node, slots, noteFromPlace) : groupNote(box),
    slots,
    freedBy: calls.length === 1 ? calls[0]! : -1,
    counts,
    oneLine: options.compact === true || (single ? slots.length === 0 : counts.every((count) => !count)),
    leaves: leafParts(context, box),
    leavesAbove: context.above[b]!.length === 0,
  };
  card.h = card.oneLine ? ONE_LINE : TWO_LINES;
  card.w = cardWidth(context, card);
  placeLeaves(card);
  return card;
}

function slotTexts(context: Context, box: Box): SlotText[] {
  const { graph } = context;
  const texts: SlotText[] = [];
  for (const node of box.nodes) {
    for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) {
      const state = graph.slotState[slot]!;
      if (state === SLOT.unsaved) continue;
      const present = state !== SLOT.freed && graph.slotBytes[slot]! > 0;
      texts.push({
        slot,
        look: context.wouldFree.has(slot) && state !== SLOT.freed ? "will" : SLOT_LOOKS[state]!,
        name: shortSlotName(graph.names[graph.slotName[slot]!] ?? ""),
        bytes: present ? bytesText(graph.slotBytes[slot]!) : "",
        freedBy: state === SLOT.freed ? graph.slotFreedBy[slot]! : -1,
      });
    }
  }
  return texts;
}

function shortSlotName(name: string): string {
  const short = name.replace("saved_tensors", "saved");
  return short.length > 11 ? `${short.slice(0, 9)}…` : short;
}

/** Right end of line 1: the source line where there is no rail, else the module, else the bytes. */
function nodeNote(context: Context, node: number, slots: readonly SlotText[], fromPlace: boolean): string {
  const { graph } = context;
  if (fromPlace) {
    const where = placeText(graph.places[graph.place[node]!]);
    if (where) return where;
  }
  const module = graph.modules[graph.module[node]!];
  if (module?.path) return module.path;
  let held = 0;
  let total = 0;
  for (const { slot } of slots) {
    total += graph.slotBytes[slot]!;
    if (graph.slotState[slot] !== SLOT.freed) held += graph.slotBytes[slot]!;
  }
  if (total === 0 || held === total) return "";
  return `${held === 0 ? "0" : bytesText(held).replace(bytesText(total).slice(-3), "")}/${bytesText(total)}`;
}

function groupNote(box: Box): string {
  if (box.title.includes("node")) return box.subtitle;
  return box.subtitle || countText(box.count, "node");
}

function cardWidth(context: Context, card: Card): number {
  const { measure } = context.options;
  const inset = 7 + 5 * card.stripes.length;
  const first =
    measure(card.title, "op") +
    measure(card.suffix, "op suffix") +
    (card.note ? 10 + measure(card.note, "note") : card.oneLine ? 24 : 0);
  let second = 0;
  for (const { name, bytes } of card.slots) second += SLOT_W + 3 + measure(slotLabel(name, bytes), "slotname") + GAP;
  if (card.freedBy >= 0) second += measure("freed", "slotname") + 26;
  const need = inset + 8 + (card.oneLine ? first + 17 * card.slots.length : Math.max(first, second));
  const normal = context.folded.boxes.length > ROOMY ? MIN_WIDTH : WIDTH;
  return Math.ceil(Math.min(MAX_WIDTH, Math.max(normal, need)));
}

const slotLabel = (name: string, bytes: string) => (bytes ? `${name} ${bytes}` : name);

// ---- Leaves -------------------------------------------------------------------------------------------------------

/** Parameters of one module share a badge: `weight, bias`. */
function leafParts(context: Context, box: Box): LeafPart[] {
  const { graph, options } = context;
  const byModule = new Map<string, LeafPart>();
  for (const node of new Set(box.leaves)) {
    const known = graph.leaves.get(node);
    const name = known?.paths[0] ?? "";
    const dot = name.lastIndexOf(".");
    const key = dot > 0 ? name.slice(0, dot) : `${node}`;
    let part = byModule.get(key);
    if (!part) byModule.set(key, (part = { nodes: [], names: [], text: "", hasGrad: true, w: 0, x: 0, y: 0 }));
    part.nodes.push(node);
    if (name) part.names.push(name);
    part.hasGrad &&= known?.hasGrad ?? false;
  }
  let parts = [...byModule.values()];
  const many = parts.length > 3 || parts.some((part) => part.nodes.length > 3);
  if (many) {
    const nodes = parts.flatMap((part) => part.nodes);
    const names = parts.flatMap((part) => part.names);
    parts = [{ nodes, names, text: "", hasGrad: parts.every((part) => part.hasGrad), w: 0, x: 0, y: 0 }];
  }
  for (const part of parts) {
    part.text = many ? `${part.nodes.length} leaves` : leafText(part, context.graph);
    part.text = shorten(part.text, 120, "leafname", options.measure);
    part.w = leafWidth(options.measure(part.text, "leafname"));
  }
  return parts;
}

function leafText(part: LeafPart, graph: Context["graph"]): string {
  if (part.names.length === 0) return graph.leaves.get(part.nodes[0]!)?.type || "leaf";
  if (part.names.length === 1) {
    const name = part.names[0]!;
    return name.length > 16 ? name.slice(name.lastIndexOf(".") + 1) : name;
  }
  return part.names.map((name) => name.slice(name.lastIndexOf(".") + 1)).join(", ");
}

const LEAF_GAP = 8;
const LEAF_RISE = 16;

function placeLeaves(card: Card): void {
  let x = card.leavesAbove ? 0 : card.w + 10;
  let y = card.leavesAbove ? -LEAF_H - LEAF_RISE : card.h / 2 - LEAF_H / 2;
  if (!card.leavesAbove) y -= ((card.leaves.length - 1) * (LEAF_H + 4)) / 2;
  for (const part of card.leaves) {
    part.x = x;
    part.y = y;
    if (card.leavesAbove) x += part.w + LEAF_GAP;
    else y += LEAF_H + 4;
  }
}

/** Room that the leaves take beside the card: on top, and on either side. */
export function leafRoom(card: Card): { top: number; side: number } {
  if (card.leaves.length === 0) return { top: 0, side: 0 };
  if (card.leavesAbove) {
    const last = card.leaves[card.leaves.length - 1]!;
    return { top: LEAF_H + LEAF_RISE, side: Math.max(0, last.x + last.w - card.w) };
  }
  return { top: 0, side: 10 + Math.max(...card.leaves.map((part) => part.w)) };
}

// ---- Marks --------------------------------------------------------------------------------------------------------

export interface CardMarks {
  marks: Mark[];
  slots: SlotBox[];
}

export function cardMarks(context: Context, card: Card, b: number): CardMarks {
  const marks = [...outline(context, card, b)];
  const slots: SlotBox[] = [];
  if (context.level <= 1) return { marks: marks.concat(stateBar(context, card)), slots };
  const ghost = context.ghost[b] === 1;
  card.stripes.forEach((view, i) => {
    marks.push(...stripe(5 + 5 * i, 6, card.h - 6, view.style, view.hue, ghost));
  });
  if (context.level === 2) marks.push(...farText(context, card, ghost, isDim(context, card)));
  else marks.push(...nearText(context, card, ghost, isDim(context, card)));
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
  const width = Math.max(24, context.options.measure(label, "times") + 12);
  const marks: Mark[] = [
    width > 26 ? rect(w - width + 10, -10, width, 20, "badge", 10) : circle(w - 2, 0, 12, "badge"),
  ];
  marks.push(text(width > 26 ? w + 10 - width / 2 : w - 2, 4, label, "times", "middle"));
  return marks;
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

const textInset = (card: Card) => 7 + 5 * card.stripes.length;
const hasNoSlots = (card: Card) =>
  card.slots.length === 0 && card.counts.every((count, state) => !count || state === SLOT.unsaved);

/** Room at the right end of a one-line card for its glyphs. */
function glyphRoom(card: Card): number {
  if (!card.oneLine) return 0;
  const glyphs = card.slots.length || (hasNoSlots(card) && card.box.kind === "node" && !card.note ? 1 : 0);
  return 17 * glyphs + (card.freedBy >= 0 ? 17 : 0);
}

function nearText(context: Context, card: Card, ghost: boolean, dim: boolean): Mark[] {
  const { measure } = context.options;
  const x = textInset(card);
  const y = card.oneLine ? card.h / 2 + 4 : 17;
  const quiet = ghost || dim ? " gonename" : "";
  const right = card.w - 8 - glyphRoom(card);
  const marks: Mark[] = [];
  let note = card.note;
  const title = measure(card.title, "op");
  const noteRoom = right - x - title - 10;
  if (note && measure(note, "note") > noteRoom) note = noteRoom > 40 ? shorten(note, noteRoom, "note", measure) : "";
  if (note) marks.push(text(right, y, note, `note${ghost || dim ? " goneword" : ""}`, "end"));
  const room = right - x - (note ? measure(note, "note") + 10 : 0);
  const whole = card.title + card.suffix;
  const wholeFits = title + measure(card.suffix, "op suffix") <= room;
  if (wholeFits && card.suffix) {
    const runs = [
      { s: card.title, c: "" },
      { s: card.suffix, c: `suffix${quiet}` },
    ];
    marks.push({ ...(text(x, y, whole, `op${quiet}`) as Mark & { t: "text" }), runs });
  } else {
    const cut = card.suffix ? `${card.title}…` : card.title;
    marks.push(text(x, y, shorten(cut, room, "op", measure), `op${quiet}`));
  }
  return marks;
}

/** From afar only the name, large enough to stay above 9 px. */
function farText(context: Context, card: Card, ghost: boolean, dim: boolean): Mark[] {
  const x = textInset(card);
  const room = card.w - x - 8 - glyphRoom(card);
  const name = shorten(card.title, room, "opfar", context.options.measure);
  return [text(x, card.oneLine ? card.h / 2 + 6 : 18, name, `opfar${ghost || dim ? " gonename" : ""}`)];
}

function secondLine(context: Context, card: Card, ghost: boolean): CardMarks {
  if (card.box.kind !== "node") return { marks: groupLine(context, card), slots: [] };
  if (hasNoSlots(card)) {
    const free = card.oneLine && (!card.note || context.level === 2);
    return { marks: free ? slotMark(card.w - 22, card.h / 2 - 5.5, "none") : [], slots: [] };
  }
  return card.oneLine ? glyphsOnly(context, card) : slotLine(context, card, ghost);
}

/** Glyphs and call number at the right end of a one-line card. */
function glyphsOnly(context: Context, card: Card): CardMarks {
  const marks: Mark[] = [];
  const slots: SlotBox[] = [];
  const y = card.h / 2 - 5.5;
  let x = card.w - 8 - glyphRoom(card) + 3;
  for (const { slot, look } of card.slots) {
    marks.push(...slotMark(x, y, look));
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
    marks.push(...slotMark(x, y, look));
    const label = labels[i]!;
    const width = SLOT_W + (label ? 3 + measure(label, "slotname") : 0);
    const tone = look === "freed" || ghost ? " goneword" : look === "stale" ? " staleword" : "";
    if (label) marks.push(text(x + SLOT_W + 3, y + 9.2, label, `slotname${tone}`));
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
    for (const label of labels) {
      width += SLOT_W + (label ? 3 + measure(label, label === "" ? "slotname" : "slotname staleword") + GAP : 3);
    }
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
    marks.push(...slotMark(x, y, forecast ? "will" : SLOT_LOOKS[state]!));
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
    const label = bytesText(bytes);
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
