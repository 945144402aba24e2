/**
 * From a graph, its folding and its layout to a list of things to draw. Pure: no DOM, no theme.
 *
 * Three steps, so that a page can run the middle one in slices:
 *
 *     const plan = planScene(graph, fold(graph, state), options);   // how large is every box
 *     const placed = layout(layoutInput(plan, previous));           // where does it stand
 *     const scene = buildScene(plan, placed);                       // what is drawn
 */

import type { Box, Folded } from "./fold/index.ts";
import type { LayoutInput, LayoutOutput } from "./layout/index.ts";
import type { Measure } from "./measure.ts";
import type { Graph } from "./model.ts";
import {
  type Border,
  type DrawnBorder,
  drawBorder,
  findBorder,
  HULL_TOP,
  hullItems,
  openHulls,
  openMembers,
  sharedBoxes,
  writeBorder,
} from "./scene/areas.ts";
import { type Card, leafRoom, makeCard } from "./scene/cards.ts";
import { type Context, makeContext, type RootView } from "./scene/context.ts";
import { cardItem, leafBadges } from "./scene/items.ts";
import { RAIL_WIDTH, railFits, railItems } from "./scene/rail.ts";
import { Free, type Rect, unite } from "./scene/rects.ts";
import { drawFlag, type Flag, makeFlags } from "./scene/roots.ts";
import { settle } from "./scene/settle.ts";
import { octagonItems, orderNote, placeTag, type TagText, tagText } from "./scene/tags.ts";
import { type Course, type Edge, passages, wireCourses, wireItem } from "./scene/wires.ts";
import { mapSlices, runSlices, type Slices } from "./slices.ts";

/** One drawn shape, relative to its item. `c`: class names of tokens.ts, separated by spaces. */
export type Mark =
  | { t: "rect"; x: number; y: number; w: number; h: number; r?: number; c: string }
  | { t: "path"; d: string; c: string }
  | { t: "circle"; x: number; y: number; r: number; c: string }
  | {
      t: "text";
      x: number;
      y: number;
      /** The whole text. */
      s: string;
      c: string;
      anchor?: "start" | "middle" | "end";
      /** Parts in a style of their own; together they are `s`. Each `c` is added to the classes of the mark. */
      runs?: { s: string; c: string }[];
      /** Read upwards, turned about x, y. */
      turned?: boolean;
    };

export type Role =
  | "hull"
  | "boundary"
  | "wire"
  | "rail"
  | "leaf"
  | "node"
  | "group"
  | "open"
  | "root"
  | "note"
  | "tag"
  | "octagon";

