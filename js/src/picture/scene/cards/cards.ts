/** Cards: their texts, and the room that a box needs for them. The marks are in marks.ts. */

import type { Box } from "../../fold/index.ts";
import { callNumberHalf, LEAF_H, leafWidth, SLOT_LOOKS, SLOT_W, type SlotLook } from "../../marks.ts";
import { shorten } from "../../measure.ts";
import type { Graph } from "../../model.ts";
import * as SLOT from "../../slot.ts";
import { callNumber, count, join, placeText, shortBytes, slotSummary } from "../../words.ts";
import { type Context, rootsOf, sized } from "../context.ts";
import type { Card, LeafPart, SlotText } from "../types.ts";

const WIDTH = 178;
const COMPACT_WIDTH = 158;
const MIN_WIDTH = 140;
const MAX_WIDTH = 210;
const WIDEST = 320;
const TWO_LINES = 42;
const DENSE_TWO_LINES = 38;
const ONE_LINE = 26;
const COMPACT_LINE = 22;
const MAX_STRIPES = 4;
/** n of a call whose number has two digits: cards have room for one, whichever call will free them. */
const TWO_DIGITS = 98;
const ROOM_FOR_BYTES = "8.8 kB";
/** With more boxes than this, cards are only as wide as their text. */
const ROOMY = 24;
/** Letters of the name of a slot. */
const LETTERS = 11;
const LETTERS_IN_ONE_LANE = 18;
export const GAP = 8;
/** Width of a bowl in line 1, in px. */
export const BOWL = 12;

export function cardOf(context: Context, b: number): Card {
  let card = context.cards.get(b);
  if (!card) {
    card = makeCard(context, b);
    if (card.box.kind !== "node") context.cards.set(b, card);
  }
  return card;
}

function makeCard(context: Context, b: number): Card {
  const { graph, folded, options } = context;
  const box = folded.boxes[b]!;
  const node = context.main[b]!;
  const single = box.kind === "node";
  // `Mv` and `Backward0`.
  const name = graph.names[graph.name[node]!]!;
  const [, title, suffix] = single ? (/^(.+)(Backward.*)$/s.exec(name) ?? ["", name, ""]) : ["", `${box.title} ▸`, ""];
  const slots = single ? slotTexts(context, box) : [];
  const { counts, freedBy } = slotSummary(graph, box.nodes);
  const note = single ? nodeNote(context, node) : groupNote(box);
  const looks = slotSummary(graph, box.nodes, context.looks).counts.flatMap((n, i): [SlotLook, number][] =>
    n && i !== SLOT.unsaved ? [[SLOT_LOOKS[i]!, n]] : [],
  );
  const oneLine = options.compact === true || !looks.length;
  const above = leavesAbove(context, b);
  context.leaves[b] ??= box.leaves.length ? leafParts(context, box, note, above) : NONE;
  const card: Card = {
    box,
    w: 0,
    h: options.compact ? COMPACT_LINE : oneLine ? ONE_LINE : options.dense ? DENSE_TWO_LINES : TWO_LINES,
    stripes: rootsOf(context, context.reach[b]!).slice(0, MAX_STRIPES),
    title: title!,
    suffix: suffix!,
    note,
    slots,
    freedBy: freedBy.length === 1 ? freedBy[0]! : -1,
    counts,
    looks,
    oneLine,
    leaves: context.leaves[b],
    leavesAbove: above,
  };
  card.w = cardWidth(context, card);
  return card;
}

function slotTexts(context: Context, box: Box): SlotText[] {
  const { graph } = context;
  const texts: SlotText[] = [];
  for (const node of box.nodes) {
    for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) {
      const state = graph.slotState[slot]!;
      if (state === SLOT.unsaved) continue;
      const freed = state === SLOT.freed;
      texts.push({
        slot,
        look: SLOT_LOOKS[context.looks[slot]!]!,
        name: shortSlotName(graph.names[graph.slotName[slot]!] ?? "", context.oneLane ? LETTERS_IN_ONE_LANE : LETTERS),
        bytes: graph.slotBytes[slot]! > 0 ? shortBytes(graph.slotBytes[slot]!) : "",
        freedBy: freed ? graph.slotFreedBy[slot]! : -1,
      });
    }
  }
  return texts;
}

