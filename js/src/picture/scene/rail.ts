/** The code rail: each source line, left of the boxes that it made. */

import { doubles } from "../arrays.ts";
import type { LayoutOutput } from "../layout/index.ts";
import { rowOf } from "../layout/types.ts";
import { type Mark, octagon, path, rect, shape, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import type { CodeLine, Root } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { placeText } from "../words.ts";
import { type Context, isIn, rootOfCall, rootsOf } from "./context.ts";
import type { Rect } from "./rects.ts";
import type { Item, Level } from "./types.ts";

const X = 12;
/** Least width of the rail with its margins, in px; it grows to the left while there is room. */
export const RAIL_WIDTH = 184;
const WIDEST = 460;
/** Distance of the text from the bar, and of the text from the drawing. */
const TEXT_X = 10;
const RIGHT = 10;
/** Distance of two bars that stand side by side. */
const BAR_PITCH = 5;
/** A name that starts after this many letters may be cut off; then the line begins `BEFORE` letters before it. */
const SEEN_LETTERS = 16;
const BEFORE = 8;
/** Height of a row of two lines, the place over the code, and of a row of one line. */
const ROW_H = 30;
const LINE_H = 16;
const FAR_H = 21;
const ROW_GAP = 2;
/** Where rows of two lines would stand further from their boxes than this, in px, they get one line each. */
const NEAR = 12;
/** Smallest share of boxes with a known line, and of wires along which source order and drawing agree. */
const SHARE = 0.9;
const MAX_ROWS = 24;

/** A line of code. */
type Spot = Pick<CodeLine, "run" | "cell" | "file" | "inner" | "line" | "source"> & Partial<Pick<CodeLine, "fn">>;

/** A number that grows in the order of cells and their lines; equal for places on one line. */
const textOrder = ({ run, cell, inner, line }: Spot) => (run ?? -1) * 1e10 + (cell ?? inner ?? -1) * 1e5 + (line ?? -1);

type Order = (place: Spot) => number;

/**
 * A number that grows in reading order; equal for places on one line. Cells are read as they stand. Files call each
 * other: where there are any, lines are read in the order in which they first made something.
 */
function* readingOrder({ folded: { boxes }, graph, main }: Context): Slices<Order> {
  const first = new Map<number, number>();
  let files = false;
  yield* eachSlice(boxes.length, (b) => {
    const { line } = boxes[b]!;
    if (!isKnown(line)) return;
    files ||= line.file !== null;
    const key = textOrder(line);
    first.set(key, Math.min(first.get(key) ?? Number.POSITIVE_INFINITY, graph.seq[main[b]!] ?? 0));
  });
  if (!files) return textOrder;
  const ranks = new Map([...first].sort((a, b) => a[1] - b[1]).map(([key], rank) => [key, rank]));
  return (place) => ranks.get(textOrder(place)) ?? 1e15 + textOrder(place); // a call's own line made nothing: last
}

/** `In[2]:4`; of a file its last name, and the function: `model.py:15 forward`. */
const railText = ({ fn, ...place }: Spot) => {
  const file = place.file?.split("/").at(-1) ?? null;
  return placeText({ ...place, file }) + (file && fn ? ` ${fn.split(".").at(-1)}` : "");
};

/** Whether a line is in the same function of the same file as the line above it: they are one group under one head. */
const continues = (place: Spot, above: Spot | undefined) =>
  above !== undefined &&
  place.file !== null &&
  above.file === place.file &&
  above.inner === place.inner &&
  above.fn === place.fn;

const isKnown = (place: CodeLine | undefined): place is CodeLine =>
  place !== undefined && place.line !== null && place.source !== "";

/** Whether the picture and the code have the same order from top to bottom, and the lines are few enough for a rail. */
export function* railFits(context: Context): Slices<boolean> {
  const { above, folded } = context;
  const n = folded.boxes.length;
  if (context.options.rail === false) return false;
  const orderOf = yield* readingOrder(context);
  /** Per box: the order of its line; NaN: unknown. */
  const order = doubles(n).fill(Number.NaN);
  const rows = new Set<number>();
  let unknown = 0;
  yield* eachSlice(n, (b) => {
    const { line } = folded.boxes[b]!;
    if (isKnown(line)) {
      order[b] = orderOf(line);
      rows.add(order[b]);
    } else unknown++;
    return rows.size <= MAX_ROWS;
  });
  if (rows.size === 0 || rows.size > MAX_ROWS || n - unknown < SHARE * n) return false;
  let pairs = 0;
  let agree = 0;
  yield* eachSlice(n, (b) => {
    for (const up of rowOf(above, b)) {
      const down = order[b]! - order[up]!;
      if (Number.isNaN(down)) continue;
      pairs++;
      if (down >= 0) agree++;
    }
  });
  return agree >= SHARE * pairs;
}

interface Row {
  place: Spot;
  /** The boxes that the line made reach from top to bottom. */
  top: number;
  bottom: number;
  /** Bits of the roots that reach its boxes; a row of a single root gets the hue of that root. */
  mask: number;
  /** Text after the place: `once`, `each iteration`. */
  more: string;
  raised: boolean;
  /** Middle of its text. */
  middle: number;
  /** Number of its bar: bars of lines whose boxes stand side by side do, too. */
  bar: number;
}

/** Place and width of the rail. */
interface Span {
  left: number;
  width: number;
}

/** The width that the longest line of code needs, as far as there is room beside the drawing. */
export function railWidth(context: Context, placed: Pick<LayoutOutput, "width" | "height">): number {
  const { room, scale = 1, railWidth: kept } = context.options;
  if (kept) return kept;
  const lines = new Set<string>();
  for (const { line } of context.folded.boxes) if (isKnown(line)) lines.add(codeOf(line));
  for (const call of context.graph.calls.slice(-MAX_ROWS)) lines.add(codeOf(call));
  const needed = Math.max(...[...lines].map((code) => context.measure(code, "code"))) + X + TEXT_X + RIGHT + 22;
  // The height of the view limits the scale; what this leaves of its width is free.
  const zoom = room ? Math.max(Math.min(scale, 1), Math.min(1.5, room.h / (placed.height + 40))) : 1;
  const free = room ? room.w / zoom - placed.width - 30 : 260;
  return Math.round(Math.max(RAIL_WIDTH, Math.min(needed, free, WIDEST)));
}

/** A line of code without its comment. */
const codeOf = ({ source }: Pick<CodeLine, "source">) => source.replace(/\s+# .*/, "").trim();

/**
 * Rows for the boxes and for the newest calls, from top to bottom, moved apart so that none overlaps.
 * `at`: the rectangle of a box; `flagAt`: the rectangle of a root's flag.
 */
export function* railItems(
  context: Context,
  span: Span,
  at: (b: number) => Rect,
  flagAt: (root: Root) => Rect | undefined,
): Slices<Item[]> {
  const orderOf = yield* readingOrder(context);
  const rows = new Map<number, Row>();
  const names = [...new Set(context.carriers.values())];
  const rowFor = (place: Spot, { y, h }: Rect): Row => {
    const key = orderOf(place);
    const row = rows.get(key) ?? { place, top: y, bottom: y, mask: 0, more: "", raised: false, middle: 0, bar: 0 };
    rows.set(key, row);
    row.top = Math.min(row.top, y);
    row.bottom = Math.max(row.bottom, y + h);
    return row;
  };
  yield* eachSlice(context.reach.length, (b) => {
    const { line } = context.folded.boxes[b]!;
    if (!isKnown(line)) return;
    const row = rowFor(line, at(b));
    row.mask |= context.reach[b]!;
    row.more ||= repetition(context, b);
  });
  // The newest call of each line gets a row beside the flag of its root.
  const calls = new Map<number, [Spot, Rect, boolean]>();
  for (const call of context.graph.calls) {
    const view = rootOfCall(context, call);
    const area = view && flagAt(view.root);
    if (!area || call.line === null || !call.source) continue;
    const sameSource = (each: CodeLine) => each.cell === call.cell && each.file === call.file && each.run !== null;
    const { run = null } = context.graph.places.find(sameSource) ?? {};
    const place = { ...call, run: call.run ?? run };
    calls.set(orderOf(place), [place, area, call.result === "raised"]);
  }
  for (const [place, area, raised] of calls.values()) rowFor(place, area).raised = raised;
  const list = [...rows.values()].sort((a, b) => a.top - b.top || orderOf(a.place) - orderOf(b.place));
  const oneLine = placeTexts(list, context.level);
  const bars = placeBars(list);
  const look = { ...span, textX: TEXT_X + BAR_PITCH * (bars - 1), oneLine, names };
  return list.map((row, i) => rowItem(context, row, { ...look, inGroup: continues(row.place, list[i - 1]?.place) }));
}

/** `once` or `each iteration` for boxes at the border, where the difference explains the error; else "". */
function repetition(context: Context, b: number): string {
  const { graph, folded, carriers } = context;
  const iteration = graph.iteration[context.main[b]!]!;
  if ([...carriers.keys()].some((node) => folded.boxOf[node] === b)) return iteration < 0 ? "once" : "";
  const isNew = graph.boundary.some(({ newUid }) => isIn(context, b, newUid));
  return isNew && iteration > 0 ? "each iteration" : "";
}

/** The source line, cut so that the last of `names` in it is visible. */
function codeLine(row: Row, room: number, names: readonly string[], measure: Measure): string {
  const source = codeOf(row.place);
  const at = Math.max(...names.map((name) => source.indexOf(name)));
  const hidden = at >= SEEN_LETTERS && measure(source, "code") > room;
  return shorten(hidden ? `…${source.slice(at - BEFORE)}` : source, room, "code", measure);
}

/** Sets the middles of the texts: beside their boxes, or as near as others allow. Returns whether they have one line. */
function placeTexts(rows: Row[], level: Level): boolean {
  const wish = (row: Row) => (row.top + row.bottom) / 2;
  const inside = (row: Row) => Math.max(row.top - row.middle, row.middle - row.bottom) < NEAR;
  for (const high of level === 3 ? [ROW_H, LINE_H] : [FAR_H]) {
    spreadOut(rows, wish, high + ROW_GAP);
    if (rows.every(inside)) return high !== ROW_H;
  }
  return true;
}

/** Middles with at least `pitch` between them, with the least sum of squared distances from the wishes. */
function spreadOut(rows: Row[], wish: (row: Row) => number, pitch: number): void {
  const blocks: { rows: Row[]; sum: number }[] = [];
  const mean = ({ rows, sum }: (typeof blocks)[0]) => sum / rows.length;
  rows.forEach((row, i) => {
    let block = { rows: [row], sum: wish(row) - i * pitch };
    for (let last = blocks.at(-1); last && mean(last) > mean(block); last = blocks.at(-1)) {
      blocks.pop();
      block = { rows: [...last.rows, ...block.rows], sum: last.sum + block.sum };
    }
    blocks.push(block);
  });
  let i = 0;
  for (const block of blocks) for (const row of block.rows) row.middle = mean(block) + i++ * pitch;
}

/** Puts bars that would cover each other side by side; returns how many. */
function placeBars(rows: Row[]): number {
  const ends: number[] = [];
  for (const row of [...rows].sort((a, b) => a.top - b.top)) {
    const free = ends.findIndex((end) => end <= row.top);
    row.bar = free < 0 ? ends.length : free;
    ends[row.bar] = row.bottom + ROW_GAP;
  }
  return ends.length;
}

interface RowLook extends Span {
  textX: number;
  oneLine: boolean;
  names: readonly string[];
  /** Whether the row above has the same file and function, which then need not be named again. */
  inGroup: boolean;
}

function rowItem(context: Context, row: Row, { left, width, textX, oneLine, names, inGroup }: RowLook): Item {
  const { level, measure } = context;
  const { place, middle } = row;
  const half = (oneLine ? LINE_H : ROW_H) / 2;
  const top = Math.min(row.top, middle - half);
  const views = rootsOf(context, row.mask);
  const own = context.roots.length > 1 && views.length === 1 && !views[0]!.gone ? views[0] : undefined;
  const hue = own ? `solid ${own.hue}` : "rail";
  const barX = BAR_PITCH * row.bar;
  const marks: Mark[] = [rect(barX, row.top - top, 3, row.bottom - row.top, hue, 1.5)];
  const y = middle - top;
  // A text that does not stand beside its own bar is joined to it.
  if (level >= 2 && (middle < row.top || middle > row.bottom)) {
    const end = middle < row.top ? row.top - top : row.bottom - top;
    marks.push(shape(path`M${barX + 3} ${end}L${textX - 2} ${y}`, "leafline"));
  }
  const words = inGroup ? `:${place.line}` : railText(place);
  const where = words + (row.more && !oneLine ? ` · ${row.more}` : "");
  if (level === 2) marks.push(text(textX, y, words, "note far"));
  if (level === 3) {
    const x = oneLine ? textX + measure(words, "note") + 8 : textX;
    const room = width - X - x - RIGHT - (row.raised ? 18 : 0);
    const code = codeLine(row, room, names, measure);
    const line = codeMark(x, oneLine ? y : y + 7, code, names);
    line.cut = code !== codeOf(place);
    marks.push(text(textX, oneLine ? y : y - 7, where, "note"), line);
    if (row.raised) marks.push(...octagon(x + measure(code, "code") + 11, oneLine ? y : y + 7, 6));
  }
  return {
    key: `rail${textOrder(place)}`,
    role: "rail",
    x: left + X,
    y: top,
    w: width - X - RIGHT,
    h: Math.max(row.bottom, middle + half) - top,
    marks,
    label: `${railText(place)} ${codeOf(place)}`,
  };
}

/** A line of code with `names` in bold where they are whole words; of two names at one place the longer one. */
function codeMark(x: number, y: number, line: string, names: readonly string[]) {
  const mark = text(x, y, line, "code");
  const longest = [...names]
    .sort((a, b) => b.length - a.length)
    .map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const word = "[\\p{L}\\p{N}_]";
  const parts = names.length ? line.split(new RegExp(`(?<!${word})(${longest.join("|")})(?!${word})`, "u")) : [line];
  const runs = parts.map((part, i) => ({ text: part, classes: i % 2 ? "hot" : "" })).filter((run) => run.text);
  return parts.length > 1 ? { ...mark, runs } : mark;
}
