/** The marks of a card at every level of detail. */

import { callNumberMark, rect, SLOT_LOOKS, SLOT_W, type SlotLook, slot as slotMark, stripe, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import type { Mark } from "../scene.ts";
import * as SLOT from "../slot.ts";
import { callNumber, join, shortBytes } from "../words.ts";
import {
  BOWL,
  type Card,
  freedWidth,
  GAP,
  glyphRoom,
  hasNoSlots,
  slotClass,
  slotLabel,
  slotsWidth,
  textInset,
} from "./cards.ts";
import { type Context, hueOfCall, isIn } from "./context.ts";

/** `bowl`: line 1 has to leave room for the bowl of a leaf. */
export function cardMarks(context: Context, card: Card, b: number, bowl: boolean): Mark[] {
  const { level } = context;
  const ghost = context.ghost[b] === 1;
  const marks = outline(context, card, b, ghost);
  if (level <= 1) return marks.concat(stateBar(context, card));
  for (const [i, view] of card.stripes.entries())
    marks.push(...stripe(5 + 5 * i, 6, card.h - 6, view.style, view.hue, ghost));
  const quiet = ghost || isDim(context, b) ? " gonename" : "";
  marks.push(...(level === 3 ? nearText(context, card, quiet, bowl) : farText(context, card, quiet)));
  return marks.concat(secondLine(context, card, ghost));
}

/** Not found by the search that is going on. */
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
    hit && (hit[b] ? "hitcard" : "dimcard"),
  );
  const edges = box.kind === "repeat" ? [8, 4] : box.kind === "node" ? [] : [4];
  for (const step of edges) marks.push(rect(step, step, w, h, ghost ? "node ghost ghostbg" : "node", 6));
  if (ghost) marks.push(rect(0, 0, w, h, "ghostbg", 6));
  marks.push(rect(0, 0, w, h, look, 6));
  if (box.times > 1 && level >= 2) marks.push(...timesBadge(context, w, box.times));
  return marks;
}

function timesBadge({ level, measure }: Context, w: number, times: number): Mark[] {
  const label = `×${times}`;
  const [look, y] = level === 3 ? (["times", 4] as const) : (["timesfar", 6] as const);
  const width = Math.max(24, measure(label, look) + 12);
  const x = w + 10 - width;
  return [rect(x, -10, width, 20, "badge", 10), text(x + width / 2, y, label, look, "middle")];
}

