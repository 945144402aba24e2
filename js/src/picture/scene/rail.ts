/** The code rail: each source line at the left of the rows that it made. */

import { octagon, rect, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import type { Call, Place } from "../model.ts";
import type { Item, Mark } from "../scene.ts";
import { placeText } from "../words.ts";
import type { Context } from "./context.ts";
import { rootOfCall, rootsOf } from "./context.ts";
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
  const place = graph.places[graph.place[context.main[b]!]!];
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
export function railFits(context: Context): boolean {
  if (context.options.rail === false) return false;
  const boxes = context.folded.boxes;
  let known = 0;
  const rows = new Set<string>();
  for (let b = 0; b < boxes.length; b++) {
    const place = placeOfBox(context, b);
    if (!isKnown(place)) continue;
    known++;
    rows.add(keyOf(place));
  }
  if (known === 0 || known < SHARE * boxes.length || rows.size > MAX_ROWS) return false;
  let pairs = 0;
  let agree = 0;
  for (let b = 0; b < boxes.length; b++) {
    const below = placeOfBox(context, b);
    for (const up of context.above[b]!) {
      const above = placeOfBox(context, up);
      if (!isKnown(below) || !isKnown(above)) continue;
      pairs++;
      if (comparePlaces(above, below) <= 0) agree++;
    }
  }
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

/** Rows for the boxes and for the newest calls, in reading order, moved apart so that none overlaps. */
export function railItems(context: Context, rects: readonly Rect[], flagRects: ReadonlyMap<number, Rect>): Item[] {
  const rows = new Map<string, Row>();
  const names = focusNames(context);
  const add = (place: Place, area: Rect, mask: number, b: number | null) => {
    const key = keyOf(place);
    const row = rows.get(key);
    if (row) {
      row.top = Math.min(row.top, area.y);
      row.bottom = Math.max(row.bottom, area.y + area.h);
      row.mask |= mask;
    } else {
      rows.set(key, {
        place,
        top: area.y,
        bottom: area.y + area.h,
        mask,
        lines: [],
        more: "",
        call: b === null,
        raised: false,
      });
    }
    if (b !== null) rows.get(key)!.more ||= repetition(context, b);
  };
  context.folded.boxes.forEach((_box, b) => {
    const place = placeOfBox(context, b);
    if (isKnown(place)) add(place, rects[b]!, context.reach[b]!, b);
  });
  for (const [place, area, raised] of callRows(context, flagRects)) {
    add(place, area, 0, null);
    rows.get(keyOf(place))!.raised = raised;
  }
  const list = [...rows.values()].sort((a, b) => a.top - b.top || comparePlaces(a.place, b.place));
  for (const row of list) row.lines = codeLines(row, names, context.options.measure);
  moveApart(list);
  const manyRoots = context.roots.length > 1;
  return list.map((row) => rowItem(context, row, names, manyRoots));
}

/** `each iteration` where iterations meet what was made once: only beside the border, where it matters. */
function repetition(context: Context, b: number): string {
  const { graph, carriers, folded } = context;
  const box = folded.boxes[b]!;
  if (box.times > 1) return `${box.times} times`;
  const isOld = Array.from(box.nodes).some((node) => carriers.has(node));
  const place = placeOfBox(context, b)!;
  if (isOld) return place.iteration === null ? "once" : "";
  const uids = new Set(Array.from(box.nodes, (node) => graph.uid[node]!));
  const isNew = graph.boundary.some(({ newUid }) => uids.has(newUid));
  return isNew && place.iteration !== null && place.iteration > 0 ? "each iteration" : "";
}

/** The newest call of each line, beside the flag it started from. */
function callRows(context: Context, flagRects: ReadonlyMap<number, Rect>): [Place, Rect, boolean][] {
  const found = new Map<string, [Place, Rect, boolean]>();
  for (const call of context.graph.calls) {
    const view = rootOfCall(context, call);
    const area = view && flagRects.get(view.root.id);
    if (!area || call.line === null || !call.source) continue;
    const place = placeOfCall(call, context);
    found.set(keyOf(place), [place, area, call.result === "raised"]);
  }
  return [...found.values()];
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
  context.folded.boxes.forEach((_box, b) => {
    if (!context.shared[b]) return;
    const border = context.below[b]!.some((low) => context.reach[low] !== context.reach[b]);
    if (border) for (const name of context.names.get(context.main[b]!)?.slice(0, 1) ?? []) names.add(name);
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

function rowItem(context: Context, row: Row, names: readonly string[], manyRoots: boolean): Item {
  const height = row.bottom - row.top;
  const middle = height / 2;
  const views = rootsOf(context, row.mask);
  const own = manyRoots && views.length === 1 && !views[0]!.gone ? views[0] : undefined;
  const marks: Mark[] = [rect(0, 0, 3, height, own ? `railhue ${own.hue}` : "rail", 1.5)];
  const near = context.level === 3;
  if (context.level === 2 && height > 20) marks.push(text(TEXT_X, middle + 6, placeText(row.place), "notefar"));
  const first = middle - (row.lines.length > 1 ? 10 : 3);
  const where = [placeText(row.place), row.more].filter(Boolean).join(" · ");
  if (near) {
    marks.push(text(TEXT_X, first, where, "where"));
    row.lines.forEach((line, i) => {
      marks.push(codeMark(TEXT_X, first + 14 + 14 * i, line, names));
    });
    if (row.raised) {
      const end = TEXT_X + context.options.measure(row.lines[0]!, "code");
      marks.push(...octagon(end + 11, first + 10.5, 6));
    }
  }
  return {
    key: `rail${keyOf(row.place)}`,
    role: "rail",
    x: X,
    y: row.top,
    w: RAIL_WIDTH - X - 10,
    h: height,
    marks,
    label: `${where}: ${row.place.source.trim()}`,
  };
}

/** A line of code with the focused names in bold. */
function codeMark(x: number, y: number, line: string, names: readonly string[]): Mark {
  const runs: { s: string; c: string }[] = [];
  let at = 0;
  while (at < line.length) {
    const next = nextName(line, at, names);
    if (!next) break;
    if (next.at > at) runs.push({ s: line.slice(at, next.at), c: "" });
    runs.push({ s: next.name, c: "hot" });
    at = next.at + next.name.length;
  }
  if (at < line.length) runs.push({ s: line.slice(at), c: "" });
  const mark = text(x, y, line, "code") as Mark & { t: "text" };
  return runs.some((run) => run.c) ? { ...mark, runs } : mark;
}

function nextName(line: string, from: number, names: readonly string[]): { at: number; name: string } | null {
  let best: { at: number; name: string } | null = null;
  for (const name of names) {
    for (let at = line.indexOf(name, from); at >= 0; at = line.indexOf(name, at + 1)) {
      const whole = !isWordEnd(line[at - 1]) && !isWordEnd(line[at + name.length]);
      if (!whole) continue;
      if (!best || at < best.at || (at === best.at && name.length > best.name.length)) best = { at, name };
      break;
    }
  }
  return best;
}

const isWordEnd = (letter: string | undefined) => letter !== undefined && /[\p{L}\p{N}_]/u.test(letter);
