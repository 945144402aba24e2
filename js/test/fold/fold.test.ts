import { describe, expect, test } from "vitest";
import { type Folded, type FoldState, fold, search } from "../../src/picture/fold/index.ts";
import type { Graph } from "../../src/picture/model.ts";
import {
  accumulation,
  anyDag,
  Builder,
  lstm,
  type PlainGraph,
  type PlainNode,
  RECORDED,
  random,
  recorded,
  residual,
  toGraph,
} from "../graphs/index.ts";

const GRAPHS: [string, () => PlainGraph][] = [
  ...RECORDED.map((name): [string, () => PlainGraph] => [name, () => recorded(name)]),
  ["an LSTM of 520 steps", () => lstm(520)],
  ["micro-batches", () => accumulation(16)],
  ["residual blocks", () => residual(5000)],
  ["nothing known", () => bare(2000)],
  ["sequence numbers against the edges", () => renumbered(500, 0)],
  ["sequence numbers that are mostly unknown", () => renumbered(500, 0.8)],
  ["a deep nest of modules", () => nest(40)],
  ["many cells", () => manyCells(300)],
  ["one line only", () => oneLine(1500)],
  ["three thousand parallel samples", () => samples(3000)],
];
for (let seed = 1; seed <= 30; seed++) {
  GRAPHS.push([`random graph ${seed}`, () => anyDag(30 + seed * seed * 2, seed, seed % 3 ? 12 : 200)]);
}

/** Random, without cell, line or module. */
function bare(size: number): PlainGraph {
  const plain = anyDag(size, 7);
  for (const node of plain.nodes) Object.assign(node, { line: null, mod: null, call: undefined });
  return plain;
}

/** Random numbers that several nodes share; `unknown`: for how many there is none. */
function renumbered(size: number, unknown: number): PlainGraph {
  const plain = anyDag(size, 11);
  const next = random(5);
  for (const node of plain.nodes) node.seq = next() < unknown ? -1 : Math.floor(next() * 50);
  return plain;
}

function oneLine(size: number): PlainGraph {
  const plain = anyDag(size, 8);
  for (const node of plain.nodes) Object.assign(node, { line: "cell:1", cell: 1, mod: null });
  return plain;
}

function nest(depth: number): PlainGraph {
  const b = new Builder();
  let x = b.leaf("w");
  for (let i = 0; i < depth; i++) {
    const mod = Array.from({ length: i + 1 }, (_, k) => `m${k}`).join(".");
    for (let k = 0; k < 3; k++) x = b.fn("Mul", [x, x], { mod, line: `m.py:${k}` });
  }
  return b.graph;
}

function manyCells(cells: number): PlainGraph {
  const b = new Builder();
  let x = b.leaf("w");
  const next = random(5);
  for (let cell = 1; cell <= cells; cell++) {
    for (let i = 1 + next() * 4; i > 0; i--)
      x = b.fn(next() < 0.5 ? "Mul" : "Exp", [x], { cell, line: `c:${Math.ceil(i)}` });
  }
  return b.graph;
}

