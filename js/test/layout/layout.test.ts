import { describe, expect, test } from "vitest";
import { type LayoutInput, layout, layoutSlices } from "../../src/picture/layout/index.ts";
import {
  accumulation,
  anyDag,
  Builder,
  lstm,
  type PlainGraph,
  RECORDED,
  random,
  recorded,
  residual,
} from "../graphs/index.ts";
import { inputOf, movedShare, NODESEP, overlaps, through } from "./measure.ts";

const GRAPHS: [string, () => PlainGraph][] = [
  ...RECORDED.map((name): [string, () => PlainGraph] => [name, () => recorded(name)]),
  ["an unrolled LSTM", () => lstm(60)],
  ["micro-batches", () => accumulation(16)],
  ["residual blocks", () => residual(2000)],
  ["a random DAG", () => anyDag(400, 3)],
  ["a wide random DAG", () => anyDag(300, 4, 300)],
];

function small(n: number, pairs: [number, number][], more: Partial<LayoutInput> = {}): LayoutInput {
  return {
    n,
    width: new Float32Array(n).fill(100),
    height: new Float32Array(n).fill(30),
    edges: Int32Array.from(pairs.flat()),
    ranksep: 20,
    nodesep: 20,
    ...more,
  };
}

describe.each(GRAPHS)("%s", (_, make) => {
  const input = inputOf(make());
  const out = layout(input);

  test("has every box on the page, none over another, no edge through one", () => {
    const within = (at: Float32Array, size: Float32Array, from: number, room: number) =>
      at.every((x, v) => x - size[v] / 2 >= from - 0.01 && x + size[v] / 2 <= from + room + 0.01);
    expect(within(out.x, input.width, out.left, out.width)).toBe(true);
    expect(within(out.y, input.height, out.top, out.height)).toBe(true);
    expect(overlaps(input, out)).toBe(0);
    expect(through(input, out)).toBe(0);
  });

  test("has users below what they use, by at least the gap of rows", () => {
    for (let e = 0; e < input.edges.length; e += 2) {
      const gap = out.y[input.edges[e]] - out.y[input.edges[e + 1]];
      expect(gap).toBeGreaterThanOrEqual(28 + input.ranksep - 0.01);
    }
  });

  test("routes every edge from the top of its lower box up to the bottom of its upper one", () => {
    for (let e = 0; e < input.edges.length / 2; e++) {
      const [from, to] = input.edges.subarray(2 * e, 2 * e + 2);
      const points = out.route.subarray(out.routeStart[e], out.routeStart[e + 1]);
      expect(points.length).toBeGreaterThanOrEqual(4);
      expect(points[1]).toBeCloseTo(out.y[from] - 14, 3);
      expect(points[points.length - 1]).toBeCloseTo(out.y[to] + 14, 3);
      expect(Math.abs(points[0] - out.x[from])).toBeLessThanOrEqual(input.width[from] / 2);
      expect(Math.abs(points[points.length - 2] - out.x[to])).toBeLessThanOrEqual(input.width[to] / 2);
    }
  });

  test("comes out the same again, whole or in slices", () => {
    const slices = layoutSlices(input);
    let step = slices.next();
    while (!step.done) step = slices.next();
    expect(step.value.x).toEqual(out.x);
    expect(step.value.route).toEqual(out.route);
  });
});

test("a deep graph stays as narrow as a shallow one of its kind", () => {
  for (const make of [
    residual,
    (size: number) => lstm(Math.ceil(size / 20)),
    (size: number) => accumulation(16, Math.ceil(size / 48)),
  ]) {
    const shallow = layout(inputOf(make(600)));
    const deep = layout(inputOf(make(6000)));
    expect(deep.height).toBeGreaterThan(4 * shallow.height);
    expect(deep.width).toBeLessThan(2.5 * shallow.width);
  }
});

test("a chain is one straight line", () => {
  const out = layout(
    small(
      50,
      Array.from({ length: 49 }, (_, i) => [i + 1, i] as [number, number]),
    ),
  );
  expect(new Set(out.x).size).toBe(1);
  expect(out.width).toBe(100);
});

