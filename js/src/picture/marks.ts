/** The marks: pure functions from a place and a state to shapes. Page, canvas and static file use the same ones. */

import { styleOf } from "./tokens.ts";

/** One drawn shape, relative to its item. `classes`: class names of tokens.ts, separated by spaces. */
export type Mark =
  | { kind: "rect"; x: number; y: number; w: number; h: number; r?: number; classes: string }
  | { kind: "path"; d: string; classes: string }
  | {
      kind: "text";
      x: number;
      y: number;
      /** The whole text. */
      text: string;
      classes: string;
      anchor?: "start" | "middle" | "end";
      /** Whether it is shorter than what it stands for: then the label of its item is shown as a tooltip. */
      cut?: boolean;
      /** Parts with classes of their own, added to the classes of the mark; joined they are `text`. */
      runs?: { text: string; classes: string }[];
    };

export const SLOT_W = 14;
export const SLOT_H = 11;

export type SlotLook = "held" | "freed" | "stale" | "packed" | "none" | "unknown" | "will";
/** Looks by `SLOT` value; the last one, "will", is no state: a forecast would free the slot. */
export const SLOT_LOOKS: readonly SlotLook[] = ["held", "freed", "stale", "packed", "none", "unknown", "will"];

const round = (value: number) => Math.round(value * 10) / 10;

export function rect(x: number, y: number, w: number, h: number, classes: string, r = 6): Mark {
  return { kind: "rect", x: round(x), y: round(y), w: round(w), h: round(h), r, classes };
}

export function circle(x: number, y: number, r: number, classes: string): Mark {
  return rect(x - r, y - r, 2 * r, 2 * r, classes, r);
}

/** Numbers in path data are rounded to a tenth of a px. */
export function path(parts: TemplateStringsArray, ...values: number[]): string {
  return parts.reduce((text, part, i) => text + part + (i < values.length ? String(round(values[i]!)) : ""), "");
}

export function shape(d: string, classes: string): Mark {
  return { kind: "path", d, classes };
}

type TextMark = Extract<Mark, { kind: "text" }>;

/** A line of text; `y` is the middle of its small letters. */
export function text(
  x: number,
  y: number,
  words: string,
  classes: string,
  anchor: TextMark["anchor"] = "start",
): TextMark {
  return { kind: "text", x: round(x), y: round(y + 0.35 * styleOf(classes).size!), text: words, classes, anchor };
}

// ---- Saved tensors --------------------------------------------------------------------------------------------

/** One saved tensor, 14 x 11, top left at x, y. Presence is ink: solid is held, hollow is freed. */
export function slot(x: number, y: number, look: SlotLook): Mark[] {
  const w = SLOT_W;
  const h = SLOT_H;
  const outline = (classes: string) => rect(x + 0.6, y + 0.6, w - 1.2, h - 1.2, classes, 2);
  switch (look) {
    case "held":
      return [rect(x, y, w, h, "held", 2)];
    case "freed":
      return [outline("freed"), shape(path`M${x + 3} ${y + h - 2.6}L${x + w - 3} ${y + 2.6}`, "slash")];
    case "stale": {
      const bars = path`M${x + 3.2} ${y + 4.1}H${x + w - 3.2}M${x + 3.2} ${y + 7.1}H${x + w - 3.2}`;
      return [rect(x, y, w, h, "stale", 2), shape(bars + path`M${x + 5} ${y + 9.4}L${x + w - 5} ${y + 1.6}`, "cut")];
    }
    case "packed":
      return [outline("packed"), rect(x + 4, y + 3.2, w - 8, h - 6.4, "held", 1)];
    case "none":
      return [shape(path`M${x + 3} ${y + h / 2}H${x + w - 3}`, "none")];
    case "unknown":
      return [outline("unknown"), text(x + w / 2, y + h / 2, "?", "order", "middle")];
    case "will": {
      const half = path`M${x + 1.2} ${y + 2.2}Q${x + 1.2} ${y + 1.2} ${x + 2.2} ${y + 1.2}H${x + w - 2}L${x + 1.2} ${y + h - 2}Z`;
      return [outline("will"), shape(half, "held")];
    }
  }
}

// ---- Calls, errors, warnings ------------------------------------------------------------------------------------

/** Width of a bold digit as a share of the size of its text, and the room beside the digits, in px. */
const DIGIT = 0.6;
const BESIDE_DIGITS = 3;

/** Half the width of a call's number: a circle for one digit, a pill for more. `look`: its text classes. */
export function callNumberHalf(number: number, r = 7, look = "callno"): number {
  return Math.max(r, (String(number).length * DIGIT * styleOf(look).size!) / 2 + BESIDE_DIGITS);
}

/**
 * The number of a call in the hue of its root, its middle at x, y. `solid`: where the call itself stands. `r`: half its
 * height.
 */
export function callNumberMark(
  x: number,
  y: number,
  number: number,
  hue: string,
  { solid = false, r = 7, look = "callno" } = {},
): Mark[] {
  const half = callNumberHalf(number, r, look);
  const [body, name] = solid ? ["call solid", `${look} paper`] : ["call", look];
  const label = text(x, y, String(number), `${name} ${hue}`, "middle");
  return [rect(x - half, y - r, 2 * half, 2 * r, `${body} ${hue}`, r), label];
}

/** An octagon with a cross; `share`: how far the cross reaches. */
function stop(classes: string, share: number, x: number, y: number, r: number): Mark[] {
  const k = r * 0.414;
  const q = r * share;
  const corners =
    path`M${x + k} ${y - r}L${x + r} ${y - k}V${y + k}L${x + k} ${y + r}` +
    path`H${x - k}L${x - r} ${y + k}V${y - k}L${x - k} ${y - r}Z`;
  const cross = path`M${x - q} ${y - q}L${x + q} ${y + q}M${x + q} ${y - q}L${x - q} ${y + q}`;
  return [shape(corners, classes), shape(cross, `${classes}x`)];
}

