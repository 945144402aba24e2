/** Cards and leaf badges as items: what they are called, and what is known of them as data attributes. */

import { LEAF_H, leaf, path, shape } from "../marks.ts";
import { shorten } from "../measure.ts";
import type { Item } from "../scene.ts";
import { bytesText, countText, leafLabel, listText, nodeLabel, nodeState, slotSentences } from "../words.ts";
import { type Card, cardMarks } from "./cards.ts";
import type { Context } from "./context.ts";
import { rootsOf } from "./context.ts";
import type { Rect } from "./wires.ts";

export function cardItem(context: Context, card: Card, b: number, at: Rect): Item {
  const { graph } = context;
  const node = context.main[b]!;
  const { marks, slots } = cardMarks(context, card, b);
  const single = card.box.kind === "node";
  const roots = rootsOf(context, context.reach[b]!);
  return {
    key: card.box.key,
    role: single ? "node" : "group",
    uid: graph.uid[node]!,
    index: node,
    ...at,
    marks,
    label: single ? nodeWords(context, card, b) : groupWords(context, card, b),
    data: {
      node: single ? graph.names[graph.name[node]!]! : card.box.title,
      uid: String(graph.uid[node]!),
      state: nodeState(card.counts),
      shared: String(roots.length > 1),
      ghost: String(context.ghost[b] === 1),
    },
    slots,
  };
}

/** `loss` of iteration 0 and of iteration 1 need the iteration to be told apart. */
function rootNames(context: Context, b: number): string[] {
  return rootsOf(context, context.reach[b]!).map(({ root, sub }) =>
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
    roots: rootNames(context, b),
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
  const roots = rootNames(context, b);
  if (roots.length > 1) parts.push(`shared by ${listText(roots)}`);
  parts.push(...slotSentences(graph, box.nodes));
  if (box.bytes) parts.push(`${bytesText(box.bytes)} held`);
  const has = (uids: { has(uid: number): boolean }) => Array.from(box.nodes).some((node) => uids.has(graph.uid[node]!));
  if (has(context.raised)) parts.push("raised inside");
  if (has(context.wouldRaise)) parts.push("would raise inside");
  return parts.join(", ");
}

/** Badges of the leaves that a card hands gradients to, each with its line. */
export function leafItems(context: Context, card: Card, at: Rect): Item[] {
  if (context.level <= 1) return [];
  const { graph, options } = context;
  return card.leaves.map((part) => {
    const gone = part.nodes.every((node) => graph.ghost[node] === 1);
    const line = card.leavesAbove
      ? path`M${Math.min(part.w / 2, card.w - 12 - part.x)} ${LEAF_H}V${-part.y}`
      : path`M0 ${LEAF_H / 2}H${card.w - part.x}`;
    const label = context.level === 3 ? shorten(part.text, part.w - 28 + 0.5, "leafname", options.measure) : "";
    const first = part.nodes[0]!;
    return {
      key: `leaf${card.box.key}:${graph.uid[first]}`,
      role: "leaf" as const,
      uid: graph.uid[first]!,
      index: first,
      x: at.x + part.x,
      y: at.y + part.y,
      w: part.w,
      h: LEAF_H,
      marks: [shape(line, "leafline"), ...leaf(0, 0, label, part.w, part.hasGrad, gone)],
      label: leafLabel(part.names, part.nodes.length === 1 ? (graph.leaves.get(first)?.type ?? "") : "", part.hasGrad),
      data: { leaf: part.names.join(", "), grad: String(part.hasGrad) },
    };
  });
}