test("inputs of one operation stand in their order from left to right", () => {
  const out = layout(
    small(4, [
      [3, 0],
      [3, 1],
      [3, 2],
    ]),
  );
  expect(out.x[0]).toBeLessThan(out.x[1]);
  expect(out.x[1]).toBeLessThan(out.x[2]);
  expect(out.x[3]).toBeCloseTo(out.x[1], 3);
});

test("branches are drawn shorter than in their order", () => {
  const next = random(1);
  const lengths = Array.from({ length: 24 }, () => {
    const b = new Builder();
    let x = b.fn("Conv", []);
    for (let stage = 0; stage < 4; stage++) {
      const branches = [1, 2, 3, 2].map((length) => {
        let y = x;
        for (let i = 0; i < length; i++) y = b.fn("Conv", [y]);
        return { y, at: next() };
      });
      const inputs = branches.sort((one, other) => one.at - other.at).map(({ y }) => y);
      x = b.fn("Cat", inputs);
    }
    const { route, routeStart } = layout(inputOf(b.graph));
    let length = 0;
    for (let e = 0; e + 1 < routeStart.length; e++)
      for (let k = routeStart[e]; k + 3 < routeStart[e + 1]; k += 2)
        length += Math.hypot(route[k + 2] - route[k], route[k + 3] - route[k + 1]);
    return length;
  });
  // Each started only in the order of its inputs they have 6,040 px on average.
  expect(lengths.reduce((sum, length) => sum + length) / lengths.length).toBeLessThan(5700);
});

test("a trunk with two losses stands between them", () => {
  const out = layout(
    small(3, [
      [1, 0],
      [2, 0],
    ]),
  );
  expect(out.x[0]).toBeCloseTo((out.x[1] + out.x[2]) / 2, 3);
});

test("of pictures with as few crossings the narrowest is taken: detours go to one side", () => {
  const { x, width } = layout(
    small(5, [
      [1, 0],
      [2, 1],
      [2, 0],
      [3, 2],
      [4, 2],
      [4, 3],
    ]),
  );
  expect(Math.sign(x[1] - x[0])).toBe(Math.sign(x[3] - x[2]));
  expect(width).toBeLessThan(180);
});

test("pictures of some thousand boxes have the shortest wires, too", () => {
  // 300 branches of 7 boxes: four above the fifth, which the sixth and seventh follow; all lead to one box.
  const branches = 300;
  const n = 7 * branches + 1;
  const pairs: [number, number][] = [];
  for (let b = 0; b < branches; b++) {
    for (let i = 0; i < 6; i++) pairs.push([7 * b + Math.max(4, i + 1), 7 * b + i]);
    pairs.push([n - 1, 7 * b + 6]);
  }
  const { x } = layout(small(n, pairs));
  const wires = pairs.reduce((sum, [low, high]) => sum + Math.abs(x[low] - x[high]), 0);
  // Each branch straight down from the middle of its four: 60 and 180 px aside; then to the middle of all of them.
  const apart = 4 * (100 + 20);
  expect(wires).toBeLessThan(1.01 * branches * (2 * 60 + 2 * 180 + (apart * branches) / 4));
});

test("lanes keep their sides whatever crossings that costs", () => {
  const pairs: [number, number][] = [
    [2, 1],
    [3, 0],
  ];
  const lane = Float32Array.from([0, 1, 0, 1]);
  const out = layout(small(4, pairs, { lane }));
  expect(out.x[0]).toBeLessThan(out.x[1]);
  expect(out.x[2]).toBeLessThan(out.x[3]);
});

test("what stands there already keeps its side when lanes change", () => {
  const pairs: [number, number][] = [
    [2, 1],
    [3, 0],
  ];
  const input = small(4, pairs, { lane: Float32Array.from([0, 1, 0, 1]) });
  const { x, y } = layout(input);
  const again = layout({ ...input, lane: Float32Array.from([1, 0, 1, 0]), previous: { x, y } });
  expect([...again.x]).toEqual([...x]);
});

