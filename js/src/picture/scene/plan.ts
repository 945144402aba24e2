/** The size of each box in px and the places inside it; made once, used by the layout and by the drawing. */

import { bytes, doubles, ints } from "../arrays.ts";
import { type Box, type Folded, seedSlices } from "../fold/index.ts";
import type { LayoutInput, LayoutOutput } from "../layout/index.ts";
import { rowOf } from "../layout/types.ts";
import type { Graph } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { type Border, findBorder } from "./areas.ts";
import { cardOf, leafRoom } from "./cards/cards.ts";
import { type Context, contextSlices, descend } from "./context.ts";
import { railFits } from "./rail.ts";
import { type Flag, makeFlags, PILL_H } from "./roots.ts";
import { type TagText, tagTexts } from "./tags.ts";
import type { SceneOptions } from "./types.ts";
import { linesIn } from "./wires/wires.ts";

export interface Plan {
  context: Context;
  flags: Flag[];
  tags: Map<number, TagText>;
  border: Border | null;
  /** Pairs of laid-out boxes, from the lower to the upper one: first the edges of the fold, then one for each flag. */
  edges: Int32Array;
  /** Size of each laid-out box in px, with the room around it. First the boxes of the fold, then the flags. */
  width: Float32Array;
  height: Float32Array;
  /** Size of its visible card or pill in px; `top`: distance from the top of the room to the top of the card. */
  cardWidth: Float64Array;
  cardHeight: Float64Array;
  top: Float32Array;
}

const NODE_GAP = 12;
const ROW_GAP = 16;
const DENSE_ROW_GAP = 8;
const COMPACT_ROW_GAP = 6;
/** Room below a card, beyond the row gap: for a tag, and for the border with its words. */
const TAG_ROOM = 14;
const BORDER_ROOM = 42;
const COMPACT_BORDER_ROOM = 22;
/** With more flags than this, boxes have no lanes: the layout is free to order them. */
const MAX_LANES = 16;

export function* planSlices(graph: Graph, folded: Folded, options: SceneOptions): Slices<Plan> {
  const context = yield* contextSlices(graph, folded, options);
  context.rail = yield* railFits(context);
  const flags = makeFlags(context);
  yield;
  const boxes = folded.boxes.length;
  const n = boxes + flags.length;
  const ends = flags.flatMap(({ view }, f) => [boxes + f, folded.boxOf[view.root.node]!]);
  const edges = ints(folded.edges.length + ends.length);
  edges.set(folded.edges);
  edges.set(ends, folded.edges.length);
  const plan: Plan = {
    context,
    flags,
    tags: yield* tagTexts(context),
    border: findBorder(context),
    edges,
    width: new Float32Array(n),
    height: new Float32Array(n),
    cardWidth: doubles(n),
    cardHeight: doubles(n),
    top: new Float32Array(n),
  };
  yield;
  yield* sizeBoxes(plan);
  flags.forEach((flag, f) => {
    plan.width[boxes + f] = flag.w;
    plan.height[boxes + f] = flag.h;
    plan.cardWidth[boxes + f] = flag.pill;
    plan.cardHeight[boxes + f] = PILL_H;
  });
  return plan;
}

/** Sets the sizes. Room above and below is the same for all boxes of one depth, so that cards of a row stand level. */
function* sizeBoxes({ context, tags, border, width, height, cardWidth, cardHeight, top }: Plan): Slices<void> {
  const { folded, below, pace } = context;
  const { compact } = context.options;
  const n = folded.boxes.length;
  // Longest path from the inputs, as in the layout's ranks.
  const depth = ints(n);
  yield* descend(below, (from, to) => (depth[to] = Math.max(depth[to]!, depth[from]! + 1)));
  // Cards of a picture with one lane may be wide. It stays so as long as no two stand side by side.
  context.oneLane = new Set(depth).size === n;
  const over = doubles(n);
  const under = doubles(n);
  yield* eachSlice(
    n,
    (b) => {
      const card = cardOf(context, b);
      const leaves = leafRoom(card);
      const tag = tags.get(b);
      const hangs = tag && (tag.carrier || rowOf(below, b).length > 0);
      const onBorder = tag?.carrier && border?.old.includes(b);
      const room = onBorder ? (compact ? COMPACT_BORDER_ROOM : BORDER_ROOM) : hangs ? TAG_ROOM : 0;
      const edges = lowerEdges(card.box.kind);
      const d = depth[b]!;
      over[d] = Math.max(over[d]!, leaves.top);
      under[d] = Math.max(under[d]!, room + edges);
      width[b] = card.w + 2 * leaves.side;
      cardWidth[b] = card.w;
      cardHeight[b] = card.h;
    },
    pace,
  );
  yield* eachSlice(
    n,
    (b) => {
      top[b] = over[depth[b]!]!;
      height[b] = top[b]! + cardHeight[b]! + under[depth[b]!]!;
    },
    4096,
  );
}