/** A backward button under a live root, to be placed over the drawing: x, y are relative to the item. */
export interface ButtonBox {
  verb: "backward" | "retain";
  /** What stands on it: `backward()`, `retain_graph`. */
  text: string;
  /** Its accessible name: `loss.backward()`, `loss.backward(retain_graph=True)`. */
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

/** A saved tensor on a card: where it stands (relative to the item) and its position in the graph's slot columns. */
export interface SlotBox {
  slot: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Something drawn, and what a pointer, a key or a screen reader can do with it. */
export interface Item {
  /** Stable across scenes: `n<uid>`, a group's key, `root<id>`, ... */
  key: string;
  role: Role;
  /** Of the node; of the node on which a tag, a leaf or an octagon sits. */
  uid?: number;
  /** Position of that node in the graph's columns. */
  index?: number;
  /** Root id, for role "root" and for wires of one root. */
  root?: number;
  x: number;
  y: number;
  w: number;
  h: number;
  marks: Mark[];
  /** Accessible name. */
  label?: string;
  /** Attributes without their "data-". */
  data?: Record<string, string>;
  buttons?: ButtonBox[];
  slots?: SlotBox[];
}

export interface Scene {
  /** Top left corner; 0, 0 unless the layout was held at earlier places. */
  left: number;
  top: number;
  width: number;
  height: number;
  /** In drawing order. */
  items: Item[];
}

/** What a backward call would do, to be drawn over what is. */
export interface ForecastOverlay {
  /** uids in engine order. */
  executes: readonly number[];
  /** [uid, position of the saved tensor within its node]. */
  frees: readonly (readonly [number, number])[];
  failsAt: number | null;
  /** Beside the dashed octagon; "would raise" by default. */
  note?: string;
  /** Root id of the button that asked. */
  root?: number;
}

export interface SceneOptions {
  measure: Measure;
  /** At which scale the scene will be looked at: picks the level of detail. Default 1. */
  scale?: number;
  /** One-line cards. */
  compact?: boolean;
  /** Leave room for the two buttons under each live root. */
  buttons?: boolean;
  /** False: never draw the code rail. */
  rail?: boolean;
  /** Keys of items. */
  selected?: string | null;
  focus?: string | null;
  /** uids that a search found, and the one it stands on; the rest is dimmed. */
  hits?: ReadonlySet<number> | null;
  hit?: number | null;
  /** uid of the node that a step-through stands on. */
  running?: number | null;
  forecast?: ForecastOverlay | null;
  /** Root id: the lines of the others are dimmed. */
  onlyRoot?: number | null;
}

/** How many px a box needs and what belongs where inside; made once, used by the layout and by the drawing. */
export interface Plan {
  graph: Graph;
  folded: Folded;
  options: SceneOptions;
  /** Keys of the laid-out boxes: those of `folded`, then one for each root's flag. */
  keys: string[];
  width: Float32Array;
  height: Float32Array;
  /** For `buildScene` alone. */
  inside: Inside;
}

interface Inside {
  context: Context;
  cards: Card[];
  flags: Flag[];
  tags: (TagText | null)[];
  /** Height above each card within its box. */
  top: Float32Array;
  /** Laid out without regard to earlier places. */
  fresh: boolean;
  edges: Edge[];
  border: Border | null;
  rail: boolean;
}

const NODE_GAP = 12;
const ROW_GAP = 16;
const MARGIN = 12;
const HULL_SIDE = 10;
/** Room that a tag needs below its card, beyond the row gap; and that the border needs with its words. */
const TAG_ROOM = 14;
const BORDER_ROOM = 42;
const COMPACT_BORDER_ROOM = 22;
const COMPACT_ROW_GAP = 6;
/** Room for the name of an open group above its first boxes, and for its frame below the last ones. */
const NAME_ROOM = 24;
const FRAME_ROOM = 8;
/** More roots than this, and lanes are left to the layout. */
const MAX_LANES = 16;

export function planScene(graph: Graph, folded: Folded, options: SceneOptions): Plan {
  return runSlices(planSlices(graph, folded, options));
}

/** The same in slices. */
export function* planSlices(graph: Graph, folded: Folded, options: SceneOptions): Slices<Plan> {
  const context = makeContext(graph, folded, options);
  yield;
  const rail = railFits(context);
  const cards = yield* mapSlices(folded.boxes, (_box, b) => makeCard(context, b, !rail));
  const tags = yield* mapSlices(folded.boxes, (_box, b) => tagText(context, b));
  const flags = makeFlags(context);
  const border = findBorder(context);
  const n = cards.length + flags.length;
  const plan: Plan = {
    graph,
    folded,
    options,
    keys: [...folded.boxes.map((box) => box.key), ...flags.map((flag) => `root${flag.view.root.id}`)],
    width: new Float32Array(n),
    height: new Float32Array(n),
    inside: {
      context,
      cards,
      flags,
      tags,
      top: new Float32Array(n),
      fresh: false,
      edges: edgesOf(context, flags),
      border,
      rail,
    },
  };
  const rows = rowRoom(context, cards, tags, border);
  cards.forEach((card, b) => {
    const { top, bottom } = rows[b]!;
    plan.inside.top[b] = top;
    plan.width[b] = card.w + 2 * leafRoom(card).side;
    plan.height[b] = top + card.h + bottom;
  });
  flags.forEach((flag, f) => {
    plan.width[cards.length + f] = flag.w;
    plan.height[cards.length + f] = flag.h;
  });
  return plan;
}

/** Room above and below the cards: the same for all boxes of one depth, so that cards of a row stand level. */
function rowRoom(
  context: Context,
  cards: readonly Card[],
  tags: readonly (TagText | null)[],
  border: Border | null,
): { top: number; bottom: number }[] {
  const rows: { top: number; bottom: number }[] = [];
  const borderRoom = context.options.compact ? COMPACT_BORDER_ROOM : BORDER_ROOM;
  const groups = openMembers(context);
  const named = new Set(groups.flatMap(({ boxes }) => endsOf(boxes, context.above)));
  const last = new Set(groups.flatMap(({ boxes }) => endsOf(boxes, context.below)));
  return depths(context).map((depth, b) => {
    rows[depth] ??= { top: 0, bottom: 0 };
    const tag = tags[b];
    const hangs = tag && (tag.carrier || context.below[b]!.length > 0);
    const bottom = tag?.carrier && border?.old.includes(b) ? borderRoom : hangs ? TAG_ROOM : 0;
    const name = named.has(b) ? NAME_ROOM : 0;
    rows[depth].top = Math.max(rows[depth].top, leafRoom(cards[b]!).top + name);
    const edges = (context.options.compact ? 0 : lowerEdges(cards[b]!.box.kind)) + (last.has(b) ? FRAME_ROOM : 0);
    rows[depth].bottom = Math.max(rows[depth].bottom, bottom + edges);
    return rows[depth];
  });
}

/** Those with nothing of their own group above (below) them. */
function endsOf(boxes: readonly number[], beyond: readonly number[][]): number[] {
  const inside = new Set(boxes);
  return boxes.filter((b) => !beyond[b]!.some((other) => inside.has(other)));
}

/** Longest way from the inputs, as the layout ranks. */
function depths(context: Context): number[] {
  const { above, below } = context;
  const depth = above.map(() => 0);
  const missing = above.map((list) => list.length);
  const ready = missing.flatMap((count, b) => (count === 0 ? [b] : []));
  while (ready.length) {
    const b = ready.pop()!;
    for (const low of below[b]!) {
      depth[low] = Math.max(depth[low]!, depth[b]! + 1);
      if (--missing[low]! === 0) ready.push(low);
    }
  }
  return depth;
}

function edgesOf(context: Context, flags: readonly Flag[]): Edge[] {
  const { folded } = context;
  const edges: Edge[] = [];
  for (let e = 0; e + 1 < folded.edges.length; e += 2) {
    edges.push({ from: folded.edges[e]!, to: folded.edges[e + 1]!, flag: null });
  }
  flags.forEach(({ view }, f) => {
    const box = folded.boxOf[view.root.node]!;
    if (box >= 0) edges.push({ from: folded.boxes.length + f, to: box, flag: view });
  });
  return edges;
}

/** `previous`: centres by key, from `positions` of the last layout, so that nothing jumps. */
export function layoutInput(plan: Plan, previous?: ReadonlyMap<string, readonly [number, number]>): LayoutInput {
  const { context, edges, flags } = plan.inside;
  const n = plan.keys.length;
  plan.inside.fresh = previous === undefined;
  const lane = new Int32Array(n).fill(-1);
  if (flags.length <= MAX_LANES) {
    const order = laneOrder(context);
    context.reach.forEach((mask, b) => {
      lane[b] = laneOf(order, mask);
    });
    flags.forEach(({ view }, f) => {
      lane[context.reach.length + f] = order.indexOf(view);
    });
  }
  const input: LayoutInput = {
    n,
    width: plan.width,
    height: plan.height,
    edges: Int32Array.from(edges.flatMap(({ from, to }) => [from, to])),
    lane,
    ranksep: plan.options.compact ? COMPACT_ROW_GAP : ROW_GAP,
    nodesep: NODE_GAP,
  };
  if (previous) {
    const at = (i: number) => Float32Array.from(plan.keys, (key) => previous.get(key)?.[i] ?? Number.NaN);
    input.previous = { x: at(0), y: at(1) };
  }
  return input;
}

/** Older generations left, newer ones right; otherwise in the order of the roots. */
function laneOrder(context: Context): RootView[] {
  return [...context.roots].sort((a, b) => Number(b.gone) - Number(a.gone) || a.root.order - b.root.order);
}

/** A box of one root is in its lane; what a gone root reached too stays in that one's; the rest is free. */
function laneOf(order: readonly RootView[], mask: number): number {
  const lanes = order.flatMap((view, lane) => (mask & view.bit ? [lane] : []));
  return lanes.length === 1 || (lanes.length > 1 && order[lanes[0]!]!.gone) ? lanes[0]! : -1;
}

/** Centres by key, for the next `layoutInput`. */
export function positions(plan: Plan, placed: LayoutOutput): Map<string, readonly [number, number]> {
  if (plan.inside.fresh) settle(plan.inside.edges, placed);
  return new Map(plan.keys.map((key, i) => [key, [placed.x[i]!, placed.y[i]!] as const]));
}

export function buildScene(plan: Plan, placed: LayoutOutput): Scene {
  return runSlices(sceneSlices(plan, placed));
}

/** The same in slices. */
export function* sceneSlices(plan: Plan, placed: LayoutOutput): Slices<Scene> {
  const { context, cards, flags, edges, rail, fresh } = plan.inside;
  if (fresh) settle(edges, placed);
  const hulled = sharedBoxes(context).length > 0;
  const left = (rail ? RAIL_WIDTH : MARGIN) + (hulled ? HULL_SIDE : 0);
  const shift = [left, MARGIN + (hulled ? HULL_TOP : 0)] as const;
  const rects = visibleRects(plan, placed, shift);
  const cardRects = rects.slice(0, cards.length);
  const flagRects = new Map(flags.map((flag, f) => [flag.view.root.id, rects[cards.length + f]!]));
  yield;
  const areas = cards.map((card, b) => withLeaves(card, rects[b]!));
  const whole = { x: placed.left + shift[0], y: placed.top + shift[1], w: placed.width, h: placed.height };
  const span = borderArea(whole, context);
  const border = plan.inside.border && drawBorder(plan.inside.border, cardRects, span);
  const courses = wireCourses(context, edges, withEdges(plan, rects), placed, shift);

  yield;
  const free = new Free();
  for (const area of [...areas, ...passages(courses)]) free.add(area);
  flags.forEach((flag, f) => {
    const pill = rects[cards.length + f]!;
    free.add({ x: pill.x + pill.w / 2 - flag.w / 2, y: pill.y, w: flag.w, h: flag.h });
  });
  const carriers = tagItems(plan, cardRects, courses, border, free, true);
  if (border) writeBorder(context, border, span, free);
  yield;
  const badges = leafBadges(context, cards, cardRects, whole, free);
  yield;
  const otherTags = tagItems(plan, cardRects, courses, border, free, false);

  const items: Item[] = [...hullItems(context, areas), ...openHulls(context, areas)];
  if (border) items.push(border.item);
  const key = ({ from, to }: Edge) => `w${plan.keys[from]}>${plan.keys[to]}`;
  for (const item of yield* mapSlices(courses, (course) => wireItem(context, course, key(course.edge))))
    items.push(item);
  if (rail) {
    for (const item of railItems(context, cardRects, flagRects)) items.push({ ...item, x: item.x + placed.left });
  }
  for (const item of badges.items) items.push(item);
  const draw = (card: Card, b: number) => cardItem(context, card, b, cardRects[b]!, badges.inside.has(b));
  for (const item of yield* mapSlices(cards, draw)) items.push(item);
  for (const item of badges.onCards) items.push(item);
  flags.forEach((flag, f) => {
    const at = rects[cards.length + f]!;
    items.push(...drawFlag(context, flag, at.x + at.w / 2, at.y));
  });
  items.push(...otherTags, ...carriers, ...signs(context, cardRects, whole, free));
  return extent(items, whole, placed.left);
}

/** Carriers come first: their place is where the story is. */
function tagItems(
  plan: Plan,
  cardRects: readonly Rect[],
  courses: readonly Course[],
  border: DrawnBorder | null,
  free: Free,
  carriers: boolean,
): Item[] {
  const { context, tags, flags } = plan.inside;
  const items: Item[] = [];
  const arrivals = new Map<number, Course[]>();
  if (tags.some((tag) => tag?.carrier === carriers)) {
    for (const course of courses) {
      const { flag, to } = course.edge;
      if (!flag) arrivals.set(to, [...(arrivals.get(to) ?? []), course]);
    }
  }
  tags.forEach((tag, b) => {
    if (!tag || tag.carrier !== carriers || (context.level < 3 && !tag.carrier)) return;
    const arriving = arrivals.get(b) ?? [];
    const flagged = flags.some(({ view }) => context.folded.boxOf[view.root.node] === b);
    if (arriving.length > 0 || !flagged || tag.carrier) {
      items.push(placeTag(context, tag, cardRects[b]!, arriving, border, free));
    }
  });
  return items;
}

/** The card or pill of each laid-out box, in the scene's coordinates. */
function visibleRects(plan: Plan, placed: LayoutOutput, shift: readonly [number, number]): Rect[] {
  const { cards, flags, top } = plan.inside;
  return plan.keys.map((_key, i) => {
    const card = cards[i];
    const w = card ? card.w : flags[i - cards.length]!.pill;
    const h = card ? card.h : 22;
    return {
      x: placed.x[i]! + shift[0] - w / 2,
      y: placed.y[i]! + shift[1] - plan.height[i]! / 2 + top[i]!,
      w,
      h,
    };
  });
}

/** How far the second and third edges of groups and repeats stand out below. */
function lowerEdges(kind: Box["kind"]): number {
  return kind === "node" ? 0 : kind === "repeat" ? 8 : 4;
}

/** Wires end below the second and third edges of groups and repeats. */
function withEdges(plan: Plan, rects: readonly Rect[]): Rect[] {
  return rects.map((area, i) => {
    const kind = plan.folded.boxes[i]?.kind ?? "node";
    return { ...area, h: area.h + lowerEdges(kind) };
  });
}

function withLeaves(card: Card, at: Rect): Rect {
  if (!card.leavesAbove) return at;
  return unite([at, ...card.leaves.map((part) => ({ x: at.x + part.x, y: at.y + part.y, w: part.w, h: 18 }))]);
}

function borderArea(whole: Rect, context: Context): Rect {
  const notes = context.engineOrder.size > 0 ? 28 : 0;
  return { x: whole.x, y: whole.y, w: whole.w + notes, h: whole.h };
}

/** Octagons and order notes: last, over everything. */
function signs(context: Context, cardRects: readonly Rect[], whole: Rect, free: Free): Item[] {
  const items: Item[] = [];
  context.folded.boxes.forEach((box, b) => {
    for (const node of box.nodes) {
      const uid = context.graph.uid[node]!;
      const note = box.kind === "node" ? orderNote(context, uid, cardRects[b]!, free) : null;
      if (note) items.push(note);
    }
  });
  context.folded.boxes.forEach((box, b) => {
    for (const node of box.nodes)
      items.push(...octagonItems(context, context.graph.uid[node]!, cardRects[b]!, whole, free));
  });
  return items;
}

function extent(items: Item[], whole: Rect, left: number): Scene {
  let right = whole.x + whole.w;
  let bottom = whole.y + whole.h;
  let top = whole.y;
  for (const item of items) {
    right = Math.max(right, item.x + item.w);
    bottom = Math.max(bottom, item.y + item.h);
    top = Math.min(top, item.y);
  }
  top = Math.min(0, top - MARGIN);
  return { left, top, width: Math.ceil(right + MARGIN - left), height: Math.ceil(bottom + MARGIN - top), items };
}

/** uids that a fold should leave visible: failing node, border, findings, roots. */
export function importantUids(graph: Graph): number[] {
  const uids = new Set<number>();
  for (const call of graph.calls.slice(-1)) if (call.failedUid !== null) uids.add(call.failedUid);
  for (const { oldUid, newUid } of graph.boundary) uids.add(oldUid).add(newUid);
  for (const finding of graph.findings) {
    if (finding.severity === "info") continue;
    if (finding.uid !== null) uids.add(finding.uid);
  }
  for (const root of graph.roots) if (root.node >= 0) uids.add(graph.uid[root.node]!);
  return [...uids];
}
