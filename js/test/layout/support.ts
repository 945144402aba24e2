import type { Order } from "../../src/picture/layout/crossings.ts";
import { type Directed, direct } from "../../src/picture/layout/direct.ts";
import { type Layered, makeLayers } from "../../src/picture/layout/layers.ts";
import { rankBoxes } from "../../src/picture/layout/ranks.ts";
import type { LayoutInput } from "../../src/picture/layout/types.ts";

export const FREE: Float64Array[] = [];

export function input(n: number, pairs: [number, number][], more: Partial<LayoutInput> = {}): LayoutInput {
  const size = (value: number) => new Float32Array(n).fill(value);
  return {
    n,
    width: size(60),
    height: size(30),
    edges: Int32Array.from(pairs.flat()),
    ranksep: 20,
    nodesep: 10,
    ...more,
  };
}

/** So many edges among n boxes, each to one with a smaller number. */
export function somePairs(next: () => number, n: number, edges: number): [number, number][] {
  return Array.from({ length: edges }, () => {
    const low = 1 + Math.floor(next() * (n - 1));
    return [low, Math.floor(next() * low)];
  });
}

export function finish<T>(slices: Generator<void, T>): T {
  for (;;) {
    const step = slices.next();
    if (step.done) return step.value;
  }
}

export function layers(
  n: number,
  pairs: [number, number][],
  budget?: number,
): { graph: Directed; rank: Int32Array; layered: Layered } {
  const graph = finish(direct(input(n, pairs)));
  const rank = finish(rankBoxes(graph, input(n, pairs)));
  return { graph, rank, layered: finish(makeLayers(graph, rank, budget)) };
}

/** Every item in the order of its number. */
export function plainOrder(layered: Layered): Order {
  const item = Int32Array.from({ length: layered.items }, (_, i) => i);
  const known = new Int32Array(layered.rows).fill(-1);
  return { item, position: item.map((i) => i - layered.start[layered.row[i]]), known };
}
