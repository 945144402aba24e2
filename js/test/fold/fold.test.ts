import { describe, expect, test } from "vitest";
import { type Folded, type FoldState, fold as foldPresent } from "../../src/picture/fold/index.ts";
import type { Graph } from "../../src/picture/model.ts";
import { Builder, lstm, type PlainNode, random, recorded, toGraph } from "../graphs/index.ts";
import { bare, GRAPHS } from "./graphs.ts";

/** With all graphs: which of them are present is tested in present.test.ts. */
const fold = (graph: Graph, state: FoldState = {}) => foldPresent(graph, { older: true, ...state });

function hasCycle(folded: Folded): boolean {
  const count = folded.boxes.length;
  const waiting = new Int32Array(count);
  for (let e = 0; e < folded.edges.length; e += 2) waiting[folded.edges[e]]++;
  const ready = [...waiting.keys()].filter((b) => waiting[b] === 0);
  let done = 0;
  for (let b = ready.pop(); b !== undefined; b = ready.pop()) {
    done++;
    for (let e = 0; e < folded.edges.length; e += 2) {
      if (folded.edges[e + 1] === b && --waiting[folded.edges[e]] === 0) ready.push(folded.edges[e]);
    }
  }
  return done < count;
}

/** Every function node is in one box or counted inside a badge. */
function checkComplete(graph: Graph, folded: Folded): void {
  const seen = new Uint8Array(graph.n);
  let count = 0;
  folded.boxes.forEach((box, i) => {
    count += box.count;
    for (const v of box.nodes) {
      expect(folded.boxOf[v]).toBe(i);
      seen[v]++;
    }
    for (const v of box.leaves) expect(graph.leaves.has(v)).toBe(true);
  });
  const functions = [...graph.kind.keys()].filter((v) => graph.kind[v] !== 1);
  expect(functions.every((v) => seen[v] === (folded.boxOf[v] < 0 ? 0 : 1))).toBe(true);
  expect(count).toBe(functions.length);
  expect(new Set(folded.boxes.map((box) => box.key)).size).toBe(folded.boxes.length);
}

describe.each(GRAPHS)("%s", (_, make) => {
  const graph = toGraph(make());
  const folded = fold(graph);

  test("names groups by the first and the last of their lines", () => {
    for (const { nodes, subtitle } of folded.boxes) {
      const said = /In\[\d+\]:(\d+)-(\d+)/.exec(subtitle);
      if (!said) continue;
      const lines = Array.from(nodes, (v) => graph.places[graph.place[v]]).map((p) => p.outerLine ?? p.line ?? -1);
      expect(said.slice(1).map(Number)).toEqual([Math.min(...lines), Math.max(...lines)]);
    }
  });

  test("is shown on one screen, each node in one box, all boxes named", () => {
    const small = folded.boxes.every((box) => box.kind === "node");
    expect(folded.boxes.length).toBeLessThanOrEqual(small ? 40 : 24);
    expect(folded.boxes.every((box) => box.title.length > 0)).toBe(true);
    checkComplete(graph, folded);
  });

  test("has no cycle, folded or with everything open or with a node of any one group in view", () => {
    expect(hasCycle(folded)).toBe(false);
    for (const box of folded.boxes.filter((b) => b.kind !== "node").slice(0, 5)) {
      const opened = fold(graph, { visible: [graph.uid[box.nodes[0]]] });
      expect(opened.boxes.map(({ key }) => key)).toContain(`n${graph.uid[box.nodes[0]]}`);
      expect(hasCycle(opened)).toBe(false);
      checkComplete(graph, opened);
      const keys = [...opened.open, ...opened.boxes.filter((b) => b.kind !== "node")].map((group) => group.key);
      expect(new Set(keys).size).toBe(keys.length);
    }
    if (graph.n > 3000) return;
    const all = fold(graph, { expandAll: true });
    expect(all.boxes.every((box) => box.kind === "node")).toBe(true);
    expect(hasCycle(all)).toBe(false);
    checkComplete(graph, all);
  });

  test("shows any node that matters, still in at most 60 boxes", () => {
    const functions = [...graph.kind.keys()].filter((v) => graph.kind[v] !== 1);
    const next = random(3);
    const uids = [0, 1, 2].map(() => graph.uid[functions[Math.floor(next() * functions.length)]]);
    const shown = fold(graph, { visible: uids });
    expect(shown.boxes.length).toBeLessThanOrEqual(60);
    expect(hasCycle(shown)).toBe(false);
    for (const uid of uids) expect(shown.boxes.map((box) => box.key)).toContain(`n${uid}`);
  });

  test("can be entered down to any node, group by group", () => {
    const functions = [...graph.kind.keys()].filter((v) => graph.kind[v] !== 1);
    const v = functions[functions.length >> 1];
    let state: FoldState = {};
    for (let click = 0, size = graph.n; click < 100; click++) {
      const now = fold(graph, state);
      const at = now.boxOf[v];
      if (at < 0 || now.boxes[at].kind === "node") return;
      const { nodes } = now.boxes[at];
      expect(nodes.length).toBeLessThan(size);
      size = nodes.length;
      state = { focus: { kind: "inside", uids: new Set(Array.from(nodes, (inner) => graph.uid[inner])) } };
    }
    expect.fail("a hundred clicks were not enough");
  });
});

