/** Cards and leaf badges as items, with their accessible names and data attributes. */

import { bowl, LEAF_H, leaf, path, shape } from "../../marks.ts";
import { shorten } from "../../measure.ts";
import { eachSlice, type Slices } from "../../slices.ts";
import { bytesText, count, join, leafLabel, listText, nodeLabel, nodeState, slotSentences } from "../../words.ts";
import { type Context, isIn, rootsOf, sized } from "../context.ts";
import { LazyItem, type Made, type Source } from "../lazy.ts";
import { type Free, type Rect, rectAt } from "../rects.ts";
import type { Card, Item, LeafPart } from "../types.ts";
import { BOWL, cardOf, leafNames, leavesAbove } from "./cards.ts";
import { bowlPlace, cardMarks, changeOf, slotPlaces } from "./marks.ts";

/** The data attributes of a node or group. `boxes`: the boxes that it is made of. */
export const facts = (
  { graph, shared, ghost }: Context,
  name: string,
  node: number,
  counts: readonly number[],
  boxes: readonly number[],
) => ({
  node: name,
  uid: String(graph.uid[node]),
  state: nodeState(counts),
  shared: String(boxes.some((b) => shared[b])),
  ghost: String(boxes.every((b) => ghost[b])),
});

/** One item for each box. `places`: of the cards; `bowls`: the boxes whose leaves are shown on the card itself. */
export function* cardItems(context: Context, places: Float64Array, bowls: ReadonlySet<number>): Slices<Item[]> {
  const { graph, main } = context;
  const { boxes } = context.folded;
  const source: Source = {
    places,
    context,
    key: (b) => boxes[b]!.key,
    role: (b) => (boxes[b]!.kind === "node" ? "node" : "group"),
    node: (b) => main[b]!,
    make(b): Made {
      const card = cardOf(context, b);
      const single = card.box.kind === "node";
      const name = single ? graph.names[graph.name[main[b]!]!]! : card.box.title;
      return {
        marks: cardMarks(context, card, b, bowls.has(b)),
        label: single ? nodeWords(context, card, b) : groupWords(context, card, b),
        data: facts(context, name, main[b]!, card.counts, [b]),
        slots: () => slotPlaces(context, card, bowls.has(b)),
      };
    },
  };
  const items: Item[] = [];
  yield* eachSlice(boxes.length, (b) => items.push(new LazyItem(source, b)));
  return items;
}

/** Names of the roots in a mask; roots of the same name with their iteration: `loss of iteration 0`. */
function rootNames(context: Context, mask: number): string[] {
  return rootsOf(context, mask).map(({ root, sub }) => join(" of ", root.path || "an unnamed root", sub));
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
  const changed = changeOf(context, card);
  return join(
    ", ",
    label,
    changed && `${changed} since the first moment`,
    would && `${count(would, "saved tensor")} would be freed`,
  );
}

function groupWords(context: Context, { box }: Card, b: number): string {
  const has = (uids: Iterable<number>) => [...uids].some((uid) => isIn(context, b, uid));
  return join(
    ", ",
    `${box.title}, ${count(box.count, "node")}`,
    box.subtitle,
    box.times > 1 && `${box.times} times`,
    context.ghost[b] && "gone",
    context.shared[b] && `shared by ${listText(rootNames(context, context.reach[b]!))}`,
    ...slotSentences(context.graph, box.nodes),
    box.bytes && `${bytesText(box.bytes)} held`,
    has(context.raised) && "raised inside",
    has(context.wouldRaise.keys()) && "would raise inside",
  );
}

// ---- Leaves -------------------------------------------------------------------------------------------------------

const LEAF_PITCH = LEAF_H + 4;

type Side = "above" | "right" | "left";

export interface Badges {
  items: Item[];
  /** Boxes whose leaves are shown by a bowl on the card itself. */
  inside: ReadonlySet<number>;
  /** The bowls on these cards. */
  onCards: Item[];
}

