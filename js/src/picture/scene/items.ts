/** Cards and leaf badges as items: what they are called, and what is known of them as data attributes. */

import { bowl, LEAF_H, leaf, path, shape } from "../marks.ts";
import type { Item, Mark } from "../scene.ts";
import { bytesText, countText, leafLabel, listText, nodeLabel, nodeState, slotSentences } from "../words.ts";
import { bowlPlace, cardMarks } from "./cardmarks.ts";
import { BOWL, type Card, type LeafPart } from "./cards.ts";
import type { Context } from "./context.ts";
import { rootsOf } from "./context.ts";
import { lazyItem } from "./lazy.ts";
import type { Free, Rect } from "./rects.ts";

export function cardItem(context: Context, card: Card, b: number, at: Rect, bowl: boolean): Item {
  const { graph } = context;
  const node = context.main[b]!;
  const single = card.box.kind === "node";
  const uid = graph.uid[node]!;
  return lazyItem({ key: card.box.key, role: single ? "node" : "group", uid, index: node, ...at }, () => ({
    ...cardMarks(context, card, b, bowl),
    label: single ? nodeWords(context, card, b) : groupWords(context, card, b),
    data: {
      node: single ? graph.names[graph.name[node]!]! : card.box.title,
      uid: String(uid),
      state: nodeState(card.counts),
      shared: String(context.shared[b] === 1),
      ghost: String(context.ghost[b] === 1),
    },
  }));
}

/** `loss` of iteration 0 and of iteration 1 need the iteration to be told apart. */
function rootNames(context: Context, mask: number): string[] {
  return rootsOf(context, mask).map(({ root, sub }) =>
    [root.path || "an unnamed root", sub].filter(Boolean).join(" of "),
  );
}

function nodeWords(context: Context, card: Card, b: number): string {
  const { graph } = context;
  const node = context.main[b]!;
  const uid = graph.uid[node]!;
  const flagged = context.roots.filter(({ root, gone }) => root.node === node && !gone).map(({ root }) => root.path);
  const label = nodeLabel(graph, node, {
    names: [...new Set([...flagged, ...(context.names.get(node) ?? [])])].filter(Boolean),
    roots: rootNames(context, context.reach[b]!),
    raised: context.raised.has(uid),
    wouldRaise: context.wouldRaise.has(uid),
  });
  const would = card.slots.filter((slot) => slot.look === "will").length;
  return would ? `${label}, ${countText(would, "saved tensor")} would be freed` : label;
}

function groupWords(context: Context, card: Card, b: number): string {
  const { graph } = context;
  const { box } = card;
  const parts = [`${box.title}, ${countText(box.count, "node")}`];
  if (box.subtitle) parts.push(box.subtitle);
  if (box.times > 1) parts.push(`${box.times} times`);
  if (context.ghost[b]) parts.push("gone");
  const roots = rootNames(context, context.reach[b]!);
  if (context.shared[b]) parts.push(`shared by ${listText(roots)}`);
  parts.push(...slotSentences(graph, box.nodes));
  if (box.bytes) parts.push(`${bytesText(box.bytes)} held`);
  const has = (uids: { has(uid: number): boolean }) => Array.from(box.nodes).some((node) => uids.has(graph.uid[node]!));
  if (has(context.raised)) parts.push("raised inside");
  if (has(context.wouldRaise)) parts.push("would raise inside");
  return parts.join(", ");
}

export interface Badges {
  items: Item[];
  /** Boxes whose leaves are shown by a bowl on the card itself, and those bowls. */
  inside: ReadonlySet<number>;
  onCards: ReadonlySet<Item>;
}

