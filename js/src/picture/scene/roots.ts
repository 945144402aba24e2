/** Root flags at the foot of lanes: the pill with its sign, the line about the last calls, room for both buttons. */

import { callNumberHalf, callNumberMark, type Mark, octagon, octagonOpen, rect, rootDot, text } from "../marks.ts";
import { MIDDLE, shorten } from "../measure.ts";
import { type Call, type Finding, isForecast } from "../model.ts";
import { callNumber, join } from "../words.ts";
import { type Context, FULL_SCALE, hueOfCall, sized, startsAt } from "./context.ts";
import type { Rect } from "./rects.ts";
import type { Item, Level, RootView } from "./types.ts";

export const PILL_H = 22;
const LINE_H = 22;
/**
 * Room for the buttons, in px on screen: they do not shrink with the picture. In a small picture they stand in two rows,
 * so that they do not push the lanes out of the view.
 */
export const BUTTONS = { w: 208, h: 24 };
export const TWO_ROWS = { w: 122, h: 52 };
const MAX_CALLS = 3;
const MAX_NAME = 170;
/** In the line under the pill: half the height of a number, the gap behind it, and the width of an octagon, in px. */
const NUMBER_R = 7.5;
const NUMBER_FAR_R = 9;
const NUMBER_GAP = 4;
const SIGN = 17;

export interface Flag {
  view: RootView;
  name: string;
  /** How many other elements of its list have no flag. */
  more: number;
  /** Text beside the name: which of several roots of the same name this is, and whether it is gone. */
  sub: string;
  w: number;
  h: number;
  pill: number;
  /** The newest calls that started at this node; the text under the pill describes the last one. */
  calls: Call[];
  /** Text of the warning that a backward from here would raise; "": none. */
  warning: string;
  /** Text under the pill: about the last call, or the warning; "": none. */
  words: string;
  /** The octagon before the text: solid, dashed or none. */
  sign: typeof octagon | null;
  /** Width of the line under the pill, in px. */
  line: number;
  buttons: Rect | undefined;
}

/** One flag per visible root; several roots inside one folded group share the flag of the newest. */
export function makeFlags(context: Context): Flag[] {
  const { folded, roots } = context;
  const inBox = new Map<number, RootView[]>();
  for (const view of roots) {
    const b = folded.boxOf[view.root.node]!;
    if (b < 0) continue;
    const key = folded.boxes[b]!.kind !== "node" ? b : -1 - view.root.id;
    const views = inBox.get(key);
    if (views) views.push(view);
    else inBox.set(key, [view]);
  }
  const more = othersOf(context);
  return [...inBox.values()].flatMap((views) => {
    if (views.length < 3)
      return views.map((view) => makeFlag(context, view, view.root.path || "unnamed", more.get(view.root.path)));
    const last = views.at(-1)!;
    return [makeFlag(context, last, `${views[0]!.root.path} … ${last.root.path}`, more.get(last.root.path))];
  });
}

/** The list or dict of which a path is an element: `losses` of `losses[3]`; "": it is of none. */
const containerOf = (path: string) => /^(.+)\[[^[\]]+\]$/.exec(path)?.[1] ?? "";

/** How many elements of a container have no flag, by the path of its last element that has one. */
function othersOf({ graph, roots }: Context): Map<string, number> {
  const flagged = new Set(roots.map(({ root }) => root.path));
  const last = new Map(roots.map(({ root }) => [containerOf(root.path), root.path]));
  last.delete("");
  const others = new Map<string, number>();
  for (const path of new Set(graph.owners.map((owner) => owner.path))) {
    const at = last.get(containerOf(path));
    if (at !== undefined && !flagged.has(path)) others.set(at, (others.get(at) ?? 0) + 1);
  }
  return others;
}

function makeFlag(context: Context, view: RootView, name: string, more = 0): Flag {
  const { measure, options, graph } = context;
  const sub = join(", ", view.sub, view.gone && "gone", more > 0 && `and ${more} more`);
  const calls = graph.calls.filter((call) => startsAt(context, call, view)).slice(-MAX_CALLS);
  const call = calls.at(-1);
  const raised = call?.result === "raised";
  const warning = warningOf(context, view);
  const words = warning && !raised ? warning : (call?.did ?? "");
  const sign = raised ? octagon : warning ? octagonOpen : null;
  const pill = Math.min(measure(name, "flagname"), MAX_NAME) + (sub ? 6 + measure(sub, "note") : 0) + 32;
  const line = words ? numbersWidth(calls, 3) + (sign ? SIGN : 0) + measure(words, "raised") : 0;
  const pressed = options.buttons && view.root.alive && !view.root.lost;
  // A flag with buttons keeps room for the line of a call: the call must not move anything.
  const h = PILL_H + (words || pressed ? LINE_H : 0);
  const { scale = 1 } = options;
  const rows = scale < FULL_SCALE ? TWO_ROWS : BUTTONS;
  const room = pressed ? rows.w / scale : 0;
  const buttons = pressed ? { x: (pill - room) / 2, y: h + 4, w: room, h: rows.h / scale } : undefined;
  const w = Math.ceil(Math.max(pill, line, room));
  const high = buttons ? buttons.y + buttons.h + 2 : h;
  return { view, name, more, sub, w, h: high, pill, calls, warning, words, sign, line, buttons };
}

