/** Cards: what they say, and how much room a box needs for it. The marks are in cardmarks.ts. */

import type { Box } from "../fold/index.ts";
import { LEAF_H, leafWidth, SLOT_LOOKS, SLOT_W, type SlotLook } from "../marks.ts";
import { shorten } from "../measure.ts";
import { SLOT } from "../model.ts";
import { countText, freedBy, placeText, shortBytes, slotCounts } from "../words.ts";
import { type Context, type RootView, rootsOf } from "./context.ts";

const WIDTH = 178;
const COMPACT_WIDTH = 158;
const MIN_WIDTH = 140;
const MAX_WIDTH = 210;
const TWO_LINES = 42;
const ONE_LINE = 26;
const COMPACT_LINE = 22;
const MAX_STRIPES = 4;
/** More boxes than this, and cards shrink to their text. */
const ROOMY = 24;
export const GAP = 8;
/** Room of a bowl in line 1. */
export const BOWL = 12;

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
  leaves: LeafPart[];
  /** Nothing else stands above this card. */
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
    leaves: [],
    leavesAbove: context.above[b]!.length === 0 && !options.compact,
  };
  card.leaves = leafParts(context, box, card.note);
  card.h = options.compact ? COMPACT_LINE : card.oneLine ? ONE_LINE : TWO_LINES;
  card.w = cardWidth(context, card);
  if (card.leavesAbove) placeLeavesAbove(card);
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
        bytes: present ? shortBytes(graph.slotBytes[slot]!) : "",
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
  if (context.options.compact) return "";
  let held = 0;
  let total = 0;
  for (const { slot } of slots) {
    total += graph.slotBytes[slot]!;
    if (graph.slotState[slot] !== SLOT.freed) held += graph.slotBytes[slot]!;
  }
  if (total === 0 || held === total) return "";
  const [amount, unit] = shortBytes(held).split(" ");
  const [whole, wholeUnit] = shortBytes(total).split(" ");
  return unit === wholeUnit || held === 0
    ? `${amount}/${whole} ${wholeUnit}`
    : `${amount} ${unit}/${whole} ${wholeUnit}`;
}

function groupNote(box: Box): string {
  if (box.title.includes("node")) return box.subtitle;
  return box.subtitle || countText(box.count, "node");
}

function cardWidth(context: Context, card: Card): number {
  const { measure } = context.options;
  const first =
    measure(card.title, "op") + measure(card.suffix, "op suffix") + (card.note ? 10 + measure(card.note, "note") : 0);
  let second = 0;
  for (const { name, bytes, look } of card.slots) {
    second += SLOT_W + 3 + measure(slotLabel(name, bytes), slotClass(look)) + GAP;
  }
  if (card.freedBy >= 0) second += measure("freed", "slotname") + 26;
  const bowl = card.leaves.length && !card.leavesAbove ? BOWL + 5 : 0;
  const need = textInset(card) + 8 + Math.max(first + bowl + glyphRoom(card), card.oneLine ? 0 : second);
  const roomy = context.folded.boxes.length <= ROOMY;
  const normal = !roomy ? MIN_WIDTH : context.options.compact ? COMPACT_WIDTH : WIDTH;
  return Math.ceil(Math.min(MAX_WIDTH, Math.max(normal, need)));
}

export const textInset = (card: Card) => 7 + 5 * card.stripes.length;
export const hasNoSlots = (card: Card) =>
  card.slots.length === 0 && card.counts.every((count, state) => !count || state === SLOT.unsaved);

/** Room at the right end of a one-line card for its glyphs. */
export function glyphRoom(card: Card): number {
  if (!card.oneLine) return 0;
  const glyphs = card.slots.length || (hasNoSlots(card) && card.box.kind === "node" && !card.note ? 1 : 0);
  const room = 17 * glyphs + (card.freedBy >= 0 ? 17 : 0);
  return room ? room + 3 : 0;
}

/** A slot's label: quiet once freed, loud when stale. */
export const slotClass = (look: SlotLook) =>
  look === "stale" ? "slotname staleword" : look === "freed" ? "slotname goneword" : "slotname";

export const slotLabel = (name: string, bytes: string) => (bytes ? `${name} ${bytes}` : name);

// ---- Leaves -------------------------------------------------------------------------------------------------------

/** Parameters of one module share a badge: `weight, bias`. */
function leafParts(context: Context, box: Box, note: string): LeafPart[] {
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
    const [full, list] = many ? [`${part.nodes.length} leaves`, ""] : leafText(part, context.graph, note);
    const text = list && options.measure(full, "leafname") > LEAF_ROOM ? list : full;
    part.text = shorten(text, LEAF_ROOM, "leafname", options.measure);
    part.w = leafWidth(options.measure(part.text, "leafname"));
  }
  return parts;
}

/** What a badge says, with the module unless the card's note names it, and without. */
function leafText(part: LeafPart, graph: Context["graph"], note: string): [string, string] {
  const [first] = part.names;
  if (first === undefined) return [graph.leaves.get(part.nodes[0]!)?.type || "leaf", ""];
  const short = part.names.map((name) => name.slice(name.lastIndexOf(".") + 1));
  const list = short.sort((a, b) => Number(a === "bias") - Number(b === "bias")).join(", ");
  const module = first.slice(0, Math.max(0, first.lastIndexOf(".")));
  if (!module || module.endsWith(note || " ") || note.endsWith(module)) return [list, ""];
  return [short.length === 1 ? first : `${module}: ${list}`, list];
}

const LEAF_GAP = 8;
const LEAF_ROOM = 120;
const LEAF_RISE = 16;

/** In a row above the card. Leaves of other cards find their place once everything else stands. */
function placeLeavesAbove(card: Card): void {
  let x = 0;
  for (const part of card.leaves) {
    part.x = x;
    part.y = -LEAF_H - LEAF_RISE;
    x += part.w + LEAF_GAP;
  }
}

/** Room that leaves take above the card, and on either side of it. */
export function leafRoom(card: Card): { top: number; side: number } {
  if (card.leaves.length === 0 || !card.leavesAbove) return { top: 0, side: 0 };
  const last = card.leaves[card.leaves.length - 1]!;
  return { top: LEAF_H + LEAF_RISE, side: Math.max(0, last.x + last.w - card.w) };
}
