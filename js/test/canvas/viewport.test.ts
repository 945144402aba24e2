/** What part of the picture is seen: zooming, bringing into view, the first look. */
import { expect, test } from "vitest";
import { Viewport } from "../../src/canvas/viewport.ts";

test("zooming keeps the point under the pointer where it is", () => {
  const viewport = new Viewport(() => {});
  viewport.pan(13, -7);
  const before = viewport.toWorld(200, 120);
  viewport.zoom(1.7, 200, 120);
  const after = viewport.toWorld(200, 120);
  expect(after[0]).toBeCloseTo(before[0]);
  expect(after[1]).toBeCloseTo(before[1]);
});

test("bringing a box into view moves only as far as needed", () => {
  const viewport = new Viewport(() => {});
  expect(viewport.show({ x: 100, y: 100, w: 50, h: 20 })).toBe(false);
  expect(viewport.show({ x: 590, y: 100, w: 50, h: 20 })).toBe(true);
  expect(viewport.toScreen(640, 100)[0]).toBeCloseTo(600 - 16);
});

test("a first look stays readable, and shows everything once that was asked for, also of the next picture", () => {
  const viewport = new Viewport(() => {});
  const high = { x: 0, y: 0, w: 300, h: 2000 };
  const loss = { x: 100, y: 1960, w: 60, h: 22 };
  viewport.go(viewport.aim(high, loss));
  expect(viewport.scale).toBeGreaterThan(0.55);
  expect(viewport.toScreen(0, 0)[1]).toBeLessThan(0);
  expect(viewport.toScreen(0, 1960)[1]).toBeLessThan(viewport.height);
  viewport.fits = true;
  viewport.go(viewport.aim(high, loss));
  expect(viewport.toScreen(0, 0)[1]).toBeGreaterThanOrEqual(0);
  expect(viewport.toScreen(0, 2000)[1]).toBeLessThanOrEqual(viewport.height);
});
