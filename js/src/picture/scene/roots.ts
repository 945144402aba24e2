/** Root flags at a lane's foot: the pill with its sign, the line about the last calls, the place of the two buttons. */

import { callNumberMark, octagon, octagonOpen, rect, rootDot, text } from "../marks.ts";
import type { Call, Finding } from "../model.ts";
import type { ButtonBox, Item, Mark } from "../scene.ts";
import { callLine, callNumber, countText, listText } from "../words.ts";
import { type Context, type RootView, startsAt } from "./context.ts";

const PILL_H = 22;
const LINE_H = 22;
const BUTTON_H = 24;
const BUTTON_GAP = 4;
const MAX_CALLS = 3;

export interface Flag {
  view: RootView;
  name: string;
  w: number;
  h: number;
  pill: number;
  calls: Call[];
  /** A warning says that a backward from here would raise. */
  warning: string;
  line: number;
  buttons: ButtonBox[];
}

/** One flag per root; several roots inside one folded group share the newest one's. */
export function makeFlags(context: Context): Flag[] {
  const { folded, roots } = context;
  const inBox = new Map<number, RootView[]>();
  for (const view of roots) {
    const b = folded.boxOf[view.root.node]!;
    const key = b >= 0 && folded.boxes[b]!.kind !== "node" ? b : -1 - view.root.id;
    inBox.set(key, [...(inBox.get(key) ?? []), view]);
  }
  return [...inBox.values()].flatMap((views) =>
    views.length > 2
      ? [makeFlag(context, views[views.length - 1]!, sharedName(views.map((view) => view.root.path)))]
      : views.map((view) => makeFlag(context, view, view.root.path || "unnamed")),
  );
}

/** `history[0] … history[7]`. */
function sharedName(names: readonly string[]): string {
  return `${names[0]} … ${names[names.length - 1]}`;
}

function makeFlag(context: Context, view: RootView, name: string): Flag {
  const { measure, buttons: wanted } = context.options;
  const { root } = view;
  const sub = subtitle(view);
  const pill = measure(name, "flagname") + (sub ? 6 + measure(sub, "slotname") : 0) + 32;
  const calls = callsOf(context, view);
  const warning = warningOf(context, view);
  const flag: Flag = { view, name, w: pill, h: PILL_H, pill, calls, warning, line: 0, buttons: [] };
  const words = lineWords(flag);
  if (words) {
    flag.line =
      calls.length * 19 + (isRaised(flag) ? 17 : warning && !calls.length ? 17 : 0) + measure(words, "raised");
    flag.h += LINE_H;
  }
  if (wanted && root.alive) {
    flag.buttons = buttonBoxes(context, flag);
    flag.h += BUTTON_H + 6;
  }
  const buttonsWidth = flag.buttons.reduce((sum, button) => sum + button.w + BUTTON_GAP, -BUTTON_GAP);
  flag.w = Math.ceil(Math.max(pill, flag.line, buttonsWidth));
  return flag;
}

function subtitle(view: RootView): string {
  return [view.sub, view.gone ? "gone" : ""].filter(Boolean).join(", ");
}

/** The newest calls that started at this very node; the last one is told in words. */
function callsOf(context: Context, view: RootView): Call[] {
  return context.graph.calls.filter((call) => startsAt(context, call, view)).slice(-MAX_CALLS);
}

function warningOf(context: Context, view: RootView): string {
  const isHere = (finding: Finding) =>
    finding.severity === "warning" && finding.uid !== null && finding.path[0] === view.root.path && !view.gone;
  const finding = context.graph.findings.find(isHere);
  if (!finding) return "";
  const node = context.graph.indexOf.get(finding.uid!);
  const module = node === undefined ? undefined : context.graph.modules[context.graph.module[node]!];
  return `would raise at ${module?.path || finding.node || "a node"}`;
}

const lastCall = (flag: Flag) => flag.calls[flag.calls.length - 1];
const isRaised = (flag: Flag) => lastCall(flag)?.result === "raised";

function lineWords(flag: Flag): string {
  const call = lastCall(flag);
  if (flag.warning && call?.result !== "raised") return flag.warning;
  return call ? callLine(call) : "";
}

