/** The signs of a step-through over the picture: what has run, and what runs now. */

import { boxOfUid, type Folded } from "../fold/index.ts";
import { LEAF_H, octagon, octagonOpen, path, rect, shape, text } from "../marks.ts";
import type { Graph } from "../model.ts";
import { leavesAbove } from "./cards/cards.ts";
import { type Context, sized } from "./context.ts";
import type { Item } from "./types.ts";

const PILL_H = 18;
/** Where the picture is small, and letters are larger. */
const FAR_PILL_H = 26;

export interface Walking {
  /** uids of the nodes that have run so far, in order; the last one runs now, unless the call has ended. */
  ran: readonly number[];
  runs: boolean;
  /** "2 of 3" */
  position: string;
  /** The last one raises (or would), or whether it does is unknown; "": neither. */
  stops: "" | "raises" | "unknown";
  past: boolean;
}

interface Drawn {
  graph: Graph;
  folded: Folded;
  context: Context;
  byKey: ReadonlyMap<string, Item>;
}

/** Keys of the items that show a node: its card, or the badges of its leaf. */
export function keysOf({ folded, context, graph }: Pick<Drawn, "folded" | "context" | "graph">, uid: number): string[] {
  const node = graph.indexOf(uid);
  const badges = graph.leaves.has(node) ? (badgesOf(context).get(node) ?? []) : [];
  if (badges.length > 0) return badges;
  const box = folded.boxes[boxOfUid({ graph, folded }, uid)];
  return box ? [box.key] : [];
}

const badges = new WeakMap<Context, Map<number, string[]>>();

/** Leaf -> keys of its badges, one for each card that uses it. */
function badgesOf(context: Context): Map<number, string[]> {
  let found = badges.get(context);
  if (found) return found;
  found = new Map();
  context.leaves.forEach((parts, b) => {
    const { key } = context.folded.boxes[b]!;
    for (const part of parts)
      for (const node of part.nodes) {
        const list = found!.get(node) ?? [];
        found!.set(node, [...list, `leaf${key}:${context.graph.uid[part.nodes[0]!]}`]);
      }
  });
  badges.set(context, found);
  return found;
}

/** All signs: a thick lower edge on what has run (of a group: as far as it has), a frame around what runs now. */
export function walkingSigns(drawn: Drawn, walking: Walking): Item[] {
  const { folded, byKey } = drawn;
  const share = new Map<string, number>();
  for (const uid of walking.ran) for (const key of keysOf(drawn, uid)) share.set(key, (share.get(key) ?? 0) + 1);
  const counts = new Map(folded.boxes.map(({ key, nodes }) => [key, nodes.length]));
  for (const keys of badgesOf(drawn.context).values())
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const items: Item[] = [];
  for (const [key, ran] of share) {
    const card = byKey.get(key);
    if (card) items.push(edge(card, Math.min(1, ran / (counts.get(key) ?? 1))));
  }
  const now = walking.runs ? walking.ran.at(-1) : undefined;
  const cards = now === undefined ? [] : keysOf(drawn, now).flatMap((key) => byKey.get(key) ?? []);
  // A leaf has a badge at each of its users. The words stand at the largest: the others may be on a card.
  const [widest] = [...cards].sort((a, b) => b.w - a.w);
  for (const card of cards) items.push(...frame(drawn.context, card, card === widest ? walking : null));
  return items;
}

function edge({ key, x, y, w, h, role }: Item, share: number): Item {
  const inset = role === "leaf" ? LEAF_H / 2 : 6;
  const d = path`M${inset} ${h}H${inset + (w - 2 * inset) * share}`;
  return { key: `ran ${key}`, role: "note", x, y, w, h, marks: [shape(d, "ran")] };
}

/** `walking`: null where the words stand somewhere else. */
function frame(context: Context, card: Item, walking: Walking | null): Item[] {
  const { x, y, w, h, key } = card;
  const round = card.role === "leaf" ? h / 2 + 2 : 8;
  const marks = [rect(-2, -2, w + 4, h + 4, "running", round)];
  const around: Item = { key: `now ${key}`, role: "note", x, y, w, h, marks };
  if (!walking) return [around];
  const { stops, past, position } = walking;
  const words = {
    "": `▲ ${past ? "running" : "would run"} now: ${position}`,
    raises: `${past ? "raised" : "would raise"}: ${position}`,
    unknown: `? not known: ${position}`,
  }[stops];
  const look = sized(context, "order");
  const high = context.level === 3 ? PILL_H : FAR_PILL_H;
  const wide = context.measure(words, look) + 16;
  // Above the card; beside it if its leaves stand above.
  const b = context.folded.boxes.findIndex((box) => box.key === key);
  const beside = b >= 0 && context.leaves[b]!.length > 0 && leavesAbove(context, b);
  const [left, top] = beside ? [w + 10, (h - high) / 2] : [Math.min(0, w - wide), -high - 3];
  if (stops === "raises") marks.push(...(past ? octagon : octagonOpen)(w, 0));
  const area = { x: x + left, y: y + top, w: wide, h: high };
  const said = text(8, high / 2, words, stops === "raises" ? `${look} failword` : look);
  return [
    around,
    { key: `says ${key}`, role: "note", ...area, marks: [rect(0, 0, wide, high, "said", high / 2), said] },
  ];
}
