import { describe, expect, it } from "vitest";
import { SLOT } from "../../src/picture/model.ts";
import { applyDelta, decode, WireError } from "../../src/picture/wire.ts";
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
    expect(graph.indexOf.get(1)).toBe(6);
  });

  it("keeps places, slots, leaves, calls and the border", () => {
    const graph = graphOf("second_backward");
    expect(graph.places[graph.place[6]!]).toMatchObject({ cell: 1, line: 6, source: "y = t @ a", iteration: null });
    expect(graph.slotState[0]).toBe(SLOT.freed);
    expect(graph.names[graph.slotType[0]!]).toBe("float32[4]");
    expect(Array.from(graph.slotFreedBy)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
    expect(graph.leaves.get(7)).toEqual({ node: 7, paths: ["t"], type: "float32[4,2]", hasGrad: true, bytes: 32 });
    expect(graph.calls[1]).toMatchObject({ n: 1, result: "raised", failedUid: 1, freedBy: 0, carriers: ["y"] });
    expect(graph.boundary).toEqual([{ oldUid: 1, newUid: 23, path: "y" }]);
    expect(graph.findings[0]).toMatchObject({ severity: "error", path: ["loss", "x_out", "y", "MvBackward0"] });
    expect(graph.findings[0]!.fixes[0]).toMatchObject({ id: "recompute_in_loop", verified: true, at: [2, 2] });
  });

  it("may be empty", () => {
    expect(graphOf("empty")).toMatchObject({ n: 0, roots: [], calls: [], held: 0 });
  });
});

describe("a change", () => {
  const base = graphOf("two_losses");
  const delta = { schema: 1, base: base.serial, serial: 7, strings: ["a new text"], slotState: [[0, 1, 3, 0]] };

  it("frees slots, names who did it and brings new strings, leaving the base as it was", () => {
    const graph = applyDelta(base, {
      ...delta,
      slotFreedBy: [[1, 4, 3]],
      status: { text: base.names.length, state: "busy", cell: 5 },
      held: 10,
    });
    expect(Array.from(graph.slotState.slice(0, 4))).toEqual([1, 1, 1, 0]);
    // Slot 3 is not freed: a run passes over it.
    expect(Array.from(graph.slotFreedBy.slice(0, 5))).toEqual([-1, 4, 4, -1, -1]);
    expect(graph.status).toEqual({ text: "a new text", state: "busy", cell: 5 });
    expect([graph.held, graph.serial]).toEqual([10, 7]);
    expect([base.slotState[0], base.slotFreedBy[1], base.serial]).toEqual([0, -1, 1]);
    expect(graph.edgeTo).toBe(base.edgeTo);
  });

  it("made for another base is refused", () => {
    expect(() => applyDelta(base, { ...delta, base: 99 })).toThrow(/based on picture 99, this is picture 1/);
  });

  it("that reaches outside the slots is refused", () => {
    for (const row of [[14, 1, 1000, 0], [-1, 1, 1, 0], [0, 1, 0, 0], [0, 9, 1, 0], [0]])
      expect(() => applyDelta(base, { ...delta, slotState: [row] })).toThrow(WireError);
  });

  it("speaks only of slots that were in the state before, or brings all states", () => {
    const mixed = applyDelta(base, { ...delta, slotState: [[1, 2, 1, 0]] });
    const after = applyDelta({ ...mixed, serial: base.serial }, { ...delta, slotState: [[0, 1, 4, 0]] });
    expect(Array.from(after.slotState.slice(0, 4))).toEqual([1, 2, 1, 1]);
    const all = "5".repeat(base.slotState.length);
    expect(Array.from(applyDelta(base, { ...delta, slotState: all }).slotState).join("")).toBe(all);
    expect(() => applyDelta(base, { ...delta, slotState: "55" })).toThrow(/has 2 digits/);
  });
});

describe("a message that cannot be drawn is refused with a next step", () => {
  const broken: [string, unknown, RegExp][] = [
    ["text that is not JSON", "{", /not JSON.*Run the cell again/],
    ["a list", "[]", /not an object/],
    ["no schema", "{}", /no schema/],
    ["a newer schema", { ...message(), schema: 2 }, /newer than this page.*Reload the page/],
    ["a count that is none", { ...message(), n: -1 }, /"n" is no count/],
    ["a column that is too short", { ...message(), name: [0] }, /"name" has 1 values instead of 9/],
    ["an edge to nowhere", { ...message(), edgeTo: Array(8).fill(99) }, /"edgeTo" points outside/],
    ["a name outside the table", { ...message(), name: Array(9).fill(9999) }, /"name" points outside/],
    ["a state that does not exist", { ...message(), slotState: "9999999999" }, /"slotState" holds "9"/],
    ["a negative count", { ...message(), slotCount: [-1, 1, 0, 0, 0, 0, 0, 0, 0] }, /negative/],
    ["a storage that does not exist", { ...message(), slotStorage: Array(10).fill(3) }, /"slotStorage" points outside/],
    ["a root on no node", { ...message(), roots: [{ id: 0, node: 99 }] }, /"roots" names no node/],
    ["places that are no rows", { ...message(), places: [1] }, /"places" holds no row/],
    ["text instead of a list", { ...message(), uid: "1" }, /"uid" is not a list/],
  ];
  for (const [what, value, problem] of broken) {
    it(what, () => {
      expect(() => decode(value as string)).toThrow(problem);
      expect(() => decode(value as string)).toThrow(WireError);
    });
  }
});

it("a message of any shape is either drawn or refused, never anything else", () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const junk = [null, -5, 1e12, "x", [], {}, true, [[1]], [-1, -1], "0101"];
  for (const name of FIXTURES) {
    for (let round = 0; round < 60; round++) {
      const value = JSON.parse(wireText(name));
      const keys = Object.keys(value);
      value[keys[random(keys.length)]!] = junk[random(junk.length)];
      try {
        expect(decode(value).n).toBeGreaterThanOrEqual(0);
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
    }
  }
});