/** Badges of the leaves that the cards hand gradients to: above, beside, or a bowl on the card where all is taken. */
export function leafBadges(
  context: Context,
  cards: readonly Card[],
  rects: readonly Rect[],
  whole: Rect,
  free: Free,
): Badges {
  const items: Item[] = [];
  const inside = new Set<number>();
  const onCards = new Set<Item>();
  if (context.level <= 1) return { items, inside, onCards };
  cards.forEach((card, b) => {
    const at = rects[b]!;
    if (card.leaves.length === 0) return;
    if (card.leavesAbove) for (const part of card.leaves) items.push(badge(context, card, part, at, "above"));
    else if (context.options.compact || !beside(context, card, at, whole, free, items)) {
      inside.add(b);
      if (context.level === 3) onCards.add(bowlOnCard(context, card, at));
    }
  });
  return { items, inside, onCards };
}

const LEAF_PITCH = LEAF_H + 4;

/** Right of the card, else left of it; false where neither side is free. */
function beside(context: Context, card: Card, at: Rect, whole: Rect, free: Free, items: Item[]): boolean {
  const w = Math.max(...card.leaves.map((part) => part.w));
  const h = card.leaves.length * LEAF_PITCH - 4;
  const y = (card.h - h) / 2;
  for (const side of ["right", "left"] as const) {
    const x = side === "right" ? card.w + 10 : -10 - w;
    const area = { x: at.x + x, y: at.y + y, w, h };
    if ((side === "left" && area.x < whole.x) || !free.has(area)) continue;
    free.add(area);
    card.leaves.forEach((part, i) => {
      part.x = side === "right" ? x : -10 - part.w;
      part.y = y + i * LEAF_PITCH;
      items.push(badge(context, card, part, at, side));
    });
    return true;
  }
  return false;
}

function badge(context: Context, card: Card, part: LeafPart, at: Rect, side: "above" | "right" | "left"): Item {
  const gone = part.nodes.every((node) => context.graph.ghost[node] === 1);
  const line =
    side === "above"
      ? path`M${Math.min(part.w / 2, card.w - 12 - part.x)} ${LEAF_H}V${-part.y}`
      : side === "right"
        ? path`M0 ${LEAF_H / 2}H${card.w - part.x}`
        : path`M${part.w} ${LEAF_H / 2}H${-part.x}`;
  const area = { x: at.x + part.x, y: at.y + part.y, w: part.w, h: LEAF_H };
  return leafItem(context, card, [part], area, () => [
    shape(line, "leafline"),
    ...leaf(0, 0, context.level === 3 ? part.text : "", part.w, part.hasGrad, gone),
  ]);
}

function bowlOnCard(context: Context, card: Card, at: Rect): Item {
  const place = bowlPlace(context, card);
  const area = { x: at.x + place.x, y: at.y + place.y, w: BOWL, h: 8 };
  const hasGrad = card.leaves.every((part) => part.hasGrad);
  return leafItem(context, card, card.leaves, area, () => [bowl(1, 1, hasGrad)]);
}

function leafItem(context: Context, card: Card, parts: readonly LeafPart[], area: Rect, marks: () => Mark[]): Item {
  const { graph } = context;
  const first = parts[0]!.nodes[0]!;
  const uid = graph.uid[first]!;
  return lazyItem({ key: `leaf${card.box.key}:${uid}`, role: "leaf", uid, index: first, ...area }, () => {
    const names = parts.flatMap((part) => part.names);
    const nodes = parts.flatMap((part) => part.nodes);
    const hasGrad = parts.every((part) => part.hasGrad);
    const gone = nodes.every((node) => graph.ghost[node] === 1);
    const type = nodes.length === 1 ? (graph.leaves.get(first)?.type ?? "") : "";
    const roots = rootNames(
      context,
      nodes.reduce((mask, node) => mask | context.nodeReach[node]!, 0),
    );
    return {
      marks: marks(),
      label: leafLabel({ names, type, hasGrad, gone, roots, place: graph.places[graph.place[first]!] }),
      data: {
        node: "AccumulateGrad",
        uid: String(uid),
        state: "none",
        shared: String(roots.length > 1),
        ghost: String(gone),
        leaf: names.join(", "),
        grad: String(hasGrad),
      },
    };
  });
}