function buttonBoxes(context: Context, flag: Flag): ButtonBox[] {
  const { measure } = context.options;
  const name = flag.view.root.path;
  const y = flag.h + 4;
  const of = (verb: "backward" | "retain", label: string, argument: string): ButtonBox => ({
    verb,
    text: label,
    name: `${name}.backward(${argument})`,
    x: 0,
    y,
    w: Math.ceil(measure(label, "buttonname") + 16),
    h: BUTTON_H,
  });
  const both = [of("backward", "backward()", ""), of("retain", "retain_graph", "retain_graph=True")];
  let x = (flag.pill - (both[0]!.w + BUTTON_GAP + both[1]!.w)) / 2;
  for (const button of both) {
    button.x = Math.round(x);
    x += button.w + BUTTON_GAP;
  }
  return both;
}

/** The flag with its top centre at x, y, and the line under it. */
export function drawFlag(context: Context, flag: Flag, x: number, y: number): Item[] {
  const { measure, focus, selected } = context.options;
  const { view, pill } = flag;
  const { root } = view;
  const key = `root${root.id}`;
  const near = context.level === 3;
  const look = near ? "flagname" : "flagfar";
  const { name } = flag;
  const w = near ? pill : Math.max(pill, measure(name, look) + 32);
  const gone = view.gone ? " goneword" : "";
  const marks: Mark[] = [];
  if (focus === key) marks.push(rect(-4, -4, w + 8, PILL_H + 8, "focus", 15));
  marks.push(rect(0, 0, w, PILL_H, `flag ${view.hue}${view.gone ? " flaggone" : ""}`, 11));
  if (selected === key) marks.push(rect(-3, -3, w + 6, PILL_H + 6, "hitring", 14));
  marks.push(...rootDot(12, 11, view.style, view.hue));
  if (context.level >= 2) marks.push(text(21, near ? 15 : 16.5, name, look + gone));
  const sub = subtitle(view);
  if (sub && near) marks.push(text(21 + measure(name, look) + 6, 15, sub, `slotname${gone}`));
  const items: Item[] = [
    {
      key,
      role: "root",
      root: root.id,
      uid: context.graph.uid[root.node]!,
      index: root.node,
      x: x - w / 2,
      y,
      w,
      h: PILL_H,
      marks,
      label: flagLabel(flag),
      data: { root: root.path, gone: String(view.gone) },
      buttons: flag.buttons,
    },
  ];
  if (flag.line && context.level === 3) items.push(lineItem(context, flag, x - flag.line / 2, y + PILL_H + 4));
  return items;
}

function flagLabel(flag: Flag): string {
  const { root } = flag.view;
  const parts = [`${root.path ? flag.name : "a tensor without a name"}, root`];
  const sub = subtitle(flag.view);
  if (sub) parts.push(sub);
  if (root.type) parts.push(root.type);
  for (const call of flag.calls) parts.push(`call ${callNumber(call.n)} ${callLine(call)}`);
  if (flag.warning) parts.push(`backward ${flag.warning}`);
  return parts.join(", ");
}

function lineItem(context: Context, flag: Flag, x: number, y: number): Item {
  const marks: Mark[] = [];
  let at = 8;
  for (const call of flag.calls) {
    marks.push(...callNumberMark(at, 8, callNumber(call.n), flag.view.hue, true, 7.5));
    at += 19;
  }
  const words = lineWords(flag);
  const bad = isRaised(flag) || words === flag.warning;
  if (isRaised(flag)) marks.push(...octagon(at, 8, 6));
  else if (bad) marks.push(...octagonOpen(at, 8, 6.5));
  if (bad) at += 17;
  marks.push(text(at - 6, 11.8, words, bad ? "raised" : "caption"));
  const label = flag.calls.length
    ? `${listText(flag.calls.map((call) => `call ${callNumber(call.n)}`))}: ${words}`
    : `${flag.view.root.path}.backward() ${words}`;
  return {
    key: `line${flag.view.root.id}`,
    role: "note",
    root: flag.view.root.id,
    x,
    y,
    w: at + context.options.measure(words, "raised"),
    h: 16,
    marks,
    label: `${label} (${countText(flag.calls.length, "call")})`,
  };
}
