/** What lies behind and between the cards: the hull of the shared part, the border between old and new. */

import type { OpenGroup } from "../fold/index.ts";
import { path, rect, shape, text } from "../marks.ts";
import { shorten } from "../measure.ts";
import type { Item, Mark } from "../scene.ts";
import { countText, listText, nodeState, slotCounts, slotSentences } from "../words.ts";
import type { Context } from "./context.ts";
import { rootsOf } from "./context.ts";
import { type Free, overlaps, type Rect, unite } from "./rects.ts";

const PAD = 13;

// ---- Hull ---------------------------------------------------------------------------------------------------------

export const HULL_TOP = 20;

/** Boxes that two or more roots reach; empty where that is everything. */
export function sharedBoxes(context: Context): number[] {
  const shared: number[] = [];
  context.shared.forEach((is, b) => {
    if (is) shared.push(b);
  });
  return shared.length < context.reach.length ? shared : [];
}

/** One hull for each connected shared part. `areas`: what each box takes, its leaves included. */
export function hullItems(context: Context, areas: readonly Rect[]): Item[] {
  const shared = new Set(sharedBoxes(context));
  const items: Item[] = [];
  for (const part of components(context, shared)) {
    const whole = unite(part.map((b) => areas[b]!));
    const tight = areas.some((area, b) => !shared.has(b) && overlaps(area, whole));
    const groups = tight ? part.map((b) => [b]) : [part];
    groups.forEach((group, i) => {
      items.push(hull(context, group, areas, i === 0 ? sharedWords(context, part) : "", tight));
    });
  }
  return items;
}

function components(context: Context, shared: ReadonlySet<number>): number[][] {
  const seen = new Set<number>();
  const parts: number[][] = [];
  for (const start of shared) {
    if (seen.has(start)) continue;
    const part: number[] = [];
    const stack = [start];
    seen.add(start);
    while (stack.length) {
      const b = stack.pop()!;
      part.push(b);
      for (const next of [...context.above[b]!, ...context.below[b]!]) {
        if (!shared.has(next) || seen.has(next)) continue;
        seen.add(next);
        stack.push(next);
      }
    }
    parts.push(part);
  }
  return parts;
}

/** `shared by loss1 and loss2`; `shared by 2 graphs` where the roots have one name. */
function sharedWords(context: Context, part: readonly number[]): string {
  let mask = 0;
  for (const b of part) mask |= context.reach[b]!;
  const names = rootsOf(context, mask).map((view) => view.root.path);
  const different = new Set(names);
  if (different.size < names.length || different.has("")) return `shared by ${names.length} graphs`;
  return `shared by ${listText(names, 3)}`;
}

function hull(context: Context, group: readonly number[], areas: readonly Rect[], words: string, tight: boolean): Item {
  const area = unite(group.map((b) => areas[b]!));
  const top = words ? HULL_TOP : PAD - 4;
  const pad = tight ? 6 : PAD;
  const near = context.level === 3;
  const width = near ? context.options.measure(words, "hullname") + 20 : 0;
  const w = Math.max(area.w + 2 * pad, words ? width : 0);
  const x = area.x + area.w / 2 - w / 2;
  const h = area.h + top + PAD - 2;
  const marks: Mark[] = [rect(0, 0, w, h, "hull", 10)];
  if (words && near) marks.push(text(10, 14, words, "hullname"));
  const key = `hull${context.folded.boxes[group[0]!]!.key}`;
  return { key, role: "hull", x, y: area.y - top, w, h, marks, label: words };
}

// ---- Groups that were opened by hand --------------------------------------------------------------------------------

const OPEN_PAD = 8;
const OPEN_TOP = 20;

