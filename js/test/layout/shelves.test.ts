/** Graphs that share nothing: beside each other while there is room, else below each other. */
import { expect, test } from "vitest";
import { layout } from "../../src/picture/layout/index.ts";
import { partsOf, shelvedSlices } from "../../src/picture/layout/shelves.ts";
import type { LayoutInput, LayoutOutput } from "../../src/picture/layout/types.ts";
import { runSlices } from "../../src/picture/slices.ts";

/** Chains of these lengths, side by side. */
function chains(...lengths: number[]): LayoutInput {
  const edges: number[] = [];
  let n = 0;
  for (const length of lengths) {
    for (let i = 1; i < length; i++) edges.push(n + i, n + i - 1);
    n += length;
  }
  const all = (value: number) => new Float32Array(n).fill(value);
  return { n, width: all(100), height: all(40), edges: Int32Array.from(edges), ranksep: 16, nodesep: 12 };
}

const shelved = (input: LayoutInput): LayoutOutput => runSlices(shelvedSlices(input));

test("with room for all, nothing changes", () => {
  const input = chains(3, 2, 4);
  expect(shelved({ ...input, most: 1000 })).toEqual(layout(input));
});

test("without room, parts stand below each other, no two boxes touch, and routes end at their boxes", () => {
  const input = chains(3, 2, 4, 1);
  const { x, y, rank, route, routeStart, left, top, width, height } = shelved({ ...input, most: 230 });
  expect(width).toBeLessThanOrEqual(230);
  for (let a = 0; a < input.n; a++) {
    expect(x[a]! - 50).toBeGreaterThanOrEqual(left - 0.5);
    expect(y[a]! + 20).toBeLessThanOrEqual(top + height + 0.5);
    for (let b = 0; b < a; b++)
      expect(Math.abs(x[a]! - x[b]!) >= 100 || Math.abs(y[a]! - y[b]!) >= 40, `${a} and ${b}`).toBe(true);
  }
  for (let e = 0; e < input.edges.length / 2; e++) {
    const [from, to] = [input.edges[2 * e]!, input.edges[2 * e + 1]!];
    expect(rank[from]! - rank[to]!).toBe(1);
    const [fromX, , , toY] = [route[routeStart[e]!]!, 0, 0, route[routeStart[e + 1]! - 1]!];
    expect(Math.abs(fromX - x[from]!)).toBeLessThan(50);
    expect(Math.abs(toY - y[to]!)).toBeLessThan(25);
  }
});

test("what is connected is never divided", () => {
  const input = { ...chains(2, 2, 2), edges: Int32Array.from([1, 0, 1, 2, 3, 2, 5, 4]) };
  expect([...partsOf(input)]).toEqual([0, 0, 0, 0, 1, 1]);
  const { rank } = shelved({ ...input, most: 150 });
  const other = [...rank.subarray(4, 6)];
  expect([...rank.subarray(0, 4)].filter((row) => other.includes(row))).toEqual([]);
});

test("a shelf that stands stays where it is when a part is added", () => {
  const input = { ...chains(2, 2), most: 150 };
  const before = shelved(input);
  const more = { ...chains(2, 2, 2), most: 150 };
  const some = (of: Float32Array) => Float32Array.from({ length: 6 }, (_, v) => of[v] ?? Number.NaN);
  const after = shelved({ ...more, previous: { x: some(before.x), y: some(before.y) } });
  expect([...after.x.subarray(0, 4)]).toEqual([...before.x]);
  expect([...after.y.subarray(0, 4)]).toEqual([...before.y]);
});
