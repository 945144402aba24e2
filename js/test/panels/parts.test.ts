/** What panels compute: short paths, places of buttons, facts in words. */
import { expect, test } from "vitest";
import { shortPath } from "../../src/panels/findings.tsx";
import { pack } from "../../src/panels/packing.ts";
import { facts } from "../../src/state/say.ts";

test("a long path keeps its first and its last three elements", () => {
  expect(shortPath(["a", "b", "c", "d", "e"])).toEqual(["a", "b", "c", "d", "e"]);
  expect(shortPath(["a", "b", "c", "d", "e", "f"])).toEqual(["a", { more: ["b", "c"] }, "d", "e", "f"]);
});

test("buttons of neighbouring roots never cover each other and stay inside", () => {
  const wishes = [0, 60, 90, 500, 520].map((x) => ({ x, y: 390, w: 180, h: 24 }));
  const placed = pack(wishes, [], 600, 400);
  placed.forEach((a, i) => {
    expect(a.x).toBeGreaterThanOrEqual(4);
    expect(a.x + 180).toBeLessThanOrEqual(596);
    placed.slice(i + 1).forEach((b) => {
      expect(Math.abs(a.x - b.x) >= 180 || Math.abs(a.y - b.y) >= 24).toBe(true);
    });
  });
});

test("buttons stay off the names of roots, and rather go down than up", () => {
  const flags = [100, 210].map((x) => ({ x, y: 200, w: 90, h: 20 }));
  const wishes = flags.map(({ x, y }) => ({ x: x - 60, y: y + 26, w: 210, h: 24 }));
  const [first, second] = pack(wishes, flags, 400, 400);
  expect(first).toEqual(wishes[0]);
  expect(second!.y).toBeGreaterThan(first!.y + 24);
  const [only] = pack([{ x: 60, y: 390, w: 210, h: 24 }], [{ x: 90, y: 374, w: 90, h: 20 }], 400, 400);
  expect(only!.y + 24 <= 374 || only!.x >= 180).toBe(true);
});

test("the facts count what is alive: neither nodes nor leaves that are gone", () => {
  const graph = {
    n: 4,
    ghost: [0, 0, 1, 1],
    leaves: new Map([1, 3].map((node) => [node, {}])),
    slotStart: [0, 1, 1, 2, 2],
    slotState: [1, 1],
    slotBytes: [8, 16],
    roots: [],
    held: 0,
  };
  expect(facts(graph as never, 0)).toBe("0 B held, 1 tensor freed · 1 node, 1 leaf");
});
