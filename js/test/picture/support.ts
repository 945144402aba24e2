/** Fixtures and what the tests of the picture ask of a scene. */
import { readFileSync } from "node:fs";
import { measureByTable } from "../../src/picture/measure.ts";
import type { Graph } from "../../src/picture/model.ts";
import { type DrawOptions, sceneOf } from "../../src/picture/picture.ts";
import type { Item, Mark, Scene } from "../../src/picture/scene.ts";
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

type TextMark = Extract<Mark, { t: "text" }>;

/** Boxes of all texts, as wide as they are measured, as high as their capitals and descenders. */
export function textBoxes(scene: Scene): TextBox[] {
  return scene.items.flatMap((item) =>
    item.marks
      .filter((mark): mark is TextMark => mark.t === "text" && mark.s !== "")
      .map((mark) => {
        const size = styleOf(mark.c).size ?? 12;
        const w = measureByTable(mark.s, mark.c);
        const left = mark.anchor === "end" ? w : mark.anchor === "middle" ? w / 2 : 0;
        return {
          text: mark.s,
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
  return item.marks.filter((mark): mark is TextMark => mark.t === "text").map((mark) => mark.s);
}

/** Classes of an item's marks, one entry per mark. */
export function classes(item: Item): string[] {
  return item.marks.map((mark) => mark.c);
}
