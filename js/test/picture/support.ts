/** Fixtures and what the tests of the picture ask of a scene. */

import { readFileSync } from "node:fs";
import type { Mark } from "../../src/picture/marks.ts";
import { measureByTable } from "../../src/picture/measure.ts";
import type { Graph } from "../../src/picture/model.ts";
import { type DrawOptions, sceneOf } from "../../src/picture/picture.ts";
import type { Item, Scene } from "../../src/picture/scene/types.ts";
import { styleOf } from "../../src/picture/tokens.ts";
import { decode } from "../../src/picture/wire.ts";

export const FIXTURES = ["second_backward", "two_losses", "one_call", "stale", "leak", "hooks", "empty"] as const;

export function wireText(name: string): string {
  return readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), "utf8");
}

export function graphOf(name: string): Graph {
  return decode(wireText(name));
}

export function sceneOfFixture(name: string, options: DrawOptions = {}): Scene {
  return sceneOf(graphOf(name), options);
}

export function byKey(scene: Scene, key: string): Item {
  const found = scene.items.find((item) => item.key === key);
  if (!found) throw new Error(`no item ${key} among ${scene.items.map((item) => item.key).join(" ")}`);
  return found;
}

export interface TextBox {
  text: string;
  size: number;
  x: number;
  y: number;
  w: number;
  h: number;
  item: string;
}

type TextMark = Extract<Mark, { kind: "text" }>;

/** Boxes of all texts, as wide as they are measured, as high as their capitals and descenders. */
export function textBoxes(scene: Scene): TextBox[] {
  return scene.items.flatMap((item) =>
    item.marks
      .filter((mark): mark is TextMark => mark.kind === "text" && mark.text !== "")
      .map((mark) => {
        const size = styleOf(mark.classes).size ?? 12;
        const w = measureByTable(mark.text, mark.classes);
        const left = mark.anchor === "end" ? w : mark.anchor === "middle" ? w / 2 : 0;
        return {
          text: mark.text,
          size,
          x: item.x + mark.x - left,
          y: item.y + mark.y - size * 0.75,
          w,
          h: size * 0.95,
          item: item.key,
        };
      }),
  );
}

export function texts(item: Item): string[] {
  return item.marks.filter((mark): mark is TextMark => mark.kind === "text").map((mark) => mark.text);
}

/** Classes of an item's marks, one entry per mark. */
export function classes(item: Item): string[] {
  return item.marks.map((mark) => mark.classes);
}

/** Points along the first line of a wire, some 2 px apart. */
export function alongWire({ x, y, marks }: Item): { x: number; y: number }[] {
  const line = marks[0] as Extract<Mark, { kind: "path" }>;
  const points: { x: number; y: number }[] = [];
  for (const [, command, numbers] of line.d.matchAll(/([MVHC])([^MVHC]*)/g)) {
    const to = numbers!.match(/-?[\d.]+/g)!.map(Number);
    const from = points.at(-1);
    if (!from) {
      points.push({ x: x + to[0]!, y: y + to[1]! });
      continue;
    }
    const ends: Record<string, [number, number]> = { V: [from.x, y + to[0]!], H: [x + to[0]!, from.y] };
    const [bx, by] = ends[command!] ?? [x + to[4]!, y + to[5]!];
    const [cx, cy, dx, dy] =
      command === "C" ? [x + to[0]!, y + to[1]!, x + to[2]!, y + to[3]!] : [from.x, from.y, bx, by];
    const steps = Math.ceil((Math.abs(bx - from.x) + Math.abs(by - from.y)) / 2);
    for (let i = 1; i <= steps; i++) {
      const t = i / steps;
      const mix = (a: number, b: number, c: number, d: number) =>
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
      points.push({ x: mix(from.x, cx, dx, bx), y: mix(from.y, cy, dy, by) });
    }
  }
  return points;
}
