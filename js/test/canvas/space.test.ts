import { expect, test, vi } from "vitest";
import { isFocusable, Space } from "../../src/canvas/space.ts";
import { drive } from "../../src/page/drive.ts";
import type { Item } from "../../src/picture/scene/types.ts";
import { runSlices } from "../../src/picture/slices.ts";
import { FIXTURES, sceneOfFixture } from "../picture/support.ts";

function spaceOf(items: Item[]): Space {
  return runSlices(new Space({ left: 0, top: 0, width: 4000, height: 4000, items, rail: 0, look: () => {} }).fill());
}

/** Items all over a picture of 4000 x 4000, in no order. */
function scattered(n: number): Item[] {
  return Array.from({ length: n }, (_, i) => {
    const [x, y] = [(i * 7919) % 3900, (i * 104729) % 3900];
    const role = i % 5 === 0 ? "note" : "node";
    return { key: `n${i}`, role, x, y, w: 40 + (i % 60), h: 20 + (i % 700), marks: [] };
  });
}

test("asking for a part of the picture finds all that touches it, in drawing order", () => {
  const items = scattered(400);
  const space = spaceOf(items);
  for (const area of [
    { x: 0, y: 0, w: 10, h: 10 },
    { x: 700, y: 1200, w: 900, h: 600 },
    { x: -500, y: 3500, w: 6000, h: 200 },
  ]) {
    const found = runSlices(space.within(area));
    const touching = items.filter(
      ({ x, y, w, h }) => x < area.x + area.w && area.x < x + w && y < area.y + area.h && area.y < y + h,
    );
    expect(touching.filter((item) => !found.includes(item))).toEqual([]);
    expect(found).toEqual(items.filter((item) => found.includes(item)));
  }
});

test("a very large item is found everywhere, whatever is asked for", () => {
  const hull: Item = { key: "hull", role: "hull", x: 0, y: 0, w: 9000, h: 90_000, marks: [] };
  expect(runSlices(spaceOf([hull, ...scattered(9)]).within({ x: 2500, y: 70_000, w: 5, h: 5 }))).toContain(hull);
});

test("the card at a point is the one drawn last, and nothing that is no card", () => {
  const items = scattered(300);
  const space = spaceOf(items);
  let hits = 0;
  for (let x = 3; x < 4000; x += 157)
    for (let y = 3; y < 4000; y += 157) {
      const under = items.filter(
        (item) => isFocusable(item) && x >= item.x && x <= item.x + item.w && y >= item.y && y <= item.y + item.h,
      );
      expect(space.at(x, y)).toBe(under.at(-1));
      hits += under.length;
    }
  expect(hits).toBeGreaterThan(50);
});

test("the extent takes in everything, the buttons below a root too", () => {
  for (const name of FIXTURES) {
    const scene = sceneOfFixture(name, { buttons: true });
    const { x, y, w, h } = runSlices(new Space(scene).fill()).content;
    for (const item of scene.items) {
      const bottom = item.y + (item.buttons ? item.buttons.y + item.buttons.h : item.h);
      expect([item.x >= x, item.y >= y, item.x + item.w <= x + w, bottom <= y + h], item.key).toEqual(
        Array(4).fill(true),
      );
    }
  }
});

function* steps(n: number, done: number[]): Generator<void, string> {
  for (let i = 0; i < n; i++) {
    done.push(i);
    yield;
  }
  return "whole";
}

test("short work is done at once; long work lets others in between and is given up when nobody wants it", async () => {
  const clock = vi.spyOn(performance, "now");
  let now = 0;
  clock.mockImplementation(() => now);
  const done: number[] = [];
  const short = drive(steps(5, done), () => true);
  expect(done).toEqual([0, 1, 2, 3, 4]); // before anybody has waited for it
  expect(await short).toBe("whole");

  clock.mockImplementation(() => (now += 10)); // each step takes longer than a slice
  let pauses = 0;
  expect(
    await drive(
      steps(4, []),
      () => true,
      () => pauses++,
    ),
  ).toBe("whole");
  expect(pauses).toBe(4);
  const begun: number[] = [];
  expect(await drive(steps(100, begun), () => begun.length < 3)).toBeNull();
  expect(begun).toEqual([0, 1, 2]);
  clock.mockRestore();
});