test("a graph with a cycle, a loop and a double edge still gets a drawing", () => {
  const input = small(4, [
    [0, 1],
    [1, 2],
    [2, 0],
    [3, 3],
    [3, 2],
    [3, 2],
  ]);
  const out = layout(input);
  expect(overlaps(input, out)).toBe(0);
  expect([...out.x, ...out.y, ...out.route].every(Number.isFinite)).toBe(true);
  expect(out.routeStart[4] - out.routeStart[3]).toBe(0);
});

test("nothing to draw is an empty page, one box its own size", () => {
  expect(layout(small(0, []))).toMatchObject({ width: 0, height: 0 });
  expect(layout(small(1, []))).toMatchObject({ width: 100, height: 30 });
});

test("a tensor used ten thousand times over a deep chain costs neither time nor memory", () => {
  const n = 10000;
  const pairs: [number, number][] = [];
  for (let i = 1; i < n; i++) {
    pairs.push([i, i - 1]);
    if (i > 1) pairs.push([i, 0]);
  }
  const input = small(n, pairs);
  const out = layout(input);
  expect(out.route.length).toBeLessThan(4e6 * 20);
  expect(out.width).toBeLessThan(2000);
});

test("skips over the whole depth, one inside the other, stay out of the boxes", () => {
  const half = 500;
  const pairs: [number, number][] = [];
  for (let i = 1; i < 2 * half; i++) pairs.push([i, i - 1]);
  for (let i = 0; i < half - 1; i++) pairs.push([2 * half - 1 - i, i]);
  const input = small(2 * half, pairs);
  const out = layout(input);
  expect(overlaps(input, out)).toBe(0);
  expect(through(input, out)).toBe(0);
});