/** Raised here: a solid octagon. */
export const octagon = (x: number, y: number, r = 9) => stop("octagon", 0.38, x, y, r);

/** Would raise here: a dashed and hollow octagon. */
export const octagonOpen = (x: number, y: number, r = 9) => stop("octagonopen", 0.36, x, y, r);

export function warning(x: number, y: number, r = 9): Mark[] {
  return [
    shape(path`M${x} ${y - r}L${x + r} ${y + r * 0.8}H${x - r}Z`, "warning"),
    shape(path`M${x} ${y - r * 0.32}V${y + r * 0.22}M${x} ${y + r * 0.5}V${y + r * 0.5 + 0.1}`, "warningbar"),
  ];
}

/** An in-place write; 10 x 10, top left at x, y. */
export function pencil(x: number, y: number): Mark[] {
  const body = path`M${x} ${y + 9}L${x + 0.9} ${y + 5.6}L${x + 7.2} ${y - 0.7}L${x + 9.7} ${y + 1.8}L${x + 3.4} ${y + 8.1}Z`;
  return [shape(body, "pencil")];
}

// ---- Tags, leaves, dots -----------------------------------------------------------------------------------------

export const TAG_H = 19;

export function tagWidth(nameWidth: number): number {
  return nameWidth + 21;
}

/** A variable: a luggage tag with its hole towards the node. x: the hole's end; the tag hangs to its right, or left. */
export function tag(
  x: number,
  y: number,
  words: string,
  width: number,
  look: "" | "carrier" | "gone",
  left = false,
  font = "tagname",
): Mark[] {
  const side = left ? -1 : 1;
  const notch = x + side * 7;
  const end = x + side * width;
  const h = TAG_H;
  const body =
    path`M${x} ${y + h / 2}L${notch} ${y}H${end - side * 3}Q${end} ${y} ${end} ${y + 3}` +
    path`V${y + h - 3}Q${end} ${y + h} ${end - side * 3} ${y + h}H${notch}Z`;
  const [outer, quiet] = {
    "": ["tag", ""],
    carrier: ["tag carrier", ""],
    gone: ["tag ghost", " quiet"],
  }[look] as [string, string];
  const name = text(left ? x - width + 7 : x + 14, y + h / 2, words, font + quiet);
  name.cut = words.includes("…") || words.includes(" +");
  return [shape(body, outer), circle(x + side * 8.5, y + h / 2, 1.9, "taghole"), name];
}

export const LEAF_H = 18;

export function leafWidth(nameWidth: number): number {
  return nameWidth + 28;
}

/** A bowl, 10 wide: where a gradient lands; filled where `.grad` is there. */
export function bowl(x: number, y: number, hasGrad: boolean): Mark {
  return shape(path`M${x} ${y}A5 5 0 0 0 ${x + 10} ${y}Z`, hasGrad ? "bowl" : "bowlempty");
}

/** An AccumulateGrad: a stadium with a bowl. */
export function leaf(
  x: number,
  y: number,
  name: string,
  width: number,
  hasGrad: boolean,
  gone = false,
  font = "leafname",
  cut = false,
): Mark[] {
  return [
    rect(x, y, width, LEAF_H, gone ? "leaf ghost" : "leaf", 9),
    bowl(x + 6, y + 8, hasGrad),
    { ...text(x + 21, y + LEAF_H / 2, name, gone ? `${font} quiet` : font), cut: cut || name.includes("…") },
  ];
}

/** Hue class and stroke style, 1 to 4, by a root's order; all roots from the ninth on look alike. */
export function rootLook(order: number): { hue: string; style: number } {
  if (order >= 8) return { hue: "r0", style: 1 };
  return { hue: `r${(order % 4) + 1}`, style: ((order + (order >> 2)) % 4) + 1 };
}

/** The sign of a root style: disc, ring, square, diamond. */
export function rootDot(x: number, y: number, style: number, hue: string): Mark[] {
  if (style === 3) return [rect(x - 3.8, y - 3.8, 7.6, 7.6, `solid ${hue}`, 1)];
  if (style === 4) return [shape(path`M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}Z`, `solid ${hue}`)];
  const disc = circle(x, y, 4.2, `solid ${hue}`);
  return style === 2 ? [disc, circle(x, y, 1.9, "paper")] : [disc];
}

// ---- Lines ------------------------------------------------------------------------------------------------------

/** A line in the stroke style of a root; style 2 is hollow. */
function rootLine(kind: "wire" | "stripe", d: string, style: number, hue: string, more: string): Mark[] {
  const marks = [shape(d, `${kind}${style > 1 ? ` line${style}` : ""} ${hue}${more}`)];
  if (style === 2 && !more) marks.push(shape(d, "linein"));
  return marks;
}

/** A wire of one root along path data. */
export function wire(d: string, style: number, hue: string, look: "" | "gone" | "dim" = "", thin = false): Mark[] {
  return rootLine("wire", d, style, hue, `${look && ` ${look}`}${thin ? " thin" : ""}`);
}

/** A root's stripe at the left of a card. */
export function stripe(x: number, y0: number, y1: number, style: number, hue: string, gone = false): Mark[] {
  return rootLine("stripe", path`M${x} ${y0}V${y1}`, style, hue, gone ? " gone" : "");
}

export function arrowhead(x: number, y: number, hue: string): Mark {
  return shape(path`M${x - 3.6} ${y + 6}L${x} ${y}L${x + 3.6} ${y + 6}Z`, `solid ${hue}`);
}