function shortSlotName(name: string, most: number): string {
  const short = name.replace("saved_tensors", "saved");
  return short.length > most ? `${short.slice(0, most - 2)}…` : short;
}

/** Right end of line 1: the source line where there is no rail, else the module. */
const nodeNote = ({ graph, rail }: Context, node: number) =>
  (!rail && placeText(graph.places[graph.place[node]!])) || graph.modules[graph.module[node]!]?.path || "";

function groupNote(box: Box): string {
  return box.subtitle || (box.title.includes("node") ? "" : count(box.count, "node"));
}

function cardWidth({ measure, folded, options, oneLane }: Context, card: Card): number {
  const note = card.note ? 10 + measure(card.note, "note") : 0;
  const bowl = card.leaves.length && !card.leavesAbove ? BOWL + 5 : 0;
  const first = measure(card.title, "op") + measure(card.suffix, "op suffix") + note + bowl;
  // Wide enough both with all slots held and with all slots freed: a call must not make a card grow. Bytes are known of
  // held slots only, so they get a fixed room, where there is much of it.
  const bytes = oneLane ? ROOM_FOR_BYTES : "";
  const held = {
    ...card,
    slots: card.slots.map((slot) => ({ ...slot, look: "held" as SlotLook, bytes })),
    freedBy: TWO_DIGITS,
  };
  const row =
    rowWidth({ measure, level: 3 }, slotRows(held, true)[0]!) +
    (card.looks.length && freedWidth({ measure, level: 3 }, held));
  const need = textInset(card) + 8 + (card.oneLine ? first + row : Math.max(first, row));
  const normal = folded.boxes.length > ROOMY ? MIN_WIDTH : options.compact ? COMPACT_WIDTH : WIDTH;
  return Math.ceil(Math.min(oneLane ? WIDEST : MAX_WIDTH, Math.max(normal, need)));
}

export const textInset = (card: Card) => 7 + 5 * card.stripes.length;

// ---- Saved tensors --------------------------------------------------------------------------------------------------

/** A glyph in the row of saved tensors, with its label. */
export interface Cell {
  look: SlotLook;
  label: string;
  /** The call that freed it, if different calls freed the slots of the card; else -1. */
  by: number;
}

/** Rows that show the saved tensors, the most detailed first: each slot with its name, each slot, one per look. */
export function slotRows({ box, looks, slots, freedBy, oneLine }: Card, near: boolean): Cell[][] {
  const each = (label: (slot: SlotText) => string) =>
    slots.map((slot) => ({ look: slot.look, label: label(slot), by: freedBy < 0 ? slot.freedBy : -1 }));
  const all = (label: (look: SlotLook, n: number) => string) =>
    looks.map(([look, n]) => ({ look, label: label(look, n), by: -1 }));
  const words = (look: SlotLook, n: number) => (near ? `${n} ${look === "will" ? "would be freed" : look}` : String(n));
  const bytes = box.bytes ? shortBytes(box.bytes) : "";
  const rows = [
    ...(near && !oneLine
      ? [each(({ look, name, bytes }) => join(" ", name, look !== "freed" && bytes)), each(({ name }) => name)]
      : []),
    each(() => ""),
    all((look, n) => join(" ", words(look, n), look === "held" && bytes)),
    all(words),
    all(() => ""),
  ].filter((row) => row.length);
  if (!rows.length) rows.push(box.kind === "node" ? [{ look: "none", label: "", by: -1 }] : []);
  return rows;
}

/** A slot's label: quiet once freed, loud when stale. */
export const slotClass = (look: SlotLook) =>
  look === "stale" ? "note staleword" : look === "freed" ? "note quiet" : "note";

