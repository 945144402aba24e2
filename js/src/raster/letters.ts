/** Letters as polygons, from outlines that come with this code: DejaVu Sans Condensed and DejaVu Sans Mono. */

import glyphs from "./glyphs.json";
import type { Points } from "./outline.ts";

/** Units of the outlines in one em, as js/dev/glyphs.py writes them. */
const EM = 512;
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";
const VALUE = new Map([...DIGITS].map((digit, value) => [digit, value]));
/** Drawn for a character without an outline. */
const UNKNOWN = "\ufffd";

export type Face = keyof typeof glyphs;

const outlines = new Map<Face, Map<string, string>>();

function outlinesOf(face: Face): Map<string, string> {
  let found = outlines.get(face);
  if (!found) {
    const { characters, outlines: texts } = glyphs[face];
    const all = texts.split(" ");
    found = new Map([...characters].map((character, i) => [character, all[i]!]));
    outlines.set(face, found);
  }
  return found;
}

const textOf = (face: Face, character: string) => outlinesOf(face).get(character) ?? outlinesOf(face).get(UNKNOWN)!;
const numberAt = (text: string, at: number) => 64 * VALUE.get(text[at]!)! + VALUE.get(text[at + 1]!)! - 2048;

/** Distance to the next letter, in em. */
export function advance(face: Face, character: string): number {
  return numberAt(textOf(face, character), 0) / EM;
}

/** The outline of a letter at x, y on the base line, `size` px high. */
export function letter(face: Face, character: string, x: number, y: number, size: number): Points[] {
  const text = textOf(face, character);
  const k = size / EM;
  const polygons: Points[] = [];
  let [px, py] = [0, 0];
  for (let at = 2; at < text.length; ) {
    const count = numberAt(text, at);
    at += 2;
    const corners: Corner[] = [];
    for (let i = 0; i < count; i++, at += 4) {
      const dx = numberAt(text, at);
      px += dx >> 1;
      py += numberAt(text, at + 2);
      corners.push({ x: x + px * k, y: y - py * k, on: (dx & 1) === 1 });
    }
    polygons.push(smooth(corners, size));
  }
  return polygons;
}

interface Corner {
  x: number;
  y: number;
  on: boolean;
}

/** A contour of TrueType: between two points off the curve lies one on it. */
function smooth(corners: readonly Corner[], size: number): Points {
  const steps = size > 30 ? 4 : size > 15 ? 3 : 2;
  const n = corners.length;
  const middle = (a: Corner, b: Corner): Corner => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, on: true });
  const points: Points = [];
  for (let i = 0; i < n; i++) {
    const at = corners[i]!;
    if (at.on) {
      points.push(at.x, at.y);
      continue;
    }
    const [before, after] = [corners[(i + n - 1) % n]!, corners[(i + 1) % n]!];
    const from = before.on ? before : middle(before, at);
    const to = after.on ? after : middle(at, after);
    if (!before.on) points.push(from.x, from.y);
    for (let step = 1; step < steps; step++) {
      const t = step / steps;
      const u = 1 - t;
      points.push(u * u * from.x + 2 * u * t * at.x + t * t * to.x, u * u * from.y + 2 * u * t * at.y + t * t * to.y);
    }
  }
  return points;
}
