/** Marks of the picture inside running text and tables: the same shapes, small. */

import { type Child, h } from "../page/dom.ts";
import { glyph } from "../page/marks.ts";
import {
  callNumberMark,
  rootDot as dotMark,
  type Mark,
  octagon,
  octagonOpen,
  rootLook,
  SLOT_LOOKS,
  type SlotLook,
  slot,
  tag,
  tagWidth,
  warning,
} from "../picture/marks.ts";
import { measureAsCode } from "../picture/measure.ts";
import { callNumber } from "../picture/words.ts";

/** `state`: a `SLOT` value, or a look that no slot has ("will": a forecast would free it). */
export function slotGlyph(state: number | SlotLook): SVGSVGElement {
  return glyph(slot(0, 0, SLOT_LOOKS[state as number] ?? (state as SlotLook)), 14, 11);
}

/** Marks of call n's number; `order` of the root whose hue it has, -1: none. */
export function callMarks(n: number, order: number, solid = false): Mark[] {
  return callNumberMark(0, 0, callNumber(n), order < 0 ? "r0" : rootLook(order).hue, solid);
}

export function callGlyph(n: number, order: number, aloud = `call ${callNumber(n)}`): SVGSVGElement {
  const props = { "aria-hidden": null, role: "img", "aria-label": aloud, class: "gw-glyph gw-callglyph" };
  return glyph(callMarks(n, order), 15, 15, "-7.5 -7.5", props);
}

export function octagonGlyph(forecast = false): SVGSVGElement {
  return glyph(forecast ? octagonOpen(8, 8, 6.5) : octagon(8, 8, 7), 16, 16);
}

export function warningGlyph(): SVGSVGElement {
  return glyph(warning(8, 8, 7), 16, 16);
}

export function rootDot(order: number): SVGSVGElement {
  const { hue, style } = rootLook(order);
  return glyph(dotMark(5, 5, style, hue), 10, 10);
}

/** A variable as a luggage tag. Its text is real text, so that it is read and found. */
export function tagGlyph(name: string, look: "" | "carrier" = ""): SVGSVGElement {
  const width = tagWidth(measureAsCode(name, "tagname"));
  const props = { "aria-hidden": null, class: "gw-glyph gw-tagglyph" };
  return glyph(tag(0.8, 0.8, name, width, look), Math.ceil(width) + 2, 21, "0 0", props);
}

export function checkGlyph(): SVGSVGElement {
  return glyph([{ t: "path", d: "M2.5 7l3.5 3.6L12.5 3", c: "tick" }], 15, 14);
}

/** Text in which `code` between backticks is code, and a call's number (① or "call 11", "Call 11") looks as in the picture. */
export function prose(value: string, orderOf: (n: number) => number = () => -1): Child[] {
  return value.split(/(`[^`]+`|[①-⑩]|\bcall \d+\b)/i).map((part, i) => {
    if (i % 2 === 0) return part;
    if (part[0] === "`") return h("code", part.slice(1, -1));
    const number = part.slice(5);
    const n = number ? Number(number) - 1 : part.charCodeAt(0) - 0x2460;
    return number ? [part.slice(0, 5), callGlyph(n, orderOf(n), number)] : callGlyph(n, orderOf(n));
  });
}
