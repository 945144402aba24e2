/** The code rail: each source line, left of the boxes that it made. */

import { doubles } from "../arrays.ts";
import { rowOf } from "../layout/types.ts";
import { type Mark, octagon, rect, text } from "../marks.ts";
import { type Measure, shorten } from "../measure.ts";
import type { CodeLine, Root } from "../model.ts";
import { eachSlice, type Slices } from "../slices.ts";
import { placeText } from "../words.ts";
import { type Context, isIn, rootOfCall, rootsOf } from "./context.ts";
import type { Rect } from "./rects.ts";
import type { Item } from "./types.ts";

const X = 12;
/** Width of the rail with its margins, in px: the drawing begins here. */
export const RAIL_WIDTH = 184;
const TEXT_X = 10;
const TEXT_ROOM = RAIL_WIDTH - X - TEXT_X - 10;
/** A name that starts after this many letters may be cut off; then the line begins `BEFORE` letters before it. */
const SEEN_LETTERS = 16;
const BEFORE = 8;
const ROW_H = 30;
const ROW_GAP = 6;
/** Smallest share of boxes with a known line, and of wires along which source order and drawing agree. */
const SHARE = 0.9;
const MAX_ROWS = 24;

/** A line of code. */
type Spot = Pick<CodeLine, "run" | "cell" | "file" | "inner" | "line" | "source"> & Partial<Pick<CodeLine, "fn">>;

/** A number that grows in reading order; equal for places on one line. */
const orderOf = ({ run, cell, inner, line }: Spot) => (run ?? -1) * 1e10 + (cell ?? inner ?? -1) * 1e5 + (line ?? -1);

/** `In[2]:4`; of a file its last name, and the function: `model.py:15 forward`. */
const railText = ({ fn, ...place }: Spot) => {
  const file = place.file?.split("/").at(-1) ?? null;
  return placeText({ ...place, file }) + (file && fn ? ` ${fn.split(".").at(-1)}` : "");
};

const isKnown = (place: CodeLine | undefined): place is CodeLine =>
  place !== undefined && place.line !== null && place.source !== "";

/** Whether the picture and the code have the same order from top to bottom, and the lines are few enough for a rail. */
export function* railFits(context: Context): Slices<boolean> {
  const { above, folded } = context;
  const n = folded.boxes.length;
  if (context.options.rail === false) return false;
  /** Per box: `orderOf` its line; NaN: unknown. */
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
  top: number;
  bottom: number;
  /** Bits of the roots that reach its boxes; a row of a single root gets the hue of that root. */
  mask: number;
  code: string;
  /** Text after the place: `once`, `each iteration`. */
  more: string;
  raised: boolean;
}

/**
 * Rows for the boxes and for the newest calls, from top to bottom, moved apart so that none overlaps.
 * `at`: the rectangle of a box; `flagAt`: the rectangle of a root's flag.
 */
export function* railItems(
  context: Context,
  left: number,
  at: (b: number) => Rect,
  flagAt: (root: Root) => Rect | undefined,
): Slices<Item[]> {
  const rows = new Map<number, Row>();
  const names = [...new Set(context.carriers.values())];
  const rowFor = (place: Spot, { y, h }: Rect): Row => {
    const key = orderOf(place);
    const row = rows.get(key) ?? { place, top: y, bottom: y, mask: 0, code: "", more: "", raised: false };
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
    const place = { ...call, run };
    calls.set(orderOf(place), [place, area, call.result === "raised"]);
  }
  for (const [place, area, raised] of calls.values()) rowFor(place, area).raised = raised;
  const list = [...rows.values()].sort((a, b) => a.top - b.top || orderOf(a.place) - orderOf(b.place));
  for (const row of list) row.code = codeLine(row, names, context.measure);
  moveApart(list);
  return list.map((row) => rowItem(context, row, left, names));
}

/** `once` or `each iteration` for boxes at the border, where the difference explains the error; else "". */
function repetition(context: Context, b: number): string {
  const { graph, folded, carriers } = context;
  const iteration = graph.iteration[context.main[b]!]!;
  if ([...carriers.keys()].some((node) => folded.boxOf[node] === b)) return iteration < 0 ? "once" : "";
  const isNew = graph.boundary.some(({ newUid }) => isIn(context, b, newUid));
  return isNew && iteration > 0 ? "each iteration" : "";
}

/** The source line without its comment, cut so that the last of `names` in it is visible. */
function codeLine({ place, raised }: Row, names: readonly string[], measure: Measure): string {
  const source = place.source.replace(/\s+# .*/, "").trim();
  const room = TEXT_ROOM - (raised ? 18 : 0);
  const at = Math.max(...names.map((name) => source.indexOf(name)));
  const hidden = at >= SEEN_LETTERS && measure(source, "code") > room;
  return shorten(hidden ? `…${source.slice(at - BEFORE)}` : source, room, "code", measure);
}

/** Moves rows apart: rows at the same height of the drawing share it, and each is at least as high as its text. */
function moveApart(rows: Row[]): void {
  rows.forEach((row, i) => {
    const next = rows[i + 1];
    if (next && next.top < row.bottom - 1) row.bottom = Math.max(next.top, row.top + ROW_H);
  });
  let free = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const lack = Math.max(0, ROW_H - row.bottom + row.top);
    row.top = Math.max(free, row.top - lack / 2);
    row.bottom = Math.max(row.top + ROW_H, row.bottom);
    free = row.bottom + ROW_GAP;
  }
}

function rowItem(context: Context, row: Row, left: number, names: readonly string[]): Item {
  const { level, measure } = context;
  const { place, code, top } = row;
  const height = row.bottom - top;
  const middle = height / 2;
  const views = rootsOf(context, row.mask);
  const own = context.roots.length > 1 && views.length === 1 && !views[0]!.gone ? views[0] : undefined;
  const marks: Mark[] = [rect(0, 0, 3, height, own ? `solid ${own.hue}` : "rail", 1.5)];
  const where = railText(place) + (row.more && ` · ${row.more}`);
  if (level === 2 && height > 20) marks.push(text(TEXT_X, middle, railText(place), "note far"));
  if (level === 3) {
    marks.push(text(TEXT_X, middle - 7, where, "note"), codeMark(TEXT_X, middle + 7, code, names));
    if (row.raised) marks.push(...octagon(TEXT_X + measure(code, "code") + 11, middle + 7, 6));
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

/** A line of code with `names` in bold where they are whole words; of two names at one place the longer one. */
function codeMark(x: number, y: number, line: string, names: readonly string[]): Mark {
  const mark = text(x, y, line, "code");
  const longest = [...names]
    .sort((a, b) => b.length - a.length)
    .map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const word = "[\\p{L}\\p{N}_]";
  const parts = names.length ? line.split(new RegExp(`(?<!${word})(${longest.join("|")})(?!${word})`, "u")) : [line];
  const runs = parts.map((part, i) => ({ text: part, classes: i % 2 ? "hot" : "" })).filter((run) => run.text);
  return parts.length > 1 ? { ...mark, runs } : mark;
}