export const rowWidth = (context: Pick<Context, "measure" | "level">, row: readonly Cell[]) =>
  row.reduce((sum, { look, label, by }) => {
    const words = label && context.measure(label, sized(context, slotClass(look))) + GAP;
    return sum + SLOT_W + 3 + (words || 0) + (by < 0 ? 0 : numberWidth(context, by));
  }, 0);

/** Look and size of call numbers on cards: below level 3 they are larger, and stay when all other words go. */
export function numberLook(context: Pick<Context, "level">): { look: string; r: number } {
  return { look: sized(context, "callno"), r: context.level === 3 ? 6.5 : 9 };
}

/** Width of a call's number on a card, with a gap. */
export function numberWidth(context: Pick<Context, "level">, n: number): number {
  const { look, r } = numberLook(context);
  return 2 * callNumberHalf(callNumber(n), r, look) + 5;
}

/** Width of "freed" and the number of the call at the right, if one call freed all freed slots; else 0. */
export function freedWidth(context: Pick<Context, "measure" | "level">, { freedBy, oneLine }: Card): number {
  if (freedBy < 0) return 0;
  const words = oneLine || context.level < 3 ? 0 : context.measure("freed", "note") + 3;
  return numberWidth(context, freedBy) + words;
}

// ---- Leaves -------------------------------------------------------------------------------------------------------

const NONE: LeafPart[] = [];
const LEAF_GAP = 8;
const LEAF_ROOM = 120;
const LEAF_RISE = 16;

/** Whether the leaves of a card are drawn above it: no box stands there, and it is not the inside of a group. */
export const leavesAbove = ({ above, options }: Context, b: number) =>
  above.start[b] === above.start[b + 1] && !options.compact && !options.inner;

/** Names of those leaves that have one. */
export const leafNames = (graph: Graph, nodes: readonly number[]) =>
  nodes.map((node) => graph.leaves.get(node)?.paths[0] ?? "").filter(Boolean);

const moduleOf = (name: string) => name.slice(0, Math.max(0, name.lastIndexOf(".")));

/** Badges of leaves; parameters of one module share one: `weight, bias`. Badges not above the card get x, y later. */
function leafParts({ graph, measure }: Context, box: Box, note: string, above: boolean): LeafPart[] {
  const byModule = new Map<string | number, number[]>();
  for (const node of box.leaves) {
    const key = moduleOf(graph.leaves.get(node)?.paths[0] ?? "") || node;
    const list = byModule.get(key);
    if (list) list.push(node);
    else byModule.set(key, [node]);
  }
  const parts = [...byModule.values()];
  const many = parts.length > 3 || parts.some((part) => part.length > 3);
  let x = 0;
  return (many ? [parts.flat()] : parts).map((nodes) => {
    const words = many ? `${nodes.length} leaves` : leafText(graph, nodes, note);
    const text = shorten(words, LEAF_ROOM, "leafname", measure, 1);
    const part = { nodes, text, w: leafWidth(measure(text, "leafname")), x, y: -LEAF_H - LEAF_RISE };
    if (above) x += part.w + LEAF_GAP;
    return part;
  });
}

/** The text of a badge, with the module unless the card's note names it. */
function leafText(graph: Graph, nodes: readonly number[], note: string): string {
  const names = leafNames(graph, nodes);
  const [first] = names;
  if (first === undefined) return graph.leaves.get(nodes[0]!)?.type || "leaf";
  const short = names.map((name) => name.slice(name.lastIndexOf(".") + 1));
  const list = short.sort((a, b) => Number(a === "bias") - Number(b === "bias")).join(", ");
  const module = moduleOf(first);
  if (!module || module.endsWith(note || " ") || note.endsWith(module)) return list;
  return short.length === 1 ? first : `${module}: ${list}`;
}

/** Room in px that leaves need above the card, and on either side of it. */
export function leafRoom(card: Card): { top: number; side: number } {
  const last = card.leaves.at(-1);
  if (!last || !card.leavesAbove) return { top: 0, side: 0 };
  return { top: LEAF_H + LEAF_RISE, side: Math.max(0, last.x + last.w - card.w) };
}
