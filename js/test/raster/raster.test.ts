/** Polygons, strokes and letters as pixels: areas are exact, also where shapes overlap or lie outside. */
import { expect, it } from "vitest";
import { sceneOf } from "../../src/picture/picture.ts";
import { decode } from "../../src/picture/wire.ts";
import { Bitmap, type Rgb } from "../../src/raster/bitmap.ts";
import { rasterOf } from "../../src/raster/index.ts";
import { advance, letter } from "../../src/raster/letters.ts";
import { dashed, linesOf, roundedRect, strokeOf } from "../../src/raster/outline.ts";
import { FIXTURES, wireText } from "../picture/support.ts";

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];

/** A bitmap with polygons in black, and how much black there is, in cells. */
function filled(polygons: number[][], size = 40): { bitmap: Bitmap; area: number } {
  const bitmap = new Bitmap(size, size, WHITE);
  bitmap.fill(polygons, bitmap.colour(BLACK));
  return { bitmap, area: bitmap.pixels.reduce((sum, pixel) => sum + (255 - bitmap.palette[pixel]![0]) / 255, 0) };
}

const polygonsOf = (d: string) => linesOf(d, 1).map(({ points }) => points);

it("fills exactly what a polygon covers, with half-covered cells at its edge", () => {
  expect(filled([[2, 3, 12, 3, 12, 8, 2, 8]]).area).toBe(50);
  const { bitmap, area } = filled([[2.5, 3, 12.5, 3, 12.5, 8, 2.5, 8]]);
  expect(area).toBeCloseTo(50, 0);
  expect(bitmap.palette[bitmap.pixels[5 * 40 + 2]!]![0]).toBeCloseTo(128, -1);
  expect(filled([[1, 1, 21, 1, 1, 11]]).area).toBeCloseTo(100, 0);
});

it("leaves holes, and adds nothing where shapes of one turn overlap", () => {
  const outer = [0, 0, 20, 0, 20, 20, 0, 20];
  expect(filled([outer, [5, 5, 5, 15, 15, 15, 15, 5]]).area).toBe(300);
  expect(filled([outer, [5, 5, 15, 5, 15, 15, 5, 15]]).area).toBe(400);
});

it("cuts off what lies outside", () => {
  expect(filled([[-10, -10, 10, -10, 10, 10, -10, 10]]).area).toBe(100);
  expect(filled([[30, 30, 90, 30, 90, 90, 30, 90]]).area).toBe(100);
  expect(filled([[50, 50, 90, 50, 90, 90]]).area).toBe(0);
});

it("knows the commands of the marks", () => {
  expect(filled(polygonsOf("M5 5H15V10L5 10Z")).area).toBe(50);
  expect(filled(polygonsOf("M5 10A5 5 0 0 0 15 10Z")).area).toBeCloseTo((Math.PI * 25) / 2, -1);
  expect(filled(polygonsOf("M0 0Q10 0 10 10L0 10Z")).area).toBeGreaterThan(75);
  expect(filled(polygonsOf("M0 0C0 10 10 10 10 0Z")).area).toBeCloseTo(60, -1);
  const [round] = roundedRect(5, 5, 20, 20, 10, 1);
  expect(filled([round!.points]).area).toBeCloseTo(Math.PI * 100, -1);
});

it("draws every command that occurs in a picture", () => {
  const used = new Set<string>();
  for (const name of FIXTURES)
    for (const { marks } of sceneOf(decode(wireText(name))).items)
      for (const mark of marks) if (mark.kind === "path") for (const c of mark.d.replace(/[^A-Za-z]/g, "")) used.add(c);
  expect([...used].filter((command) => !"MLHVCQAZ".includes(command))).toEqual([]);
});

it("gives a line its width, its dashes and its round ends", () => {
  const [line] = linesOf("M5 20H35", 1);
  expect(filled(strokeOf(line!, 4, false)).area).toBe(120);
  expect(filled(strokeOf(line!, 4, true)).area).toBeCloseTo(120 + Math.PI * 4, -1);
  const dashes = dashed(line!, [5, 3]);
  expect(dashes).toHaveLength(4);
  expect(filled(dashes.flatMap((each) => strokeOf(each, 4, false))).area).toBeCloseTo(4 * (3 * 5 + 5 + 1) - 4, -1);
});

it("has letters of different widths, and a sign for what it does not know", () => {
  const area = (character: string) => filled(letter("ui", character, 5, 30, 24)).area;
  expect(advance("ui", "i")).toBeLessThan(advance("ui", "W"));
  expect(advance("mono", "i")).toBe(advance("mono", "W"));
  expect(area("M")).toBeGreaterThan(area("i"));
  expect(filled(letter("ui-bold", "M", 5, 30, 24)).area).toBeGreaterThan(area("M"));
  expect(area("漢")).toBe(area("\ufffd"));
  expect(area("②")).toBeGreaterThan(10);
});

it("never has more colours than a palette has room for", () => {
  for (const name of FIXTURES)
    for (const theme of ["light", "dark"] as const) {
      const { palette, pixels } = rasterOf(sceneOf(decode(wireText(name))), 1, theme);
      expect(palette.length).toBeLessThanOrEqual(256);
      expect(pixels.includes(0)).toBe(false);
    }
});
