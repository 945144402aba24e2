/** The code rail: each source line at the left of the rows that it made. */

import { octagon, rect, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import { type Call, type Place, placeOf, type Root } from "../model.ts";
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

const keyOf = (place: Place) => `${place.run ?? -1}:${place.cell}:${place.line}`;

/** Reading order of two places. */
function comparePlaces(a: Place, b: Place): number {
  return (a.run ?? -1) - (b.run ?? -1) || (a.cell ?? -1) - (b.cell ?? -1) || (a.line ?? -1) - (b.line ?? -1);
}

const isKnown = (place: Place | undefined): place is Place =>
  place !== undefined && place.line !== null && place.source !== "";

/** The line that made a box; for a group of several lines the one that called them all, if there is one. */
function placeOfBox(context: Context, b: number): Place | undefined {
  const { graph, folded } = context;
  const place = placeOf(graph, context.main[b]!);
  const nodes = folded.boxes[b]!.nodes;
  if (nodes.length === 1 || !place) return place;
  let same = true;
  let sameOuter = place.outerLine !== null;
  for (const node of nodes) {
    const other = graph.places[graph.place[node]!];
    same &&= other !== undefined && other.line === place.line && other.cell === place.cell;
    sameOuter &&= other?.outerLine === place.outerLine && other?.outerCell === place.outerCell;
  }
  if (same) return place;
  if (!sameOuter || place.outerLine === place.line) return undefined;
  return { ...place, cell: place.outerCell, line: place.outerLine, source: place.outerSource };
}

/** Whether reading down the picture is reading down the code, and the lines are few enough to stand beside it. */
export function* railFits(context: Context): Slices<boolean> {
  const { above, pace } = context;
  const n = context.folded.boxes.length;
  if (context.options.rail === false) return false;
  const known: (Place | null)[] = [];
  const rows = new Set<string>();
  let unknown = 0;
  yield* eachSlice(
    n,
    (b) => {
      const place = placeOfBox(context, b);
      known.push(isKnown(place) ? place : null);
      if (isKnown(place)) rows.add(keyOf(place));
      else unknown++;
      return rows.size <= MAX_ROWS;
    },
    pace,
  );
  if (rows.size === 0 || rows.size > MAX_ROWS || n - unknown < SHARE * n) return false;
  let pairs = 0;
  let agree = 0;
  yield* eachSlice(n, (b) => {
    const below = known[b];
    for (const up of rowOf(above, b)) {
      if (!below || !known[up]) continue;
      pairs++;
      if (comparePlaces(known[up], below) <= 0) agree++;
    }
  });
  return agree >= SHARE * pairs;
}

interface Row {
  place: Place;
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
  const rows = new Map<string, Row>();
  const names = focusNames(context);
  const rowFor = (place: Place, { y, h }: Rect, call: boolean): Row => {
    const key = keyOf(place);
    let row = rows.get(key);
    if (!row) rows.set(key, (row = { place, top: y, bottom: y, mask: 0, lines: [], more: "", call, raised: false }));
    row.top = Math.min(row.top, y);
    row.bottom = Math.max(row.bottom, y + h);
    return row;
  };
  yield* eachSlice(
    context.reach.length,
    (b) => {
      const place = placeOfBox(context, b);
      if (!isKnown(place)) return;
      const row = rowFor(place, at(b), false);
      row.mask |= context.reach[b]!;
      row.more ||= repetition(context, b, place);
    },
    context.pace,
  );
  // The newest call of each line, beside the flag it started from.
  const calls = new Map<string, () => void>();
  for (const call of context.graph.calls) {
    const view = rootOfCall(context, call);
    const area = view && flagAt(view.root);
    if (!area || call.line === null || !call.source) continue;
    const place = placeOfCall(call, context);
    calls.set(keyOf(place), () => {
      rowFor(place, area, true).raised = call.result === "raised";
    });
  }
  for (const add of calls.values()) add();
  const list = [...rows.values()].sort((a, b) => a.top - b.top || comparePlaces(a.place, b.place));
  for (const row of list) row.lines = codeLines(row, names, context.measure);
  moveApart(list);
  return list.map((row) => rowItem(context, row, left, names));
}

/** `each iteration` where iterations meet what was made once: only beside the border, where it matters. */
function repetition(context: Context, b: number, { iteration }: Place): string {
  const { times } = context.folded.boxes[b]!;
  if (times > 1) return `${times} times`;
  if ([...context.carriers.keys()].some((node) => context.folded.boxOf[node] === b))
    return iteration === null ? "once" : "";
  const isNew = context.graph.boundary.some(({ newUid }) => isIn(context, b, newUid));
  return isNew && iteration !== null && iteration > 0 ? "each iteration" : "";
}

function placeOfCall(call: Call, context: Context): Place {
  const same = context.graph.places.find((place) => place.cell === call.cell && place.run !== null);
  return {
    cell: call.cell,
    line: call.line,
    source: call.source,
    outerCell: call.outerCell,
    outerLine: call.outerLine,
    outerSource: "",
    iteration: call.iteration,
    cellId: null,
    run: same?.run ?? null,
  };
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

function codeLines(row: Row, names: readonly string[], measure: Measure): string[] {
  const source = row.place.source.trim();
  const room = TEXT_ROOM - (row.raised ? 18 : 0);
  const fits = (line: string) => line.length <= MOST_LETTERS && measure(line, "code") <= room;
  if (fits(source)) return [source];
  if (row.call || row.bottom - row.top >= TWO_LINES_H) {
    // A second line of a lone bracket says nothing.
    let cut = Math.min(source.length - LEAST_LETTERS, MOST_LETTERS);
    while (cut > 8 && !(/[\s(,.=]/.test(source[cut - 1]!) && fits(source.slice(0, cut)))) cut--;
    if (cut > 8) return [source.slice(0, cut).trimEnd(), cutLine(source.slice(cut).trimStart(), room, measure)];
  }
  const hidden = names.find((name) => source.includes(name) && source.indexOf(name) + name.length > MOST_LETTERS - 1);
  if (!hidden) return [cutLine(source, room, measure)];
  const start = Math.max(0, source.indexOf(hidden) + hidden.length - MOST_LETTERS + 6);
  return [cutLine(`…${source.slice(start)}`, room, measure)];
}

function cutLine(line: string, room: number, measure: Measure): string {
  const short = line.length > MOST_LETTERS ? `${line.slice(0, MOST_LETTERS - 1)}…` : line;
  return shorten(short, room, "code", measure);
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
  const first = middle - (lines.length > 1 ? 10 : 3);
  const where = [placeText(place), row.more].filter(Boolean).join(" · ");
  if (level === 2 && height > 20) marks.push(text(TEXT_X, middle + 6, placeText(place), "notefar"));
  if (level === 3) {
    marks.push(text(TEXT_X, first, where, "where"));
    lines.forEach((line, i) => {
      marks.push(codeMark(TEXT_X, first + 14 + 14 * i, line, names));
    });
    if (row.raised) marks.push(...octagon(TEXT_X + measure(lines[0]!, "code") + 11, first + 10.5, 6));
  }
  return {
    key: `rail${keyOf(place)}`,
    role: "rail",
    x: left + X,
    y: top,
    w: RAIL_WIDTH - X - 10,
    h: height,
    marks,
    label: `${where}: ${place.source.trim()}`,
  };
}

/** A line of code with the focused names in bold. */
function codeMark(x: number, y: number, line: string, names: readonly string[]): Mark {
  const runs: { s: string; c: string }[] = [];
  const add = (s: string, c: string) => s && runs.push({ s, c });
  let at = 0;
  for (let next = nextName(line, at, names); next; next = nextName(line, at, names)) {
    add(line.slice(at, next.at), "");
    add(next.name, "hot");
    at = next.at + next.name.length;
  }
  const mark = text(x, y, line, "code");
  if (!at) return mark;
  add(line.slice(at), "");
  return { ...mark, runs };
}

/** The first of the names from here on, as a whole word; of two at one place the longer one. */
function nextName(line: string, from: number, names: readonly string[]): { at: number; name: string } | null {
  let best: { at: number; name: string } | null = null;
  for (const name of names) {
    let at = line.indexOf(name, from);
    while (at >= 0 && (isLetter(line[at - 1]) || isLetter(line[at + name.length]))) at = line.indexOf(name, at + 1);
    if (at < 0) continue;
    if (!best || at < best.at || (at === best.at && name.length > best.name.length)) best = { at, name };
  }
  return best;
}

const isLetter = (letter = "") => /[\p{L}\p{N}_]/u.test(letter);
