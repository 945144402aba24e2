/** The first phases: which way edges go, rows, dummies. */
import { describe, expect, test } from "vitest";
import { direct } from "../../src/picture/layout/direct.ts";
import { longestPath, rankBoxes, rowsAt, sinkToUsers } from "../../src/picture/layout/ranks.ts";
import type { LayoutInput } from "../../src/picture/layout/types.ts";
import { random } from "../graphs/index.ts";
import { finish, input, layers, somePairs } from "./support.ts";

describe("direction", () => {
  test("the order has every box after what it uses", () => {
    const { order } = finish(
      direct(
        input(4, [
          [3, 1],
          [3, 2],
          [1, 0],
          [2, 0],
        ]),
      ),
    );
    expect([...order]).toEqual([0, 1, 2, 3]);
  });

  test("edges of a cycle that run against the order are left out, and so is a loop", () => {
    const graph = finish(
      direct(
        input(3, [
          [0, 1],
          [1, 2],
          [2, 0],
          [1, 1],
        ]),
      ),
    );
    expect([...graph.order].sort()).toEqual([0, 1, 2]);
    const kept = [0, 1, 2].filter((e) => graph.lower[e] >= 0);
    expect(kept.length).toBeGreaterThan(0);
    for (const e of kept)
      expect(graph.order.indexOf(graph.lower[e])).toBeGreaterThan(graph.order.indexOf(graph.upper[e]));
    expect(graph.lower[3]).toBe(-1);
  });
});

describe("ranks", () => {
  const ranks = (n: number, pairs: [number, number][], more: Partial<LayoutInput> = {}) => {
    const asked = input(n, pairs, more);
    return [...finish(rankBoxes(finish(direct(asked)), asked))];
  };

  test("count from the inputs", () => {
    expect(
      ranks(3, [
        [1, 0],
        [2, 1],
      ]),
    ).toEqual([0, 1, 2]);
  });

  test("a parameter stands just above its use, with its preparation and whatever else hangs on it", () => {
    const chain: [number, number][] = [
      [1, 0],
      [2, 1],
      [3, 2],
    ];
    expect(ranks(7, [...chain, [3, 4], [4, 5], [4, 6]])).toEqual([0, 1, 2, 3, 2, 1, 1]);
  });

  test("a box with more inputs than users stays near its inputs", () => {
    const pairs: [number, number][] = [
      [2, 0],
      [2, 1],
      [3, 0],
      [4, 3],
      [5, 4],
      [6, 5],
      [6, 2],
      [3, 1],
    ];
    expect(ranks(7, pairs)[2]).toBe(1);
  });

  test("no set of boxes of a small picture can move to make its edges shorter", () => {
    // The sum is convex and the least lengths are differences: where no set gains by a row, nothing gains.
    const next = random(6);
    const length = (rank: ArrayLike<number>, pairs: [number, number][]) =>
      pairs.reduce((sum, [low, high]) => sum + rank[low] - rank[high], 0);
    let shorter = 0;
    for (let round = 0; round < 100; round++) {
      const n = 7 + (round % 5);
      const pairs = somePairs(next, n, n + (round % 4));
      const graph = finish(direct(input(n, pairs)));
      const rank = finish(rankBoxes(graph, input(n, pairs)));
      const sunk = new Int32Array(n);
      longestPath(graph, sunk, (_, row) => row);
      sinkToUsers(graph, sunk, null, (_, row) => row);
      expect(Math.min(...rank)).toBe(0);
      for (const [low, high] of pairs) expect(rank[low]).toBeGreaterThan(rank[high]);
      shorter += Number(length(rank, pairs) < length(sunk, pairs));
      for (let set = 1; set < 1 << n; set++) {
        for (const by of [-1, 1]) {
          const moved = Array.from(rank, (row, v) => row + (set & (1 << v) ? by : 0));
          if (pairs.every(([low, high]) => moved[low] > moved[high]))
            expect(length(moved, pairs)).toBeGreaterThanOrEqual(length(rank, pairs));
        }
      }
    }
    expect(shorter).toBeGreaterThan(5);
  });

  test("low: edges are as short, and boxes with slack lower", () => {
    const next = random(5);
    let lower = 0;
    for (let round = 0; round < 60; round++) {
      const n = 12 + (round % 9);
      const pairs = somePairs(next, n, n + (round % 7));
      const graph = finish(direct(input(n, pairs)));
      const [high, low] = [false, true].map((way) => finish(rankBoxes(graph, input(n, pairs), way)));
      const sum = (rank: Int32Array) => pairs.reduce((all, [a, b]) => all + rank[a] - rank[b], 0);
      for (const [a, b] of pairs) expect(low[a]).toBeGreaterThan(low[b]);
      expect(sum(low)).toBe(sum(high));
      lower += low.reduce((all, row, v) => all + row - high[v], 0);
    }
    expect(lower).toBeGreaterThan(0);
  });

  test("old boxes keep their rows, however new ones are appended", () => {
    const y = Float32Array.from([15, 65, 115, Number.NaN, Number.NaN]);
    const x = Float32Array.from([0, 0, 0, Number.NaN, Number.NaN]);
    const pairs: [number, number][] = [
      [1, 0],
      [2, 1],
      [3, 2],
      [4, 3],
      [4, 0],
    ];
    expect(ranks(5, pairs, { previous: { x, y } })).toEqual([0, 1, 2, 3, 4]);
    expect([...rowsAt(y)]).toEqual([0, 1, 2, -1, -1]);
  });

  test("a new box that is too high for a row of old ones takes the next with room", () => {
    // Rows at 15, 65 and 115 are 50 apart; 3 uses 0 and would stand beside 1.
    const previous = {
      x: Float32Array.from([0, 0, 0, Number.NaN]),
      y: Float32Array.from([15, 65, 115, Number.NaN]),
    };
    const pairs: [number, number][] = [
      [1, 0],
      [2, 1],
      [3, 0],
    ];
    const at = (height: number) => ranks(4, pairs, { previous, height: Float32Array.from([30, 30, 30, height]) })[3];
    expect(at(30)).toBe(1);
    // 20 px between rows; half of that is enough: 50 - 15 - 10 is the most that may stand out on each side.
    expect(at(50)).toBe(1);
    // Below the last row there is as much room as anybody wants.
    expect(at(52)).toBe(3);
  });

  test("no row stays empty", () => {
    // What stood in the upper row now hangs below what stood in the lower one.
    const previous = { x: new Float32Array(2), y: Float32Array.of(100, 0) };
    expect(ranks(2, [[1, 0]], { previous })).toEqual([0, 1]);
  });
});