/** Boxes inside each group that the user opened, outer groups first. */
export function openMembers({ folded }: Context): { group: OpenGroup; boxes: number[] }[] {
  const found = folded.open.filter((group) => group.byHand).map((group) => ({ group, boxes: [] as number[] }));
  if (!found.length) return [];
  const parents = new Map(folded.open.map((group) => [group.key, group.parent]));
  const byKey = new Map(found.map((each) => [each.group.key, each.boxes]));
  folded.boxes.forEach((box, b) => {
    const seen = new Set<string>();
    for (let key = box.parent; key !== null && !seen.has(key); key = parents.get(key) ?? null) {
      seen.add(key);
      byKey.get(key)?.push(b);
    }
  });
  return found.filter(({ boxes }) => boxes.length > 0);
}

/** A frame around the boxes of each such group, with its name and a sign that closes it. */
export function openHulls(context: Context, areas: readonly Rect[]): Item[] {
  const { graph, folded, options, level } = context;
  return openMembers(context).map(({ group, boxes }) => {
    const area = unite(boxes.map((b) => areas[b]!));
    const at = {
      x: area.x - OPEN_PAD,
      y: area.y - OPEN_TOP,
      w: area.w + 2 * OPEN_PAD,
      h: area.h + OPEN_TOP + OPEN_PAD,
    };
    const nodes = boxes.flatMap((b) => [...folded.boxes[b]!.nodes]);
    const marks: Mark[] = [rect(0, 0, at.w, at.h, "openhull", 8)];
    if (level >= 2) {
      const look = level === 3 ? "hullname" : "hullfar";
      marks.push(rect(5, 3, 14, 14, "closer", 3), shape("M8.5 10h7", "closer"));
      const name = shorten(group.title, at.w - 30, look, options.measure);
      marks.push(rect(21, 1.5, options.measure(name, look) + 6, OPEN_TOP - 3, "ghostbg", 2));
      marks.push(text(24, level === 3 ? 14 : 16, name, look));
    }
    const state = nodeState(slotCounts(graph, nodes));
    const index = nodes[0]!;
    const uid = graph.uid[index]!;
    const count = countText(nodes.length, "node");
    const shared = String(boxes.some((b) => context.shared[b]));
    const ghost = String(boxes.every((b) => context.ghost[b]));
    return {
      key: group.key,
      role: "open",
      uid,
      index,
      ...at,
      marks,
      label: `${group.title}, open group of ${count}, ${slotSentences(graph, nodes).join(", ")}`,
      data: { node: group.title, uid: String(uid), state, shared, ghost },
    };
  });
}

// ---- Border between old and new ---------------------------------------------------------------------------------------

export interface Border {
  old: number[];
  fresh: number[];
  /** New boxes that lead into the old part. */
  entry: number[];
  /** What stands on its two sides. */
  oldWords: string;
  newWords: string;
}

/** The old part that the failing call ran into, and the new part that it came through. */
export function findBorder(context: Context): Border | null {
  const { graph, folded } = context;
  const meets = graph.boundary
    .map(({ oldUid, newUid }) => [graph.indexOf.get(oldUid), graph.indexOf.get(newUid)] as const)
    .filter((pair): pair is readonly [number, number] => pair[0] !== undefined && pair[1] !== undefined);
  if (meets.length === 0) return null;
  const old = new Set(
    closure(
      context.above,
      meets.map(([node]) => folded.boxOf[node]!),
    ),
  );
  const entry = [...new Set(meets.map(([, node]) => folded.boxOf[node]!))].filter((b) => b >= 0 && !old.has(b));
  let mask = 0;
  for (const b of entry) mask |= context.reach[b]!;
  const fresh: number[] = [];
  context.reach.forEach((reach, b) => {
    if (reach & mask && !old.has(b) && !context.ghost[b]) fresh.push(b);
  });
  if (old.size === 0 || entry.length === 0) return null;
  const [before, after] = meets[0]!;
  return { old: [...old], fresh, entry, ...borderWords(context, before, after) };
}

function closure(next: readonly number[][], starts: readonly number[]): number[] {
  const seen = new Set<number>();
  const stack = starts.filter((b) => b >= 0);
  while (stack.length) {
    const b = stack.pop()!;
    if (seen.has(b)) continue;
    seen.add(b);
    stack.push(...next[b]!);
  }
  return [...seen];
}

