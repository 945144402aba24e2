import { expect, test } from "vitest";
import { placeItems } from "../../src/picture/layout/coordinates/coordinates.ts";
import type { Order } from "../../src/picture/layout/crossings.ts";
import { direct } from "../../src/picture/layout/direct.ts";
import { type Layered, makeLayers } from "../../src/picture/layout/layers.ts";
import { orderRows } from "../../src/picture/layout/order/order.ts";
import { rankBoxes } from "../../src/picture/layout/ranks.ts";
import { tiesOf, tighten } from "../../src/picture/layout/tighten.ts";
import { rowOf } from "../../src/picture/layout/types.ts";
import { runSlices } from "../../src/picture/slices.ts";
import { random } from "../graphs/index.ts";

interface Drawn {
  layered: Layered;
  order: Order;
  x: Float64Array;
}

const WIDTH = 60;
const GAP = 10;
const apart = () => WIDTH + GAP;

/** Rows in a good order, with places that keep the gaps. */
function drawn(n: number, pairs: [number, number][]): Drawn {
  const size = (value: number) => new Float32Array(n).fill(value);
  const edges = Int32Array.from(pairs.flat());
  const input = { n, width: size(WIDTH), height: size(30), edges, ranksep: 20, nodesep: GAP };
  const graph = runSlices(direct(input));
  const layered = runSlices(makeLayers(graph, runSlices(rankBoxes(graph, input))));
  const [[order]] = runSlices(orderRows(layered, []));
  const x = new Float64Array(layered.items);
  for (let v = 0; v < layered.items; v++) x[v] = apart() * order.position[v];
  return { layered, order, x };
}

function someDag(next: () => number, n: number): [number, number][] {
  const pairs: [number, number][] = [];
  for (let v = 1; v < n; v++) {
    pairs.push([v, Math.floor(next() * v)]);
    if (next() < 0.5) pairs.push([v, Math.floor(next() * v)]);
  }
  return pairs;
}

const weightOf = ({ box }: Layered, v: number, u: number) => [1, 2, 8][Number(box[v] < 0) + Number(box[u] < 0)];

function cost({ layered }: Drawn, x: ArrayLike<number>): number {
  let sum = 0;
  for (let v = 0; v < layered.items; v++)
    for (const u of rowOf(layered.up, v)) sum += weightOf(layered, v, u) * Math.abs(x[u] - x[v]);
  return sum;
}

function keepsGaps({ layered, order }: Drawn, x: ArrayLike<number>): boolean {
  for (let r = 0; r < layered.rows; r++)
    for (let i = layered.start[r] + 1; i < layered.start[r + 1]; i++)
      if (x[order.item[i]] - x[order.item[i - 1]] < apart() - 1e-9) return false;
  return true;
}

test("no part of a picture can be moved to make its wires shorter", () => {
  // The cost is convex and the gaps are differences: where no set of items gains by moving together, nothing does.
  const next = random(3);
  let moved = 0;
  for (let round = 0; round < 60; round++) {
    const n = 4 + (round % 5);
    const picture = drawn(n, someDag(next, n));
    const { items } = picture.layered;
    if (items > 12) continue;
    const before = cost(picture, picture.x);
    runSlices(tighten(tiesOf(picture.layered, picture.order), apart, picture.x));
    const least = cost(picture, picture.x);
    moved += Number(least < before);
    expect(keepsGaps(picture, picture.x)).toBe(true);
    for (let set = 1; set < 1 << items; set++) {
      for (const by of [-0.25, 0.25]) {
        const x = Array.from(picture.x, (at, v) => at + (set & (1 << v) ? by : 0));
        if (keepsGaps(picture, x)) expect(cost(picture, x)).toBeGreaterThanOrEqual(least - 1e-9);
      }
    }
  }
  expect(moved).toBeGreaterThan(30);
});

test("large tangles keep their gaps and end", () => {
  const next = random(8);
  const n = 400;
  const picture = drawn(n, someDag(next, n));
  const before = cost(picture, picture.x);
  runSlices(tighten(tiesOf(picture.layered, picture.order), apart, picture.x));
  expect(keepsGaps(picture, picture.x)).toBe(true);
  expect(cost(picture, picture.x)).toBeLessThan(before / 2);
  const again = picture.x.slice();
  runSlices(tighten(tiesOf(picture.layered, picture.order), apart, again));
  expect(cost(picture, again)).toBeCloseTo(cost(picture, picture.x), 6);
});

test("branches between a fork and a join stand around it", () => {
  const width = new Float32Array(5).fill(WIDTH);
  // 4 joins 1, 2 and 3, which are made of 0.
  const { layered, order } = drawn(5, [
    [1, 0],
    [2, 0],
    [3, 0],
    [4, 1],
    [4, 2],
    [4, 3],
  ]);
  const x = runSlices(placeItems(layered, [order], width, GAP, null));
  const at = (v: number) => x[layered.itemOf[v]];
  const [left, middle, right] = [at(1), at(2), at(3)].sort((a, b) => a - b);
  expect(at(0)).toBe(middle);
  expect(at(4)).toBe(middle);
  expect(middle - left).toBeCloseTo(WIDTH + GAP);
  expect(right - middle).toBeCloseTo(WIDTH + GAP);
});

test("a small picture is tightened, and a larger one whose wires are long", () => {
  const next = random(5);
  for (const n of [30, 150, 600]) {
    const picture = drawn(n, someDag(next, n));
    const x = runSlices(placeItems(picture.layered, [picture.order], new Float32Array(n).fill(WIDTH), GAP, null));
    const before = cost(picture, x);
    // Dummies may stand nearer to one another and are narrower, so the gaps are those of the picture itself.
    const { box } = picture.layered;
    const size = (v: number) => (box[v] < 0 ? 2 : WIDTH);
    const own = (v: number, w: number) => (size(v) + size(w)) / 2 + (box[v] < 0 && box[w] < 0 ? GAP / 2 : GAP);
    runSlices(tighten(tiesOf(picture.layered, picture.order), own, x));
    expect(cost(picture, x)).toBeCloseTo(before, 3);
  }
});