/** Below 0.55 a box is a bar: filled, hollow, or amber with a sign. */
function stateBar({ level }: Context, { counts, w, h }: Card): Mark[] {
  const [x, y, wide, high] = level === 1 ? [w * 0.14, h / 2 - 7, w * 0.72, 14] : [0, 0, w, h];
  const bar = (c: string, share = 1) => rect(x!, y!, wide! * share, high!, c, 4);
  const held = counts[SLOT.held]! + counts[SLOT.packed]!;
  const gone = counts[SLOT.freed]!;
  if (counts[SLOT.stale]) return [bar("stale")];
  if (held && gone) return [bar("freed"), bar("held", held / (held + gone))];
  const state = held ? "held" : gone ? "freed" : counts[SLOT.unknown] ? "unknown" : level === 0 && "barbg";
  return state ? [bar(state)] : [];
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
function firstLine({ measure }: Context, card: Card, bowl: boolean): FirstLine {
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
  const parts = note.split(".");
  for (let from = 1; from < parts.length; from++) {
    const rest = `…${parts.slice(from).join(".")}`;
    if (measure(rest, "note") <= room) return rest;
  }
  return shorten(parts.at(-1)!, room, "note", measure);
}

/** Where a leaf's bowl stands when there is no room beside the card: on line 1, left of the note. */
export function bowlPlace(context: Context, card: Card): { x: number; y: number } {
  const line = firstLine(context, card, true);
  return { x: line.end - (line.note ? 5 : 0) - BOWL, y: line.y - 6 };
}

function nearText(context: Context, card: Card, quiet: string, bowl: boolean): Mark[] {
  const { x, y, right, title, suffix, note } = firstLine(context, card, bowl);
  const marks: Mark[] = [];
  if (note) marks.push(text(right, y, note, `note${quiet && " goneword"}`, "end"));
  const name = text(x, y, title + suffix, `op${quiet}`);
  const runs = [
    { s: title, c: "" },
    { s: suffix, c: `suffix${quiet}` },
  ];
  marks.push(suffix ? { ...name, runs } : name);
  return marks;
}

/** From afar only the name, large enough to stay above 9 px, and how large a group is. */
function farText({ measure }: Context, card: Card, quiet: string): Mark[] {
  const { box } = card;
  const x = textInset(card);
  const room = card.w - x - 8 - glyphRoom(card);
  const name = shorten(card.title, room, "opfar", measure);
  const y = card.oneLine ? card.h / 2 + 6 : 18;
  const marks = [text(x, y, name, `opfar${quiet}`)];
  if (box.kind === "node") return marks;
  const bytes = shortBytes(box.bytes);
  const sizes = [...(box.bytes > 0 ? [`${box.count} · ${bytes}`, bytes] : []), String(box.count)];
  const left = room - measure(name, "opfar") - 8;
  const size = sizes.find((words) => measure(words, "notefar") <= left);
  if (size) marks.push(text(card.w - 8, y, size, "notefar", "end"));
  return marks;
}

// ---- Saved tensors --------------------------------------------------------------------------------------------------

function secondLine(context: Context, card: Card, ghost: boolean): Mark[] {
  if (card.box.kind !== "node") return card.oneLine ? [] : slotTotals(context, card);
  if (!hasNoSlots(card)) return card.oneLine ? glyphsOnly(context, card) : slotLine(context, card, ghost);
  const free = card.oneLine && (!card.note || context.level === 2);
  return free ? slotMark(card.w - 22, card.h / 2 - 5.5, "none") : [];
}

/** A saved tensor's glyph; its letter only where letters are large enough. */
function glyph({ level }: Context, x: number, y: number, look: SlotLook): Mark[] {
  return slotMark(x, y, look).filter((mark) => level === 3 || mark.t !== "text");
}

/** Glyphs and call number at the right end of a one-line card. */
function glyphsOnly(context: Context, card: Card): Mark[] {
  const y = card.h / 2 - 5.5;
  const x = card.w - 5 - glyphRoom(card);
  const marks = card.slots.flatMap(({ look }, i) => glyph(context, x + 17 * i, y, look));
  return marks.concat(freedMark(context, card.freedBy, card.w - 13, y + 5.5));
}

/** Number n of the call that freed; nothing for -1. */
function freedMark(context: Context, n: number, x: number, y: number): Mark[] {
  if (context.level < 3 || n < 0) return [];
  return callNumberMark(x, y, callNumber(n), hueOfCall(context, n), false, 6.5);
}

function slotLine(context: Context, card: Card, ghost: boolean): Mark[] {
  const { measure } = context;
  const marks: Mark[] = [];
  const near = context.level === 3;
  const y = card.h - 18;
  let x = textInset(card);
  const freed = near ? freedWidth(measure, card) : 0;
  const labels = near ? labelsThatFit(context, card, card.w - x - 8 - freed) : card.slots.map(() => "");
  if (!labels) return slotTotals(context, card);
  card.slots.forEach(({ look, freedBy }, i) => {
    const label = labels[i]!;
    marks.push(...glyph(context, x, y, look));
    x += SLOT_W + 3;
    if (label) {
      marks.push(text(x, y + 9.2, label, ghost ? "slotname goneword" : slotClass(look)));
      x += measure(label, slotClass(look)) + GAP;
    }
    if (freedBy >= 0 && card.freedBy < 0 && near) {
      marks.push(...freedMark(context, freedBy, x + 4, y + 5.5));
      x += 18;
    }
  });
  marks.push(...freedMark(context, card.freedBy, card.w - 14, y + 5.5));
  if (freed) marks.push(text(card.w - 24, y + 9.2, "freed", "slotname goneword", "end"));
  return marks;
}

/** Labels lose their bytes, then their names; nothing at all when even the glyphs do not fit. */
function labelsThatFit({ measure }: Context, { slots, freedBy }: Card, room: number): string[] | undefined {
  const inline = freedBy < 0 ? slots.filter((slot) => slot.freedBy >= 0).length * 18 : 0;
  return [slots.map(slotLabel), slots.map(({ name }) => name), slots.map(() => "")].find(
    (labels) => slotsWidth(measure, slots, labels) + inline - GAP <= room,
  );
}

/** `4 held`, `2 freed`: one glyph per state, for groups and for more slots than fit; and how much that is, where there is room. */
function slotTotals(context: Context, card: Card): Mark[] {
  const { measure, level } = context;
  const marks: Mark[] = [];
  const y = card.h - 18;
  let x = textInset(card);
  for (const state of [SLOT.held, SLOT.stale, SLOT.freed, SLOT.packed, SLOT.unknown]) {
    const count = card.counts[state]!;
    if (!count) continue;
    const look = SLOT_LOOKS[state]!;
    marks.push(...glyph(context, x, y, state === SLOT.held && allWouldBeFreed(context, card) ? "will" : look));
    x += SLOT_W + 3;
    if (level < 3) continue;
    const label = `${count} ${look}`;
    const width = measure(label, slotClass(look));
    if (x + width > card.w - 30) break;
    marks.push(text(x, y + 9.2, label, slotClass(look)));
    x += width + GAP;
  }
  const label = shortBytes(card.box.bytes);
  if (card.freedBy < 0 && level === 3 && card.box.bytes && x + measure(label, "note") + 4 < card.w - 8)
    marks.push(text(card.w - 8, y + 9.2, label, "note", "end"));
  return marks.concat(freedMark(context, card.freedBy, card.w - 14, y + 5.5));
}

function allWouldBeFreed({ graph, wouldFree }: Context, card: Card): boolean {
  if (wouldFree.size === 0) return false;
  for (const node of card.box.nodes) {
    for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) {
      if (graph.slotState[slot] === SLOT.held && !wouldFree.has(slot)) return false;
    }
  }
  return true;
}