describe("leaves and parameter preparation", () => {
  const b = new Builder();
  const w = b.leaf("w");
  const t = b.fn("T", [w]);
  const y = b.fn("Addmm", [b.leaf("b"), t]);
  const z = b.fn("Mul", [y, w]);
  const graph = toGraph(b.graph);

  test("are badges of each use", () => {
    const folded = fold(graph);
    expect(folded.boxes.map((box) => box.title)).toEqual(["AddmmBackward0", "MulBackward0"]);
    expect([...folded.boxes[0].leaves]).toEqual([2, w]);
    expect(folded.boxOf[t]).toBe(-1);
    expect(folded.boxes[0].count).toBe(2);
    expect([...folded.boxes[1].leaves]).toEqual([w]);
    expect(folded.boxOf[w]).toBe(-1);
    expect([...folded.edges]).toEqual([1, 0]);
  });

  test("a preparation that the user named, or that matters, is a node of its own", () => {
    const named: Graph = { ...graph, owners: [{ node: t, nr: 0, path: "wt", kind: "variable" }] };
    expect(fold(named).boxes).toHaveLength(3);
    expect(fold(graph, { visible: [graph.uid[t]] }).boxes).toHaveLength(3);
  });

  test("a leaf that nothing uses is a box", () => {
    const alone = new Builder();
    alone.leaf("w");
    expect(fold(toGraph(alone.graph)).boxes).toHaveLength(1);
  });

  test("edges of one box to another are one", () => {
    const square = new Builder();
    const x = square.fn("Exp", [square.leaf("a")]);
    square.fn("Mul", [x, x]);
    const folded = fold(toGraph(square.graph));
    expect([...folded.edges]).toEqual([1, 0]);
  });

  test("bytes held are counted once per storage", () => {
    const shared: Graph = {
      ...graph,
      slotStorage: new Int32Array(graph.n).fill(0),
      slotState: Uint8Array.from(graph.slotState, (s, v) => (v === y ? 1 : v === z ? 2 : s)),
      storageBytes: Float64Array.of(64),
    };
    const folded = fold(shared);
    expect(folded.boxes.map((box) => box.bytes)).toEqual([64, 64]);
  });
});

describe("names", () => {
  const titles = (graph: Graph, state?: FoldState) => fold(graph, state).boxes.map((box) => box.title);

  test("gpt2 shows its twelve blocks by module path", () => {
    const folded = fold(toGraph(recorded("gpt2")));
    const blocks = folded.boxes.filter((box) => /^h\[\d+\]$/.test(box.title));
    expect(blocks).toHaveLength(12);
    expect(blocks.every((box) => box.count === 57)).toBe(true);
    expect(folded.boxes.length).toBeLessThanOrEqual(25);
  });

  test("an unrolled LSTM shows its first step and how often it repeats", () => {
    const folded = fold(toGraph(lstm(520)));
    const repeat = folded.boxes.find((box) => box.kind === "repeat");
    expect(repeat?.times).toBeGreaterThanOrEqual(517);
    expect(repeat?.title).toContain("lstm");
  });

  test("a group of one line is called by its source, with its place", () => {
    const b = new Builder();
    let x = b.leaf("w");
    for (let line = 1; line <= 22; line++) {
      for (let i = 0; i < 1 + (line % 3); i++) x = b.fn(["Mul", "Add", "Exp"][i], [x], { line: `c:${line}`, cell: 4 });
    }
    const box = fold(toGraph(b.graph), { maxBoxes: 30 }).boxes.find((other) => other.kind !== "node");
    expect(box?.title).toMatch(/^line \d+ of the source$/);
    expect(box?.subtitle).toMatch(/^In\[4\]:\d+ · \d nodes$/);
  });

  /** A loop over `count` passes: `pass` makes what one of them does. */
  const loop = (count: number, pass: (b: Builder, x: number, iteration: number) => number) => {
    const b = new Builder();
    let x = b.leaf("w");
    for (let iteration = 0; iteration < count; iteration++) x = pass(b, x, iteration);
    return toGraph(b.graph);
  };
  const ops = (b: Builder, x: number, where: Partial<PlainNode>) =>
    ["Mul", "Add", "Exp", "Tanh"].reduce((y, op) => b.fn(op, [y], where), x);

  test("a pass of a loop over a list of modules is called by the module that it ran", () => {
    const graph = loop(14, (b, x, iteration) => {
      const y = ops(b, x, { mod: `net.up[${iteration}].conv`, line: "c:3", iteration, call: iteration });
      return b.fn("Neg", [y], { line: "c:4", iteration });
    });
    expect(titles(graph)).toEqual(Array.from({ length: 14 }, (_, i) => `net.up[${i}]`));
  });

  test("a pass that ran members of two lists is called by both, one that ran a module again by its number", () => {
    const two = loop(14, (b, x, iteration) => {
      const y = ops(b, x, { mod: `net.conv[${iteration}]`, line: "c:3", iteration, call: iteration });
      return ops(b, y, { mod: `net.up[${iteration}][0]`, line: "c:3", iteration, call: iteration });
    });
    expect(titles(two)[13]).toBe("net.conv[13] … net.up[13]");
    const one = loop(14, (b, x, iteration) => {
      const y = ops(b, x, { mod: "cell", line: "c:3", iteration, call: iteration });
      return b.fn("Neg", [y], { line: "c:4", iteration });
    });
    expect(titles(one)[13]).toBe("iteration 13");
  });

  test("a repeat of passes is called by their numbers, also where one unit is several passes", () => {
    const every = loop(90, (b, x, iteration) => {
      const y = ops(b, x, { line: "c:3", iteration });
      return b.fn("Neg", [y], { line: "c:4", iteration });
    });
    expect(titles(every)).toContain("iteration 1–89");
    const third = loop(90, (b, x, iteration) => {
      const y = ops(b, x, { line: "c:3", iteration });
      return b.fn(iteration % 3 ? "Neg" : "Exp", [y], { line: "c:4", iteration });
    });
    expect(titles(third).some((title) => /^iteration \d–\d\d$/.test(title))).toBe(true);
  });

  test("without any provenance a group is called by its operations", () => {
    expect(titles(toGraph(bare(600))).some((title) => /^\d+ nodes: \w+…\w+$/.test(title))).toBe(true);
  });

  test("a freed unit of a repeat stands apart from the others", () => {
    const plain = lstm(100);
    const middle = plain.nodes.findIndex((node) => node.mod === "lstm" && node.call === 50);
    plain.nodes[middle].freed = true;
    const graph = toGraph(plain);
    const folded = fold(graph);
    const isFreed = (v: number) => graph.slotState.subarray(graph.slotStart[v], graph.slotStart[v + 1]).includes(1);
    const freed = folded.boxes.find((box) => box.nodes.some(isFreed));
    expect(freed?.count).toBeLessThanOrEqual(25);
    expect(folded.boxes.filter((box) => box.kind === "repeat").length).toBeGreaterThanOrEqual(2);
  });
});

