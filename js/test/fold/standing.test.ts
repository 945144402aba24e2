/** Open groups: what the user opens and closes, an earlier picture, a part of the graph, a search. */
import { describe, expect, test } from "vitest";
import { type Folded, type FoldState, fold, search } from "../../src/picture/fold/index.ts";
import type { Graph } from "../../src/picture/model.ts";
import { Builder, lstm, recorded, residual, toGraph } from "../graphs/index.ts";
import { GRAPHS } from "./graphs.ts";

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

describe("what the user closes and wants to see", () => {
  const graph = toGraph(recorded("gpt2"));

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
    const state = { closed: new Set(["n0", "g/none"]), visible: [-5, 1e9] };
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

  test("a loop whose passes make the same nodes again stays the same picture", () => {
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

  test("focus, expand all and what the user closed leave no trace", () => {
    const grouped = toGraph(recorded("mlp3"));
    const inside = fold(grouped).boxes.find((box) => box.parent !== null)!.parent!;
    for (const [graph, state] of [
      [cells(2, 30), { expandAll: true }],
      [cells(2, 30), { focus: { kind: "cell", from: 2 } }],
      [grouped, { closed: new Set([inside]) }],
    ] as [Graph, FoldState][]) {
      const before = fold(graph);
      const other = fold(graph, { ...state, standing: before.standing });
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
