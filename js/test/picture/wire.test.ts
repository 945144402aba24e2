import { describe, expect, it } from "vitest";
import { columnText, smallText } from "../../dev/columns.ts";
import { type Graph, placeOf } from "../../src/picture/model.ts";
import * as SLOT from "../../src/picture/slot.ts";
import { applyDelta, decode, decodeSlices, WireError } from "../../src/picture/wire.ts";
import { FIXTURES, graphOf, wireText } from "./support.ts";

function message(): Record<string, unknown> {
  return JSON.parse(wireText("second_backward"));
}

describe("a full message", () => {
  it("becomes columns: differences are summed, edges point at nodes, names are looked up", () => {
    const graph = graphOf("second_backward");
    expect(Array.from(graph.uid)).toEqual([11, 12, 13, 21, 22, 23, 1, 2, 3]);
    expect(Array.from(graph.seq)).toEqual([6, 5, 4, 9, 8, 7, 1, -1, -1]);
    expect(graph.names[graph.name[6]!]).toBe("MvBackward0");
    const next = (i: number) => Array.from(graph.edgeTo.slice(graph.edgeStart[i], graph.edgeStart[i + 1]));
    expect(next(2)).toEqual([6]);
    expect(next(6)).toEqual([7, 8]);
    expect(graph.indexOf(1)).toBe(6);
  });

  it("keeps places, slots, leaves, calls and the border", () => {
    const graph = graphOf("second_backward");
    expect(placeOf(graph, 6)).toMatchObject({ cell: 1, line: 6, source: "y = t @ a", iteration: null });
    expect(graph.slotState[0]).toBe(SLOT.freed);
    expect(graph.names[graph.slotType[0]!]).toBe("float32[4]");
    expect(Array.from(graph.slotFreedBy)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
    expect(graph.leaves.get(7)).toEqual({ node: 7, paths: ["t"], type: "float32[4,2]", hasGrad: true, bytes: 32 });
    expect(graph.calls[1]).toMatchObject({ n: 1, result: "raised", failedUid: 1 });
    expect(graph.boundary).toEqual([{ oldUid: 1, newUid: 23, path: "y" }]);
    expect(graph.findings[0]).toMatchObject({
      severity: "error",
      carriers: ["y"],
      path: ["loss", "x_out", "y", "MvBackward0"],
    });
    expect(graph.findings[0]!.fixes[0]).toMatchObject({ id: "recompute_in_loop", verified: true });
    expect(graph.findings[0]!.fixes[0]!.note).toMatch(/^In\[2\]:2: /);
  });

  it("may be empty", () => {
    expect(graphOf("empty")).toMatchObject({ n: 0, roots: [], calls: [], held: 0 });
  });
});

describe("a change", () => {
  const base = graphOf("two_losses");
  const status = { text: base.names.length, state: "idle", cell: null };
  const delta = { schema: 2, base: base.serial, serial: 7, strings: ["a new text"], status };
  const marks = (...values: number[]) => columnText(values, false);
  const firstStates = (graph: Graph) => Array.from(graph.slotState.slice(0, 5));

  it("frees slots, names who did it and brings new strings, leaving the base as it was", () => {
    const graph = applyDelta(base, {
      ...delta,
      // The first held slot and two more; then one is passed over.
      slotState: [[SLOT.held, SLOT.freed, marks(0, -2, 1)]],
      freedBy: columnText([4, 6]),
      freedCount: columnText([3, 1]),
      status: { text: base.names.length, state: "busy", cell: 5 },
      held: 10,
    });
    expect(firstStates(graph)).toEqual([1, 1, 1, 0, 1]);
    expect(Array.from(graph.slotFreedBy.slice(0, 6))).toEqual([4, 4, 4, -1, 6, -1]);
    expect(graph.status).toEqual({ text: "a new text", state: "busy", cell: 5, why: "" });
    expect([graph.held, graph.serial]).toEqual([10, 7]);
    expect([base.slotState[0], base.slotFreedBy[1], base.serial]).toEqual([0, -1, 1]);
    expect(graph.edgeTo).toBe(base.edgeTo);
  });

  it("made for another base is refused", () => {
    expect(() => applyDelta(base, { ...delta, base: 99 })).toThrow(/\(base\)/);
  });

  it("that reaches outside the slots is refused", () => {
    const rows = [
      [0, 1, marks(1000)],
      [0, 1, marks(0, -1000)],
      [0, 9, marks(0)],
      [0, 1, marks(1e15)],
      [0, 1, "?"],
      [0],
      1,
    ];
    for (const row of rows) expect(() => applyDelta(base, { ...delta, slotState: [row] })).toThrow(WireError);
  });

  it("with more or fewer freed slots than it names calls for is refused", () => {
    const slotState = [[SLOT.held, SLOT.freed, marks(0, -2)]];
    for (const counts of [[2], [], [0, 3], [-1]]) {
      const freedBy = columnText(counts.map(() => 4));
      expect(() => applyDelta(base, { ...delta, slotState, freedBy, freedCount: columnText(counts) })).toThrow(
        /\(freedCount\)/,
      );
    }
  });

  it("speaks only of slots that were in the state before", () => {
    const slotState = [[SLOT.held, SLOT.stale, marks(1)]];
    const mixed = applyDelta(base, { ...delta, slotState });
    expect(firstStates(mixed)).toEqual([0, 2, 0, 0, 0]);
    const freed = { ...delta, slotState: [[SLOT.held, SLOT.freed, marks(0, -1)]], freedBy: "A", freedCount: "E" };
    expect(firstStates(applyDelta({ ...mixed, serial: base.serial }, freed))).toEqual([1, 2, 1, 0, 0]);
  });
});

describe("a message that cannot be drawn is refused with a next step", () => {
  const nine = (value: number) => columnText(Array(9).fill(value));
  const broken: [string, unknown, RegExp][] = [
    ["text that is not JSON", "{", /\(JSON\). Run the cell again/],
    ["a list", "[]", /\(schema\)/],
    ["no schema", "{}", /\(schema\)/],
    ["a newer schema", { ...message(), schema: 3 }, /newer than this page.*Reload the page/],
    ["an older schema", { ...message(), schema: 1 }, /\(schema\). Run the cell again/],
    ["a count that is none", { ...message(), n: -1 }, /\(n\)/],
    ["a count beyond the message", { ...message(), n: 1e15 }, /\(uid\)/],
    ["a column that is too short", { ...message(), name: columnText([0]) }, /\(name\)/],
    ["a column that is too long", { ...message(), name: `${nine(0)}A` }, /\(name\)/],
    ["a column that breaks off", { ...message(), uid: `${nine(0).slice(1)}g` }, /\(uid\)/],
    ["a column of other characters", { ...message(), uid: "AAAA AAAA" }, /\(uid\)/],
    ["a column without end", { ...message(), seq: "g".repeat(2000) }, /\(seq\)/],
    ["an edge to nowhere", { ...message(), edgeTo: columnText(Array(8).fill(99)) }, /\(edgeTo\)/],
    ["a name outside the table", { ...message(), name: nine(9999) }, /\(name\)/],
    ["a state that does not exist", { ...message(), slotState: smallText(Array(10).fill(6)) }, /\(slotState\)/],
    ["ends that go down", { ...message(), slotEnd: columnText([5, 4, 5, 5, 5, 5, 5, 5, 10]) }, /\(slotEnd\)/],
    ["a storage that does not exist", { ...message(), slotStorage: columnText(Array(10).fill(3)) }, /\(slotStorage\)/],
    ["a module without a name", { ...message(), modulePath: "A", moduleClass: "" }, /\(moduleClass\)/],
    ["a root on no node", { ...message(), roots: [{ id: 0, path: 0, node: 99, type: 0 }] }, /\(roots\)/],
    ["attributes in place of a number", { ...message(), events: [{ id: { onclick: "x" } }] }, /\(events\)/],
    ["attributes in a list", { ...message(), calls: [{ roots: [], executed: [{ onclick: "x" }] }] }, /\(calls\)/],
    ["places that are no rows", { ...message(), places: [1] }, /\(places\)/],
    ["a list instead of a column", { ...message(), uid: [1] }, /\(uid\)/],
  ];
  for (const [what, value, problem] of broken) {
    it(what, () => {
      expect(() => decode(value as string)).toThrow(problem);
      expect(() => decode(value as string)).toThrow(WireError);
    });
  }
});

describe("a column", () => {
  const columns = [[0], [15, -16, 16, -17], [2 ** 51, 0, -(2 ** 51)], [1e12, 1e12 + 1], [-1, -1, 31, 1023, 1024]];
  for (const values of columns) {
    it(`brings ${values.join(" ")}`, () => {
      const n = values.length;
      const zeros = columnText(values.map(() => 0));
      const small = {
        schema: 2,
        strings: ["A"],
        torch: 0,
        notes: [],
        status: { text: 0 },
        n,
        kind: zeros,
        ghost: "",
        slotState: "",
        freedBy: "",
        freedCount: "",
      };
      const none = {
        slotName: "",
        slotType: "",
        slotBytes: "",
        slotStorage: "",
        storageBytes: "",
        edgeTo: "",
      };
      const nodes = { name: zeros, seq: zeros, iteration: zeros, edgeEnd: zeros, slotEnd: zeros };
      const unknown = columnText(values.map(() => -1));
      const where = { place: unknown, module: unknown, modulePath: "", moduleClass: "", moduleCall: "" };
      const graph = decode({ ...small, ...none, ...nodes, ...where, uid: columnText(values) });
      expect(Array.from(graph.uid)).toEqual(values);
      for (const uid of values) expect(graph.uid[graph.indexOf(uid)]).toBe(uid);
      expect(graph.indexOf(7)).toBe(-1);
    });
  }
});

it("in slices a message becomes the same graph", () => {
  for (const name of FIXTURES) {
    const slices = decodeSlices(wireText(name));
    let pauses = 0;
    let step = slices.next();
    for (; !step.done; step = slices.next()) pauses++;
    expect(pauses).toBeGreaterThan(10);
    expect(JSON.stringify(step.value)).toBe(JSON.stringify(decode(wireText(name))));
  }
});

describe("a message of any shape is either drawn or refused, never anything else", () => {
  let seed = 7;
  const random = (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % n;
  };
  const drawnOrRefused = (value: Record<string, unknown>) => {
    try {
      expect(decode(value).n).toBeGreaterThanOrEqual(0);
    } catch (error) {
      expect(error).toBeInstanceOf(WireError);
    }
  };

  it("with junk in place of a part", () => {
    const junk = [null, -5, 1e12, "x", [], {}, true, [[1]], [-1, -1], "0101", ["A", "A"], "ggggggggggggg", "\u0141"];
    for (const name of FIXTURES) {
      for (let round = 0; round < 60; round++) {
        const value = JSON.parse(wireText(name));
        const keys = Object.keys(value);
        value[keys[random(keys.length)]!] = junk[random(junk.length)];
        drawnOrRefused(value);
      }
    }
  });

  it("with a character changed, left out or added", () => {
    for (const name of FIXTURES) {
      for (let round = 0; round < 200; round++) {
        const value = JSON.parse(wireText(name));
        const texts = Object.keys(value).filter((key) => typeof value[key] === "string" && value[key]);
        if (!texts.length) continue;
        const key = texts[random(texts.length)]!;
        const at = random(value[key].length);
        const other = ["", "A", "g", "/", "9", " ", "AA"][random(7)]!;
        value[key] = value[key].slice(0, at) + other + value[key].slice(at + 1);
        drawnOrRefused(value);
      }
    }
  });
});
