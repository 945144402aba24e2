/** Text widths. The page measures with a canvas; without one, widths come from Arial's table, with some slack. */

import { styleOf } from "./tokens.ts";

/** Width in px of `text` in a CSS font shorthand such as `600 11.5px Menlo`. */
export type MeasureFont = (text: string, font: string) => number;

/** Width in px of `text` drawn with the text classes `classes`. */
export type Measure = (text: string, classes: string) => number;

/** Advance widths of Arial in 18ths of an em, one base 36 digit for each character from space (32) to tilde (126). */
const ARIAL = "557aagc4667b5655aaaaaaaaaa55bbbajccddcbed59cafdecedcbdchccb5559a6aa9aa5aa4494faaaa695a9d999656b";
/** Factor: other fonts that a viewer may have are up to this much wider than Arial. */
const SLACK = 1.08;
const BOLD = 1.07;
/** DejaVu Sans Mono and Menlo; Consolas is narrower. */
const MONO = 0.602;
const WIDE = 1;

function isWide(code: number): boolean {
  return code >= 0x1100 && (code <= 0x115f || (code >= 0x2e80 && code <= 0xffdc) || code >= 0x1f300);
}

/** Widths without a canvas: at least those of Arial, Helvetica and DejaVu Sans Mono. */
export function measureByTable(text: string, classes: string): number {
  const style = styleOf(classes);
  const mono = style.font === "mono";
  let em = 0;
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (isWide(code)) em += WIDE;
    else if (mono) em += MONO;
    else em += (Number.parseInt(ARIAL[code - 32] ?? "b", 36) / 18) * ((style.weight ?? 400) > 400 ? BOLD : 1) * SLACK;
  }
  return em * (style.size ?? 12);
}

/** Widths before the page's fonts are known: all letters are as wide as letters of code. */
export const measureAsCode: Measure = (text, classes) => MONO * text.length * (styleOf(classes).size ?? 12);

/** Widths from a canvas context or similar, cached by classes and text. */
export function measureByFont(width: MeasureFont, fonts: { ui: string; mono: string }): Measure {
  const known = new Map<string, Map<string, number>>();
  return (text, classes) => {
    let widths = known.get(classes);
    if (!widths) {
      widths = new Map();
      known.set(classes, widths);
    }
    let found = widths.get(text);
    if (found === undefined) {
      const style = styleOf(classes);
      found = width(text, `${style.weight ?? 400} ${style.size ?? 12}px ${fonts[style.font ?? "ui"]}`);
      if (widths.size > 5000) widths.clear();
      widths.set(text, found);
    }
    return found;
  };
}

/** Value of `end` that keeps both ends of a name. */
export const MIDDLE = 0.5;

/** `text` cut to `room` px, "" if not even a letter fits. `end`: share of the kept letters after the ellipsis. */
export function shorten(text: string, room: number, classes: string, measure: Measure, end = 0): string {
  if (measure(text, classes) <= room) return text;
  const cut = (keep: number) => {
    const last = Math.floor(keep * end);
    return `${text.slice(0, keep - last).trimEnd()}…${text.slice(text.length - last)}`;
  };
  let keep = 0;
  let top = text.length;
  while (keep < top) {
    const middle = (keep + top + 1) >> 1;
    if (measure(cut(middle), classes) <= room) keep = middle;
    else top = middle - 1;
  }
  return keep ? cut(keep) : "";
}