const rowGap = ({ compact, dense }: SceneOptions) => (compact ? COMPACT_ROW_GAP : dense ? DENSE_ROW_GAP : ROW_GAP);

/** Height in px of the second and third edges of groups and repeats below the card. */
export function lowerEdges(kind: Box["kind"]): number {
  return kind === "node" ? 0 : kind === "repeat" ? 8 : 4;
}

/** The picture on screen. The next layout starts from it, so that nothing jumps. */
export interface Earlier {
  plan: Plan;
  placed: LayoutOutput;
}

export function* inputSlices(plan: Plan, earlier?: Earlier | null): Slices<LayoutInput> {
  const { context, flags, width, height, edges } = plan;
  const n = width.length;
  const input: LayoutInput = {
    n,
    width,
    height,
    edges,
    lines: linesOf(plan),
    foot: height.map((h, i) => {
      const box = context.folded.boxes[i];
      return box ? h - plan.top[i]! - plan.cardHeight[i]! - lowerEdges(box.kind) : 0;
    }),
    lane: lanes(plan),
    ranksep: rowGap(context.options),
    nodesep: NODE_GAP,
    most: context.options.widest,
  };
  if (earlier) {
    const { plan: old, placed } = earlier;
    const seeds = yield* seedSlices(old.context.folded, placed, context.folded);
    const x = new Float32Array(n).fill(Number.NaN);
    const y = x.slice();
    x.set(seeds.x);
    y.set(seeds.y);
    // A root's id is valid for one snapshot only.
    const keyOf = ({ graph }: Context, { view: { root } }: Flag) => `${graph.uid[root.node]} ${root.path}`;
    const before = new Map(old.flags.map((flag, f) => [keyOf(old.context, flag), old.context.reach.length + f]));
    flags.forEach((flag, f) => {
      const at = before.get(keyOf(context, flag));
      if (at === undefined) return;
      x[context.reach.length + f] = placed.x[at]!;
      y[context.reach.length + f] = placed.y[at]!;
    });
    input.previous = { x, y };
  }
  return input;
}

/** Number of lines in each wire. That of a flag has one. */
function linesOf({ context, edges }: Plan): Uint8Array {
  const lines = bytes(edges.length >> 1).fill(1);
  context.folded.edges.forEach((from, i) => {
    if (i % 2 === 0) lines[i >> 1] = Math.max(1, linesIn(context.reach[from]!));
  });
  return lines;
}

/**
 * Lane of each box, NaN: free. Lanes of gone roots are left, those of live roots right, each in the order of the roots.
 * A box that one root reaches is in the lane of that root. A box that a gone root reaches stays in the lane of the gone
 * root. Other shared boxes are free.
 */
function lanes({ context, flags, width }: Plan): Float32Array {
  const lane = new Float32Array(width.length).fill(Number.NaN);
  if (flags.length > MAX_LANES) return lane;
  const order = [...context.roots].sort((a, b) => Number(b.gone) - Number(a.gone) || a.root.order - b.root.order);
  const laneOf = (mask: number) => {
    const first = order.findIndex(({ bit }) => mask & bit);
    return first < 0 || (mask & (mask - 1) && !order[first]!.gone) ? Number.NaN : first;
  };
  context.reach.forEach((mask, b) => {
    lane[b] = laneOf(mask);
  });
  flags.forEach(({ view }, f) => {
    lane[context.reach.length + f] = laneOf(view.bit);
  });
  return lane;
}
