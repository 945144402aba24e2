/** A scene as a bitmap, for places that show PNG only; the same marks and styles as everywhere, without a browser. */

import type { Mark } from "../picture/marks.ts";
import type { Scene } from "../picture/scene/types.ts";
import { type Style, styleOf, type Theme, type Token, tokenValue } from "../picture/tokens.ts";
import { Bitmap, type Mask, type Rgb } from "./bitmap.ts";
import { advance, type Face, letter } from "./letters.ts";
import { dashed, type Line, linesOf, roundedRect, strokeOf } from "./outline.ts";

type TextMark = Extract<Mark, { kind: "text" }>;

function rgb(token: Token, theme: Theme): Rgb {
  const value = Number.parseInt(tokenValue(token, theme).slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function faceOf({ font, weight }: Style): Face {
  const bold = (weight ?? 400) > 400;
  if (font === "mono") return bold ? "mono-bold" : "mono";
  return bold ? "ui-bold" : "ui";
}

class Painter {
  readonly bitmap: Bitmap;
  readonly #scale: number;
  readonly #inks = new Map<Token, number>();
  readonly #theme: Theme;
  readonly #masks = new Map<string, Mask>();

  constructor(width: number, height: number, scale: number, theme: Theme) {
    this.#scale = scale;
    this.#theme = theme;
    this.bitmap = new Bitmap(Math.ceil(width * scale), Math.ceil(height * scale), rgb("bg", theme));
  }

  /** Draws a mark of an item whose top left is at x, y. */
  draw(mark: Mark, x: number, y: number): void {
    if (mark.kind === "text") this.#text(mark, x, y);
    else if (mark.kind === "path") this.#shape(linesOf(mark.d, this.#scale), mark.classes, x, y);
    else {
      const { x: left, y: top, w, h, r = 0 } = mark;
      this.#shape(roundedRect(left, top, w, h, r, this.#scale), mark.classes, x, y);
    }
  }

  #ink(token: Token): number {
    let ink = this.#inks.get(token);
    if (ink === undefined) {
      ink = this.bitmap.colour(rgb(token, this.#theme));
      this.#inks.set(token, ink);
    }
    return ink;
  }

  #shape(lines: Line[], classes: string, x: number, y: number): void {
    const { fill, stroke, width = 1, dash, cap } = styleOf(classes);
    const k = this.#scale;
    for (const { points } of lines)
      for (let i = 0; i < points.length; i += 2) {
        points[i]! += x * k;
        points[i + 1]! += y * k;
      }
    if (fill && fill !== "none")
      this.bitmap.fill(
        lines.map(({ points }) => points),
        this.#ink(fill as Token),
      );
    if (!stroke || stroke === "none") return;
    const pieces = dash
      ? lines.flatMap((line) =>
          dashed(
            line,
            dash.map((length) => length * k),
          ),
        )
      : lines;
    const round = cap === "round";
    this.bitmap.fill(
      pieces.flatMap((line) => strokeOf(line, width * k, round)),
      this.#ink(stroke as Token),
    );
  }

  #text({ x, y, text, classes, anchor, runs }: TextMark, left: number, top: number): void {
    const parts = (runs ?? [{ text, classes: "" }]).map((run) => {
      const style = styleOf(run.classes ? `${classes} ${run.classes}` : classes);
      return { letters: [...run.text], face: faceOf(style), size: (style.size ?? 12) * this.#scale, style };
    });
    const width = parts.reduce((sum, { letters, face, size }) => sum + lengthOf(letters, face, size), 0);
    let at = (left + x) * this.#scale - (anchor === "middle" ? width / 2 : anchor === "end" ? width : 0);
    const base = Math.round((top + y) * this.#scale);
    for (const { letters, face, size, style } of parts) {
      const { fill } = style;
      const ink = this.#ink(fill && fill !== "none" ? (fill as Token) : "ink");
      for (const one of letters) {
        if (one !== " ") this.bitmap.stamp(this.#mask(face, one, size), Math.round(at), base, ink);
        at += advance(face, one) * size;
      }
    }
  }

  #mask(face: Face, character: string, size: number): Mask {
    const key = `${face} ${size} ${character}`;
    let mask = this.#masks.get(key);
    if (!mask) {
      // Drawn once somewhere in the bitmap where it fits, then stamped.
      const [x, y] = [Math.ceil(size), Math.ceil(1.5 * size)];
      mask = this.bitmap.mask(letter(face, character, x, y, size), x, y);
      this.#masks.set(key, mask);
    }
    return mask;
  }
}

const lengthOf = (letters: readonly string[], face: Face, size: number) =>
  letters.reduce((sum, one) => sum + advance(face, one) * size, 0);

/** Draws a scene; `scale`: pixels for one px. */
export function rasterOf(scene: Scene, scale: number, theme: Theme): Bitmap {
  const { left, top, width, height, items } = scene;
  const painter = new Painter(width, height, scale, theme);
  for (const item of items) for (const mark of item.marks) painter.draw(mark, item.x - left, item.y - top);
  return painter.bitmap;
}