function samples(count: number): PlainGraph {
  const b = new Builder();
  const w = b.leaf("w");
  let total = -1;
  for (let i = 0; i < count; i++) {
    const loss = b.fn("Mean", [b.fn("Exp", [b.fn("Mul", [w])])]);
    total = b.fn("Add", total < 0 ? [loss] : [total, loss]);
  }
  return b.graph;
}

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

  test("has no cycle, folded or with everything open or with any one group open", () => {
    expect(hasCycle(folded)).toBe(false);
    for (const box of folded.boxes.filter((b) => b.kind !== "node").slice(0, 5)) {
      const opened = fold(graph, { opened: new Set([box.key]) });
      expect(opened.boxes.length).toBeGreaterThan(folded.boxes.length);
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

  test("can be opened down to any node, click by click", () => {
    const functions = [...graph.kind.keys()].filter((v) => graph.kind[v] !== 1);
    const v = functions[functions.length >> 1];
    const opened = new Set<string>();
    for (let click = 0; click < 100; click++) {
      const now = fold(graph, { opened });
      const at = now.boxOf[v];
      if (at < 0 || now.boxes[at].kind === "node") return;
      expect(opened.has(now.boxes[at].key)).toBe(false);
      opened.add(now.boxes[at].key);
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

describe("what the user opens and closes", () => {
  const graph = toGraph(recorded("gpt2"));

  test("opening a block changes only that block", () => {
    const before = fold(graph);
    const block = before.boxes.find((box) => box.title === "h[5]")!;
    const after = fold(graph, { opened: new Set([block.key]) });
    const keys = new Set(after.boxes.map((box) => box.key));
    expect(before.boxes.filter((box) => !keys.has(box.key)).map((box) => box.title)).toEqual(["h[5]"]);
    expect(after.open.map((group) => group.title)).toContain("h[5]");
    expect(after.boxes.some((box) => box.parent === block.key)).toBe(true);
  });

  test("closing the parent puts it back", () => {
    const small = toGraph(recorded("mlp3"));
    const open = fold(small);
    const parent = open.boxes.map((box) => box.parent).find((key) => key !== null)!;
    const closed = fold(small, { closed: new Set([parent]) });
    expect(closed.boxes.length).toBeLessThan(open.boxes.length);
    expect(closed.boxes.some((box) => box.key === parent && box.kind !== "node")).toBe(true);
    checkComplete(small, closed);
  });

  test("of too many nodes that matter the first ones are shown", () => {
    const functions = [...graph.kind.keys()].filter(
      (v) => graph.kind[v] !== 1 && !/^T/.test(graph.names[graph.name[v]]),
    );
    const uids = functions.filter((_, i) => i % 3 === 0).map((v) => graph.uid[v]);
    expect(uids.length).toBeGreaterThan(100);
    const shown = fold(graph, { visible: uids });
    expect(shown.boxes.length).toBeLessThanOrEqual(60);
    const keys = new Set(shown.boxes.map((box) => box.key));
    expect(uids.slice(0, 8).every((uid) => keys.has(`n${uid}`))).toBe(true);
  });

  test("small graphs are shown as they are", () => {
    for (const name of ["toy8", "mlp3"] as const) {
      expect(fold(toGraph(recorded(name))).boxes.every((box) => box.kind === "node")).toBe(true);
    }
  });

  test("unknown keys and uids change nothing", () => {
    const state = { opened: new Set(["g/none"]), closed: new Set(["n0"]), visible: [-5, 1e9] };
    expect(fold(graph, state).boxes.map((box) => box.key)).toEqual(fold(graph).boxes.map((box) => box.key));
  });
});

describe("after an earlier picture", () => {
  /** Modules of which each is longer than the one before. */
  const parts = (count: number) => {
    const b = new Builder();
    let x = b.leaf("w");
    for (let part = 0; part < count; part++)
      for (let k = 0; k < 3 + part; k++)
        x = b.fn(["Mul", "Exp", "Add"][(k * k + part) % 3], [x], {
          mod: `net[${part}]`,
          call: part,
          line: `c:${part}`,
        });
    return b.graph;
  };
  /** Cells of a residual block each, and what the last one made. */
  const cells = (count: number, blocks: number) => {
    const b = new Builder();
    const w = b.leaf("w");
    let x = w;
    for (let cell = 1; cell <= count; cell++) {
      for (let k = 0; k < blocks; k++) {
        const where = { cell, line: `c:${k + 1}`, mod: `net${cell}[${k}]`, call: 100 * cell + k };
        const h = b.fn("Relu", [b.fn("Addmm", [x, w], where)], where);
        x = b.fn("Add", [x, b.fn("Mul", [h, w], where)], where);
      }
    }
    return toGraph(b.graph);
  };
  const keys = ({ boxes }: Folded) => boxes.map((box) => box.key);

  test("what is there stays as it stood, and what is new is opened", () => {
    const before = fold(cells(1, 12));
    const grown = cells(2, 12);
    const after = fold(grown, { standing: before.standing });
    expect(after.boxes.length).toBeLessThanOrEqual(60);
    expect(keys(after)).toEqual(expect.arrayContaining(keys(before)));
    expect(keys(after).length).toBeGreaterThan(keys(before).length + 1);
    // Without the earlier picture the two share one screen.
    expect(fold(grown).boxes.length).toBeLessThanOrEqual(24);
  });

  test("the same graph again is the same picture", () => {
    for (const [, make] of GRAPHS) {
      const graph = toGraph(make());
      const before = fold(graph);
      expect(keys(fold(graph, { standing: before.standing }))).toEqual(keys(before));
    }
  });

  test("a loop whose passes make the same nodes anew stays the same picture", () => {
    const titles = ({ boxes }: Folded) => boxes.map((box) => box.title);
    for (const plain of [recorded("gpt2"), residual(3000), lstm(200), parts(12)]) {
      const first = fold(toGraph(plain));
      let { standing } = first;
      for (let pass = 1; pass <= 4; pass++) {
        const graph = toGraph(plain);
        graph.uid = graph.uid.map((uid) => uid + 1e5 * pass);
        graph.indexOf = (uid) => graph.uid.indexOf(uid ?? -1);
        const next = fold(graph, { standing });
        expect(titles(next)).toEqual(titles(first));
        standing = next.standing;
      }
    }
  });

  test("what has to be seen is revealed and its surroundings stay", () => {
    const graph = toGraph(recorded("gpt2"));
    const before = fold(graph);
    const hidden = before.boxes.find((box) => box.kind === "group" && box.nodes.length > 20)!;
    const uid = graph.uid[hidden.nodes[10]];
    const after = fold(graph, { visible: [uid], standing: before.standing });
    expect(keys(after)).toContain(`n${uid}`);
    const others = keys(before).filter((key) => key !== hidden.key);
    expect(keys(after)).toEqual(expect.arrayContaining(others));
  });

  test("a picture without room for what has to be seen is folded afresh", () => {
    const graph = cells(4, 30);
    let { standing } = fold(cells(1, 30));
    for (const count of [2, 3, 4]) standing = fold(cells(count, 30), { standing }).standing;
    const uids = Array.from({ length: 40 }, (_, i) => graph.uid[(i * 11) % graph.n]);
    const after = fold(graph, { visible: uids, standing });
    expect(after.boxes.length).toBeLessThanOrEqual(60);
    expect(keys(after)).toEqual(keys(fold(graph, { visible: uids })));
  });

  test("a graph that was shown whole stays whole while there is room", () => {
    const before = fold(cells(1, 9));
    expect(before.boxes.every((box) => box.kind === "node")).toBe(true);
    const after = fold(cells(1, 14), { standing: before.standing });
    expect(after.boxes).toHaveLength(56);
    expect(after.boxes.every((box) => box.kind === "node")).toBe(true);
    expect(fold(cells(1, 16), { standing: before.standing }).boxes.length).toBeLessThanOrEqual(24);
  });

  test("focus, expand all and what the user opened leave no trace", () => {
    const graph = cells(2, 30);
    const before = fold(graph);
    const { standing } = before;
    const closed = before.boxes.find((box) => box.kind !== "node")!;
    for (const state of [
      { expandAll: true },
      { focus: { kind: "cell", from: 2 } },
      { opened: new Set([closed.key]) },
    ] as FoldState[]) {
      const other = fold(graph, { ...state, standing });
      expect(keys(other)).not.toEqual(keys(before));
      expect(keys(fold(graph, { standing: other.standing }))).toEqual(keys(before));
    }
  });
});

describe("focus", () => {
  const graph = toGraph(recorded("toy8"));
  const byName = (name: string) => graph.uid[[...graph.name.keys()].find((v) => graph.names[graph.name[v]] === name)!];
  const names = (state: FoldState) =>
    fold(graph, state)
      .boxes.map((box) => box.title)
      .sort();

  test("around a node", () => {
    expect(names({ focus: { kind: "around", from: byName("TanhBackward0") } })).toEqual([
      "AddBackward0",
      "ExpBackward0",
      "MulBackward0",
      "PowBackward0",
      "SumBackward0",
      "TanhBackward0",
    ]);
  });

  test("one root", () => {
    const root = byName("SumBackward0");
    const sum = ["ExpBackward0", "MulBackward0", "SumBackward0", "TanhBackward0"];
    expect(names({ focus: { kind: "root", from: root } })).toEqual(sum);
  });

  test("only freed, one cell, an unknown node", () => {
    const plain = recorded("toy8");
    plain.nodes[0].freed = true;
    expect(fold(toGraph(plain), { focus: { kind: "freed", from: null } }).boxes).toHaveLength(1);
    expect(names({ focus: { kind: "cell", from: 1 } }).length).toBe(7);
    expect(names({ focus: { kind: "cell", from: 9 } })).toEqual([]);
    expect(names({ focus: { kind: "around", from: 1e9 } })).toEqual([]);
  });
});

describe("search", () => {
  const graph = toGraph(recorded("gpt2"));
  const count = (query: string) => search(graph, query).length;

  test("finds operations, modules, leaves, lines, and several words together", () => {
    expect(count("softmax")).toBe(13);
    expect(count("h[5]")).toBeGreaterThanOrEqual(57);
    expect(count("SoftmaxBackward0 h[5]")).toBe(1);
    expect(count("wte.weight")).toBe(1);
    expect(count("In[1]:146")).toBe(3);
  });

  test("finds nothing for nothing", () => {
    expect(count("  ")).toBe(0);
    expect(count("no such thing")).toBe(0);
  });
});