function borderWords(context: Context, before: number, after: number): { oldWords: string; newWords: string } {
  const { graph } = context;
  const old = graph.places[graph.place[before]!];
  const fresh = graph.places[graph.place[after]!];
  const when = (place: typeof old) =>
    !place
      ? ""
      : place.iteration !== null
        ? `iteration ${place.iteration}`
        : place.cell !== null
          ? `In[${place.cell}]`
          : "";
  return {
    oldWords: when(old) ? `kept since ${when(old)}` : "kept from before",
    newWords: when(fresh) ? `new in ${when(fresh)}` : "new",
  };
}

export interface DrawnBorder {
  item: Item;
  horizontal: boolean;
  /** y of a horizontal line, x of a vertical one. */
  at: number;
  border: Border;
}

const HALF = 20;

/** A dashed line across the picture, up and down where old and new stand side by side, or under the old part alone. */
export function drawBorder(border: Border, cards: readonly Rect[], whole: Rect): DrawnBorder | null {
  const old = unite(border.old.map((b) => cards[b]!));
  const fresh = unite(border.fresh.map((b) => cards[b]!));
  const of = (area: Rect, d: string): Item => ({
    key: "boundary",
    role: "boundary",
    ...area,
    marks: [shape(d, "boundary")],
    label: `${border.oldWords}, ${border.newWords}`,
  });
  if (old.y + old.h < fresh.y) {
    const at = Math.round((old.y + old.h + 12 + fresh.y) / 2);
    const area = { x: whole.x, y: at - HALF, w: whole.w, h: 2 * HALF };
    return { item: of(area, path`M0 ${HALF}H${whole.w}`), horizontal: true, at, border };
  }
  if (old.x + old.w < fresh.x) {
    const at = Math.round((old.x + old.w + fresh.x) / 2);
    const area = { x: at - HALF, y: whole.y, w: 2 * HALF, h: whole.h + 22 };
    return { item: of(area, path`M${HALF} 0V${area.h}`), horizontal: false, at, border };
  }
  const entry = unite(border.entry.map((b) => cards[b]!));
  if (old.y + old.h >= entry.y) return null;
  const at = Math.round((old.y + old.h + 12 + entry.y) / 2);
  const area = { x: old.x - PAD, y: at - HALF, w: old.w + 2 * PAD, h: 2 * HALF };
  return { item: of(area, path`M0 ${HALF}H${area.w}`), horizontal: true, at, border };
}

/** Names both sides, at the end of the line where there is room. */
export function writeBorder(
  context: Context,
  { item, horizontal, at, border }: DrawnBorder,
  whole: Rect,
  free: Free,
): void {
  if (context.level < 3) return;
  const width = (words: string) => context.options.measure(words, "carry");
  if (!horizontal) {
    const short = (words: string) => words.replace(/^(kept since|new in) /, "");
    item.marks.push(text(HALF - 8, item.h - 4, short(border.oldWords), "carry", "end"));
    item.marks.push(text(HALF + 8, item.h - 4, short(border.newWords), "carry"));
    return;
  }
  const places = (words: string, y: number): Rect[] => {
    const w = width(words);
    const end = item.x + item.w;
    const inside = (area: Rect) => area.x >= whole.x && area.x + w <= whole.x + whole.w;
    return [end - w, item.x, end + 8, item.x - w - 8].map((x) => ({ x, y, w, h: 13 })).filter(inside);
  };
  const both = [
    [border.oldWords, at - 16],
    [border.newWords, at + 4],
  ] as const;
  const found = both.map(([words, y]) => places(words, y).find((area) => free.has(area)));
  if (!found[0] || !found[1]) return;
  both.forEach(([words, y], i) => {
    free.add(found[i]!);
    item.marks.push(text(found[i]!.x - item.x, y - item.y + 10.5, words, "carry"));
  });
}