function warningOf({ graph, options }: Context, { root, gone }: RootView): string {
  if (options.asks) return "";
  const isHere = (finding: Finding) => isForecast(finding) && finding.path[0] === root.path && !gone;
  const finding = graph.findings.find(isHere);
  if (!finding) return "";
  const module = graph.modules[graph.module[graph.indexOf(finding.uid)] ?? -1];
  return `would raise at ${module?.path || finding.node || "a node"}`;
}

/** The flag with its top centre at x, y, and the line under it. */
export function drawFlag(context: Context, flag: Flag, x: number, y: number): Item[] {
  const { measure, level, graph } = context;
  const { view, pill, name, more, sub } = flag;
  const { root, hue, gone } = view;
  const key = `root${root.id}`;
  const near = level === 3;
  const look = sized(context, "flagname");
  const quiet = gone ? " quiet" : "";
  const short = shorten(name, near ? MAX_NAME : flag.w - 32, look, measure, MIDDLE);
  const words = near || !more ? short : `${short} +${more}`;
  const w = near ? pill : measure(words, look) + 32;
  const marks: Mark[] = [];
  marks.push(rect(0, 0, w, PILL_H, `flag ${hue}${gone ? " ghost" : ""}`, 11));
  marks.push(...rootDot(12, 11, view.style, hue));
  if (level >= 2) marks.push({ ...text(21, 11, words, look + quiet), cut: short !== name });
  if (sub && near) marks.push(text(27 + measure(words, look), 11, sub, `note${quiet}`));
  const item: Item = {
    key,
    role: "root",
    root: root.id,
    uid: graph.uid[root.node]!,
    index: root.node,
    x: x - w / 2,
    y,
    w,
    h: PILL_H,
    marks,
    label: flagLabel(flag),
    data: { role: "root", name: root.path },
    buttons: flag.buttons && { ...flag.buttons, x: (w - flag.buttons.w) / 2 },
  };
  return flag.line && level >= 2 ? [item, lineItem(context, flag, x, y + PILL_H + 4)] : [item];
}

function flagLabel({ view, name, sub, calls, warning }: Flag): string {
  const { path, type } = view.root;
  return join(
    ", ",
    `${path ? name : "a tensor without a name"}, root`,
    sub,
    type,
    ...calls.map((call) => `call ${callNumber(call.n)} ${call.did}`),
    warning && `backward ${warning}`,
  );
}

const numberAt = (level: Level) =>
  level === 3 ? { r: NUMBER_R, look: "callno" } : { r: NUMBER_FAR_R, look: "callno far" };

/** Width of the numbers of calls in the line under a pill, with a gap behind each. */
function numbersWidth(calls: readonly Call[], level: Level): number {
  const { r, look } = numberAt(level);
  return calls.reduce((sum, { n }) => sum + 2 * callNumberHalf(callNumber(n), r, look) + NUMBER_GAP, 0);
}

/** The line under a pill, its middle at x. Below level 3 only numbers and sign are left of it. */
function lineItem(context: Context, { view, calls, words, sign }: Flag, x: number, y: number): Item {
  const { level } = context;
  const { id } = view.root;
  const { r, look } = numberAt(level);
  const said = level === 3 ? words : "";
  const marks: Mark[] = [];
  let at = 0;
  for (const { n } of calls) {
    const half = callNumberHalf(callNumber(n), r, look);
    marks.push(...callNumberMark(at + half, 8, callNumber(n), hueOfCall(context, n), { solid: true, r, look }));
    at += 2 * half + NUMBER_GAP;
  }
  if (sign) {
    marks.push(...sign(at + 7, 8, sign === octagon ? 6 : 6.5));
    at += SIGN;
  }
  if (said) marks.push(text(at, 8, said, sign ? "raised" : "note"));
  const w = at + (said ? context.measure(said, sign ? "raised" : "note") : 0);
  const data = { role: "line" };
  return { key: `line${id}`, role: "note", root: id, x: x - w / 2, y, w, h: 16, marks, data };
}
