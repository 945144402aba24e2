/** The code rail: each source line at the left of the rows that it made. */

import { doubles } from "../arrays.ts";
import { octagon, rect, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import type { CodeLine, Root } from "../model.ts";
import type { Item, Mark } from "../scene.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { placeText } from "../words.ts";
import { type Context, isIn, rootOfCall, rootsOf, rowOf } from "./context.ts";
import type { Rect } from "./rects.ts";

const X = 12;
/** Width of the rail with its margins: the drawing begins here. */
export const RAIL_WIDTH = 184;
const TEXT_X = 10;
const TEXT_ROOM = RAIL_WIDTH - X - TEXT_X - 10;
const MOST_LETTERS = 27;
const LEAST_LETTERS = 4;
const ROW_H = 30;
const ROW_GAP = 6;
const TWO_LINES_H = 42;
/** Source order has to agree with the drawing for this share of the wires. */
const SHARE = 0.9;
const MAX_ROWS = 24;

/** A line of code. */
type Spot = Pick<CodeLine, "run" | "cell" | "line" | "source">;

/** Grows in reading order; the same for places on one line. */
const orderOf = ({ run, cell, line }: Spot) => (run ?? -1) * 1e10 + (cell ?? -1) * 1e5 + (line ?? -1);

const isKnown = (place: CodeLine | undefined): place is CodeLine =>
  place !== undefined && place.line !== null && place.source !== "";

/** Whether reading down the picture is reading down the code, and the lines are few enough to stand beside it. */
export function* railFits(context: Context): Slices<boolean> {
  const { above, folded } = context;
  const n = folded.boxes.length;
  if (context.options.rail === false) return false;
  /** By box: where its line stands in the code; NaN: unknown. */
  const order = doubles(n).fill(Number.NaN);
  const rows = new Set<number>();
  let unknown = 0;
  yield* eachSlice(n, (b) => {
    const { line } = folded.boxes[b]!;
    if (isKnown(line)) rows.add((order[b] = orderOf(line)));
    else unknown++;
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
  top: number;
  bottom: number;
  /** Reach of the boxes; a row of one root's boxes gets its hue. */
  mask: number;
  lines: string[];
  /** After the place: `once`, `each iteration`. */
  more: string;
  call: boolean;
  raised: boolean;
}

/**
 * Rows for the boxes and for the newest calls, in reading order, moved apart so that none overlaps.
 * `at`: the rectangle of a box; `flagAt`: that of a root's flag.
 */
export function* railItems(
  context: Context,
  left: number,
  at: (b: number) => Rect,
  flagAt: (root: Root) => Rect | undefined,
): Slices<Item[]> {
  const rows = new Map<number, Row>();
  const names = focusNames(context);
  const rowFor = (place: Spot, { y, h }: Rect, call: boolean): Row => {
    const key = orderOf(place);
    const row = rows.get(key) ?? { place, top: y, bottom: y, mask: 0, lines: [], more: "", call, raised: false };
    rows.set(key, row);
    row.top = Math.min(row.top, y);
    row.bottom = Math.max(row.bottom, y + h);
    return row;
  };
  yield* eachSlice(context.reach.length, (b) => {
    const { line } = context.folded.boxes[b]!;
    if (!isKnown(line)) return;
    const row = rowFor(line, at(b), false);
    row.mask |= context.reach[b]!;
    row.more ||= repetition(context, b);
  });
  // The newest call of each line, beside the flag it started from.
  const calls = new Map<number, [Spot, Rect, boolean]>();
  for (const call of context.graph.calls) {
    const view = rootOfCall(context, call);
    const area = view && flagAt(view.root);
    if (!area || call.line === null || !call.source) continue;
    const { run = null } = context.graph.places.find((each) => each.cell === call.cell && each.run !== null) ?? {};
    const place = { ...call, run };
    calls.set(orderOf(place), [place, area, call.result === "raised"]);
  }
  for (const [place, area, raised] of calls.values()) rowFor(place, area, true).raised = raised;
  const list = [...rows.values()].sort((a, b) => a.top - b.top || orderOf(a.place) - orderOf(b.place));
  for (const row of list) row.lines = codeLines(row, names, context.measure);
  moveApart(list);
  return list.map((row) => rowItem(context, row, left, names));
}

/** `each iteration` where iterations meet what was made once: only beside the border, where it matters. */
function repetition(context: Context, b: number): string {
  const { graph, folded, carriers } = context;
  const { times } = folded.boxes[b]!;
  const iteration = graph.iteration[context.main[b]!]!;
  if (times > 1) return `${times} times`;
  if ([...carriers.keys()].some((node) => folded.boxOf[node] === b)) return iteration < 0 ? "once" : "";
  const isNew = graph.boundary.some(({ newUid }) => isIn(context, b, newUid));
  return isNew && iteration > 0 ? "each iteration" : "";
}

/** The names to mark in the code: what carried an old part over, else what the shared part's border is called. */
function focusNames(context: Context): string[] {
  const carriers = [...new Set(context.carriers.values())];
  if (carriers.length) return carriers;
  const names = new Set<string>();
  context.shared.forEach((shared, b) => {
    const name = shared && context.names.get(context.main[b]!)?.[0];
    if (name && rowOf(context.below, b).some((low) => context.reach[low] !== context.reach[b])) names.add(name);
  });
  return [...names];
}

/** The source on one line or, where there is room, two; cut so that the names can be seen. */
function codeLines({ place, raised, call, top, bottom }: Row, names: readonly string[], measure: Measure): string[] {
  const source = place.source.trim();
  const room = TEXT_ROOM - (raised ? 18 : 0);
  const fits = (line: string) => line.length <= MOST_LETTERS && measure(line, "code") <= room;
  const cut = (line: string) =>
    shorten(line.length > MOST_LETTERS ? `${line.slice(0, MOST_LETTERS - 1)}…` : line, room, "code", measure);
  if (fits(source)) return [source];
  if (call || bottom - top >= TWO_LINES_H) {
    // A second line of a lone bracket says nothing.
    for (let end = Math.min(source.length - LEAST_LETTERS, MOST_LETTERS); end > 8; end--) {
      const first = source.slice(0, end);
      if (/[\s(,.=]$/.test(first) && fits(first)) return [first.trimEnd(), cut(source.slice(end).trimStart())];
    }
  }
  const ends = names.filter((name) => source.includes(name)).map((name) => source.indexOf(name) + name.length);
  const hidden = ends.find((end) => end >= MOST_LETTERS) ?? 0;
  return [cut(hidden ? `…${source.slice(Math.max(0, hidden - MOST_LETTERS + 6))}` : source)];
}

/** Rows side by side in the drawing share their height; none overlaps another, each has the height of its text. */
function moveApart(rows: Row[]): void {
  const need = (row: Row) => (row.lines.length > 1 ? TWO_LINES_H : ROW_H);
  rows.forEach((row, i) => {
    const next = rows[i + 1];
    if (next && next.top < row.bottom - 1) row.bottom = Math.max(next.top, row.top + need(row));
  });
  let free = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const height = Math.max(need(row), row.bottom - row.top);
    const wanted = row.bottom - row.top < need(row) ? (row.top + row.bottom - height) / 2 : row.top;
    const top = Math.max(wanted, free);
    row.bottom = Math.max(top + need(row), Math.min(top + height, row.bottom));
    row.top = top;
    free = row.bottom + ROW_GAP;
  }
}

function rowItem(context: Context, row: Row, left: number, names: readonly string[]): Item {
  const { level, measure } = context;
  const { place, lines, top } = row;
  const height = row.bottom - top;
  const middle = height / 2;
  const views = rootsOf(context, row.mask);
  const own = context.roots.length > 1 && views.length === 1 && !views[0]!.gone ? views[0] : undefined;
  const marks: Mark[] = [rect(0, 0, 3, height, own ? `railhue ${own.hue}` : "rail", 1.5)];
  const first = middle - 7 * lines.length;
  const where = placeText(place) + (row.more && ` · ${row.more}`);
  if (level === 2 && height > 20) marks.push(text(TEXT_X, middle, placeText(place), "note far"));
  if (level === 3) {
    marks.push(text(TEXT_X, first, where, "note"));
    lines.forEach((line, i) => {
      marks.push(codeMark(TEXT_X, first + 14 + 14 * i, line, names));
    });
    if (row.raised) marks.push(...octagon(TEXT_X + measure(lines[0]!, "code") + 11, first + 14, 6));
  }
  return {
    key: `rail${orderOf(place)}`,
    role: "rail",
    x: left + X,
    y: top,
    w: RAIL_WIDTH - X - 10,
    h: height,
    marks,
  };
}

/** A line of code with the focused names in bold where they stand as whole words, of two at one place the longer one. */
function codeMark(x: number, y: number, line: string, names: readonly string[]): Mark {
  const mark = text(x, y, line, "code");
  const longest = [...names]
    .sort((a, b) => b.length - a.length)
    .map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const word = "[\\p{L}\\p{N}_]";
  const parts = names.length ? line.split(new RegExp(`(?<!${word})(${longest.join("|")})(?!${word})`, "u")) : [line];
  const runs = parts.map((s, i) => ({ s, c: i % 2 ? "hot" : "" })).filter(({ s }) => s);
  return parts.length > 1 ? { ...mark, runs } : mark;
}