/** Badges of the leaves of all cards: above the card or beside it, or a bowl on the card where no place is free. */
export function* leafBadges(context: Context, cards: Float64Array, whole: Rect, free: Free): Slices<Badges> {
  const { graph, leaves, folded, level, pace } = context;
  const { compact, inner } = context.options;
  const items: Item[] = [];
  const onCards: Item[] = [];
  const inside = new Set<number>();
  if (level <= 1) return { items, inside, onCards };
  const places: number[] = [];
  const made: { b: number; parts: readonly LeafPart[]; side: Side | null }[] = [];
  const first = (i: number) => made[i]!.parts[0]!.nodes[0]!;
  const source: Source = {
    places,
    context,
    key: (i) => `leaf${folded.boxes[made[i]!.b]!.key}:${graph.uid[first(i)]}`,
    role: () => "leaf",
    node: first,
    make(i) {
      const { b, parts, side } = made[i]!;
      return leafMade(context, parts, cards[4 * b + 2]!, side);
    },
  };
  const add = (
    b: number,
    parts: readonly LeafPart[],
    side: Side | null,
    ...place: [number, number, number, number]
  ) => {
    places.push(...place);
    (side ? items : onCards).push(new LazyItem(source, made.push({ b, parts, side }) - 1));
  };
  yield* eachSlice(
    folded.boxes.length,
    (b) => {
      const parts = leaves[b]!;
      if (!parts.length) return;
      const at = rectAt(cards, b);
      const side = leavesAbove(context, b) ? "above" : !compact && !inner && sideFor(parts, at, whole, free);
      if (side) for (const part of parts) add(b, [part], side, at.x + part.x, at.y + part.y, part.w, LEAF_H);
      else {
        inside.add(b);
        if (level < 3) return;
        const place = bowlPlace(context, cardOf(context, b));
        add(b, parts, null, at.x + place.x, at.y + place.y, BOWL, 8);
      }
    },
    pace,
  );
  return { items, inside, onCards };
}

/** Places the badges of a card right of it, else left of it; null if neither side is free. */
function sideFor(parts: readonly LeafPart[], at: Rect, whole: Rect, free: Free): Side | null {
  const w = Math.max(...parts.map((part) => part.w));
  const h = parts.length * LEAF_PITCH - 4;
  const y = (at.h - h) / 2;
  const places = [at.w + 10, -10 - w].map((x) => ({ x: at.x + x, y: at.y + y, w, h }));
  const found = free.take(places.filter(({ x }, i) => !i || x >= whole.x));
  if (!found) return null;
  const right = found === places[0];
  parts.forEach((part, i) => {
    part.x = right ? at.w + 10 : -10 - part.w;
    part.y = y + i * LEAF_PITCH;
  });
  return right ? "right" : "left";
}

/** A badge; if `side` is null, the bowl for all leaves of a card. `wide`: width of the card in px. */
function leafMade(context: Context, parts: readonly LeafPart[], wide: number, side: Side | null): Made {
  const { graph, nodeReach } = context;
  const nodes = parts.flatMap((part) => part.nodes);
  const first = nodes[0]!;
  const names = leafNames(graph, nodes);
  const hasGrad = nodes.every((node) => graph.leaves.get(node)?.hasGrad);
  const gone = nodes.every((node) => graph.ghost[node]);
  const type = nodes.length === 1 ? (graph.leaves.get(first)?.type ?? "") : "";
  const mask = nodes.reduce((all, node) => all | nodeReach[node]!, 0);
  const roots = rootNames(context, mask);
  const [{ x, y, w, text }] = parts as [LeafPart];
  const look = sized(context, "leafname");
  // Below level 3 letters are larger: without the module, or as a number alone, a name may still be whole.
  const shorter = [text, text.split(": ").at(-1)!, /^\d+(?= leaves)/.exec(text)?.[0] ?? text];
  const whole = shorter.find((words) => context.measure(words, look) <= w - 20);
  const name = whole ?? shorten(text, w - 20, look, context.measure);
  const line = {
    above: path`M${Math.min(w / 2, wide - 12 - x)} ${LEAF_H}V${-y}`,
    right: path`M0 ${LEAF_H / 2}H${wide - x}`,
    left: path`M${w} ${LEAF_H / 2}H${-x}`,
  };
  const marks = side
    ? [shape(line[side], "leafline"), ...leaf(0, 0, name, w, hasGrad, gone, look, name !== text)]
    : [bowl(1, 1, hasGrad)];
  return {
    marks,
    label: leafLabel({ names, type, hasGrad, gone, roots, place: graph.places[graph.place[first]!] }),
    data: {
      node: "AccumulateGrad",
      uid: String(graph.uid[first]),
      state: "none",
      shared: String(roots.length > 1),
      ghost: String(gone),
    },
  };
}
