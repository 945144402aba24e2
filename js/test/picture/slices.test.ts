/** Drawing in slices: the same picture however often it is interrupted, and never much work in one go. */

import { describe, expect, it } from "vitest";
import { fold } from "../../src/picture/fold/index.ts";
import { layout } from "../../src/picture/layout/index.ts";
import { measureByTable } from "../../src/picture/measure.ts";
import type { Graph } from "../../src/picture/model.ts";
import { drawSlices } from "../../src/picture/picture.ts";
import { sceneSlices } from "../../src/picture/scene/index.ts";
import { inputSlices, planSlices } from "../../src/picture/scene/plan.ts";
import type { Scene } from "../../src/picture/scene/types.ts";
import { eachSlice, runSlices, type Slices } from "../../src/picture/slices.ts";
import { anyDag, lstm, residual, toGraph } from "../graphs/index.ts";
import { graphOf } from "./support.ts";

const options = (counted = measureByTable) => ({ measure: counted, buttons: true });
const draw = (graph: Graph) => drawSlices(graph, { expandAll: true }, () => options());

function written({ items, ...rest }: Scene): string {
  const lines = items.map(({ key, role, uid, index, x, y, w, h, marks, label, data, buttons }) =>
    JSON.stringify({ key, role, uid, index, x, y, w, h, marks, label, data, buttons }),
  );
  return [JSON.stringify(rest), ...lines].join("\n");
}

describe("a picture that is interrupted", () => {
  const graphs: [string, () => Graph][] = [
    ["second_backward", () => graphOf("second_backward")],
    ["stale", () => graphOf("stale")],
    ["a DAG", () => toGraph(anyDag(400, 7))],
    ["an LSTM", () => toGraph(lstm(40))],
  ];
  for (const [name, graph] of graphs) {
    it(`of ${name} is the same, byte for byte, when another one is drawn in its pauses`, () => {
      const alone = written(runSlices(draw(graph())).scene);
      const one = draw(graph());
      const other = draw(toGraph(anyDag(300, 3)));
      let pauses = 0;
      for (;;) {
        const step = one.next();
        if (step.done) {
          expect(written(step.value.scene)).toBe(alone);
          break;
        }
        pauses++;
        other.next();
      }
      expect(pauses).toBeGreaterThan(10);
    });
  }
});

/** A list whose reads are counted. */
function watched<T extends object>(list: T, count: () => void): T {
  return new Proxy(list, {
    get(target, key) {
      const value = Reflect.get(target, key, target);
      if (typeof key === "string" && /^\d+$/.test(key)) count();
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The most reads and measured texts between two yields. */
function mostWork<T>(slices: Slices<T>, work: { done: number }): [T, number] {
  let most = 0;
  for (;;) {
    work.done = 0;
    const step = slices.next();
    most = Math.max(most, work.done);
    if (step.done) return [step.value, most];
  }
}

describe("between two yields", () => {
  // A multiple of the largest slice of the cheapest loop, and far less than one pass over 20,000 nodes.
  const MOST = 10_000;
  const graphs: [string, () => Graph, boolean][] = [
    ["a residual net", () => toGraph(residual(20_000)), true],
    ["an LSTM", () => toGraph(lstm(1_200)), true],
    ["a residual net, folded", () => toGraph(residual(20_000)), false],
  ];
  for (const [name, make, expandAll] of graphs) {
    it(`little is read and measured for ${name}, however large it is`, () => {
      const work = { done: 0 };
      const count = () => {
        work.done++;
      };
      const graph = make();
      const folded = fold(graph, { expandAll });
      const columns = Object.entries(graph).map(([key, value]) => [
        key,
        ArrayBuffer.isView(value) ? watched(value, count) : value,
      ]);
      const measure = (text: string, classes: string) => {
        count();
        return measureByTable(text, classes);
      };
      const seen = { ...folded, boxes: watched(folded.boxes, count) };
      const [plan, planned] = mostWork(planSlices(Object.fromEntries(columns), seen, options(measure)), work);
      const placed = layout(runSlices(inputSlices(plan)));
      const [scene, composed] = mostWork(sceneSlices(plan, placed), work);
      expect(planned).toBeGreaterThan(0);
      expect(Math.max(planned, composed)).toBeLessThan(expandAll ? MOST : graph.n);
      expect(scene.items.length).toBeGreaterThan(folded.boxes.length);
    });
  }
});

describe("a loop in slices", () => {
  it("does every step once, in order, and yields after so many", () => {
    const done: number[] = [];
    const lengths: number[] = [];
    for (const _ of eachSlice(10, (i) => done.push(i), 4)) lengths.push(done.length);
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(lengths).toEqual([4, 8, 10]);
  });

  it("ends where a step says so", () => {
    const done: number[] = [];
    runSlices(eachSlice(10, (i) => done.push(i) < 3));
    expect(done).toEqual([0, 1, 2]);
  });
});