test("groups that do the same are open together, wherever they stand", () => {
  const b = new Builder();
  let x = b.leaf("w");
  for (let stage = 0; stage < 6; stage++) {
    const where = { line: "c:3", iteration: stage, call: stage };
    for (const op of ["Conv", "Norm", "Relu", "Conv", "Norm", "Tanh", "Exp"])
      x = b.fn(op, [x], { ...where, mod: `net.down[${stage}]` });
    // The last stage is a group of its own level: nothing follows in its pass.
    if (stage < 5) x = b.fn("Pool", [x], where);
  }
  const shown = fold(toGraph(b.graph)).boxes.filter((box) => box.title.startsWith("net.down["));
  expect(shown.map((box) => box.count)).toEqual([7, 7, 7, 7, 7, 7]);
});

test("members of a list that are of one class are open together, though one of them has a node less", () => {
  /** Boxes that stand for members: two of so many nodes, the first one with a node less. */
  const closed = (size: number, classes: [string, string], second = size) => {
    const b = new Builder();
    let x = b.leaf("w");
    let before = x;
    for (const [i, cls] of classes.entries())
      for (let k = i ? 0 : 1; k < (i ? second : size); k++) {
        // Neither a chain nor a repeat.
        const next = b.fn(`Op${k}`, [x, before], { mod: `net.layers[${i}]`, line: "c:1", call: i, cls });
        [before, x] = [x, next];
      }
    // Something else, so that the graph is not shown as it is.
    for (let k = 0; k < 60; k++) x = b.fn(k % 2 ? "Exp" : "Sin", [x], { line: "c:2", cell: 2 });
    return fold(toGraph(b.graph)).boxes.filter(({ title }) => title.startsWith("net.layers[")).length;
  };
  expect(closed(9, ["Layer", "Layer"])).toBe(0);
  // There would be room for one of them.
  expect(closed(16, ["Layer", "Layer"])).toBe(2);
  // A small head stays open beside a large body.
  expect(closed(30, ["Body", "Head"], 5)).toBe(1);
});

test("a repeat is unrolled where its units follow one another, and stays folded where many stand side by side", () => {
  const passes = (parallel: boolean) => {
    const b = new Builder();
    const trunk = b.fn("Exp", [b.leaf("w")], { line: "c:1" });
    let x = trunk;
    for (let i = 0; i < 8; i++)
      for (const [k, op] of ["Mul", "Tanh", "Add", "Neg", "Sin", "Cos"].entries())
        x = b.fn(op, [parallel && k === 0 ? trunk : x], { mod: `heads[${i}]`, line: "c:2", call: i });
    return fold(toGraph(b.graph)).boxes.map(({ kind, times }) => (kind === "node" ? 0 : times));
  };
  expect(passes(false)).toEqual([0, 1, 1, 1, 1, 1, 1, 1, 1]);
  expect(passes(true)).toEqual([0, 8]);
});