describe("dummies", () => {
  const far: [number, number][] = [
    [1, 0],
    [2, 1],
    [3, 2],
    [4, 3],
  ];

  test("an edge over three rows has one in each row between, from top to bottom", () => {
    const { layered } = layers(5, [...far, [4, 0]]);
    expect(layered.items).toBe(8);
    const dummies = [...layered.dummy];
    expect(dummies.map((d) => layered.row[d])).toEqual([1, 2, 3]);
    expect(dummies.every((d) => layered.box[d] < 0)).toBe(true);
    expect([...layered.up.item.slice(layered.up.start[dummies[0]], layered.up.start[dummies[0] + 1])]).toEqual([0]);
  });

  test("every link joins neighbouring rows, whatever the budget", () => {
    const next = random(2);
    const pairs: [number, number][] = [];
    for (let v = 1; v < 200; v++) for (let k = 0; k < 3; k++) pairs.push([v, Math.floor(next() * v)]);
    for (const budget of [undefined, 2000, 200, 0]) {
      const { layered } = layers(200, pairs, budget);
      for (let v = 0; v < layered.items; v++) {
        for (let k = layered.up.start[v]; k < layered.up.start[v + 1]; k++) {
          expect(layered.row[layered.up.item[k]]).toBe(layered.row[v] - 1);
        }
      }
      expect(layered.up.item.length).toBe(layered.down.item.length);
    }
  });

  test("beyond the budget only the short edges have dummies", () => {
    const pairs: [number, number][] = [];
    for (let v = 1; v < 100; v++) pairs.push([v, v - 1]);
    for (let v = 2; v < 100; v++) pairs.push([v, 0]);
    expect(layers(100, pairs).layered.dummy.length).toBe((98 * 97) / 2 + 98);
    const { layered } = layers(100, pairs, 1000);
    // 1 + 2 + ... + 13 are the most that a tenth of the budget is enough for.
    expect(layered.dummy.length).toBe(91);
    expect([...layered.dummyStart].filter((at) => at < 0).length).toBe(98 - 13);
  });
});