describe("with the places of an earlier layout", () => {
  /** What existed when the first `share` of the nodes was made; numbers of nodes stay. */
  function prefix(plain: PlainGraph, share: number): PlainGraph {
    const seqs = plain.nodes.map((node) => node.seq).filter((seq) => seq >= 0);
    const cut = [...seqs].sort((a, b) => a - b)[Math.floor(share * (seqs.length - 1))];
    const keep = plain.nodes.map((node) => node.kind === "fn" && node.seq <= cut);
    for (const [from, to] of plain.edges) if (keep[from]) keep[to] = true;
    const number = new Map<number, number>();
    for (const [i, kept] of keep.entries()) if (kept) number.set(i, number.size);
    return {
      nodes: plain.nodes.filter((_, i) => keep[i]),
      edges: plain.edges.flatMap(([a, b]) =>
        keep[a] && keep[b] ? [[number.get(a)!, number.get(b)!] as [number, number]] : [],
      ),
    };
  }

  function seeded(input: LayoutInput, known: Map<string, [number, number]>, names: string[]): LayoutInput {
    const x = Float32Array.from(names, (name) => known.get(name)?.[0] ?? Number.NaN);
    const y = Float32Array.from(names, (name) => known.get(name)?.[1] ?? Number.NaN);
    return { ...input, previous: { x, y } };
  }

  /** Names that outlive a renumbering: by sequence number, leaves by label; leaves are not split here. */
  const namesOf = (plain: PlainGraph) => plain.nodes.map((node) => `${node.seq}:${node.label}`);

  test.each(["resnet50", "gpt2"] as const)("%s grows without moving what is there", (name) => {
    const whole = recorded(name);
    // Leaves are drawn as badges and take no part.
    const fn = dropLeaves(whole);
    let known = new Map<string, [number, number]>();
    for (const share of [0.3, 0.5, 0.55, 0.8, 1]) {
      const part = prefix(fn, share);
      const names = namesOf(part);
      const fresh = inputOf(part);
      const input = known.size ? seeded(fresh, known, names) : fresh;
      const out = layout(input);
      const old = names.map((n, v) => [n, v] as const).filter(([n]) => known.has(n));
      const moved = old.filter(([n, v]) => {
        const [x, y] = known.get(n)!;
        return Math.hypot(out.x[v] - x, out.y[v] - y) > 40;
      });
      expect(moved.length).toBe(0);
      expect(overlaps(input, out)).toBe(0);
      expect(through(input, out)).toBe(0);
      known = new Map(names.map((n, v) => [n, [out.x[v], out.y[v]]]));
    }
  });

  test("pictures of any shape grow without moving what is there", () => {
    for (let seed = 1; seed <= 12; seed++) {
      const next = random(seed);
      const old = 120;
      const n = old + 60;
      const pairs: [number, number][] = [];
      for (let v = 1; v < n; v++)
        for (let k = 0; k < 1 + Math.floor(next() * 2.5); k++)
          pairs.push([v, Math.max(0, v - 1 - Math.floor(next() * 40))]);
      const width = Float32Array.from({ length: n }, () => 60 + Math.floor(next() * 150));
      // Some of the new boxes are higher than any old one.
      const height = Float32Array.from({ length: n }, (_, v) => (v < old ? 28 : 28 + Math.floor(next() * 60)));
      const whole: LayoutInput = { n, width, height, edges: Int32Array.from(pairs.flat()), ranksep: 16, nodesep: 12 };
      const first = { ...whole, n: old, edges: Int32Array.from(pairs.filter(([v]) => v < old).flat()) };
      const before = layout({ ...first, width: width.subarray(0, old), height: height.subarray(0, old) });
      const previous = { x: new Float32Array(n).fill(Number.NaN), y: new Float32Array(n).fill(Number.NaN) };
      previous.x.set(before.x);
      previous.y.set(before.y);
      const input = { ...whole, previous };
      const after = layout(input);
      expect(movedShare(before.x, before.y, after, old)).toBe(0);
      expect(overlaps(input, after)).toBe(0);
      expect(through(input, after)).toBe(0);
    }
  });

  test("boxes that grow by a few px stay where they are, a third of the gap is enough", () => {
    const n = 40;
    const input = inputOf({ nodes: [], edges: [] });
    const row: LayoutInput = {
      ...input,
      n,
      width: new Float32Array(n).fill(100),
      height: new Float32Array(n).fill(30),
    };
    const out = layout(row);
    const wider = { ...row, width: row.width.map((w) => w + NODESEP / 2), previous: { x: out.x, y: out.y } };
    expect(movedShare(out.x, out.y, layout(wider), n)).toBe(0);
    expect(overlaps(wider, layout(wider))).toBe(0);
  });

  test("the same graph again moves nothing", () => {
    const input = inputOf(residual(800));
    const out = layout(input);
    const again = layout({ ...input, previous: { x: out.x, y: out.y } });
    expect(movedShare(out.x, out.y, again, input.n)).toBe(0);
  });

  test("boxes put in the middle move at most one in twenty", () => {
    for (let seed = 1; seed <= 5; seed++) {
      const plain = dropLeaves(residual(1000, seed));
      const before = inputOf(plain);
      const out = layout(before);
      const next = random(seed);
      const grown: PlainGraph = { nodes: [...plain.nodes], edges: [...plain.edges] };
      for (let i = 0; i < 10; i++) {
        grown.nodes.push({ label: "MulBackward0", kind: "fn", seq: 1e6 + i, line: null, mod: null });
        grown.edges.push([grown.nodes.length - 1, Math.floor(next() * plain.nodes.length)]);
      }
      const input = inputOf(grown);
      const previous = { x: new Float32Array(input.n).fill(Number.NaN), y: new Float32Array(input.n).fill(Number.NaN) };
      previous.x.set(out.x);
      previous.y.set(out.y);
      const after = layout({ ...input, previous });
      expect(overlaps(input, after)).toBe(0);
      expect(movedShare(out.x, out.y, after, before.n)).toBeLessThanOrEqual(0.05);
    }
  });
});

function dropLeaves(plain: PlainGraph): PlainGraph {
  const number = new Map<number, number>();
  for (const [i, node] of plain.nodes.entries()) if (node.kind === "fn") number.set(i, number.size);
  return {
    nodes: plain.nodes.filter((node) => node.kind === "fn"),
    edges: plain.edges.flatMap(([a, b]) =>
      number.has(a) && number.has(b) ? [[number.get(a)!, number.get(b)!] as [number, number]] : [],
    ),
  };
}
