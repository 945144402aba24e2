import { describe, expect, test } from "vitest";
import { fold, seedSlices } from "../../src/picture/fold/index.ts";
import { runSlices } from "../../src/picture/slices.ts";
import { recorded, toGraph } from "../graphs/index.ts";

describe("places for the next picture", () => {
  const folded = fold(toGraph(recorded("mlp3")));
  const layout = {
    x: Float32Array.from(folded.boxes, (_, i) => 10 * i),
    y: Float32Array.from(folded.boxes, (_, i) => 100 * i),
  };

  test("a cell that was run again takes the places of the old nodes", () => {
    const again = toGraph(recorded("mlp3"));
    again.uid = again.uid.map((uid) => uid + 1000);
    again.indexOf = (uid) => again.uid.indexOf(uid ?? -1);
    again.places = again.places.map((p) => ({ ...p, cell: 7, outerCell: 7, run: 7 }));
    const next = fold(again);
    expect(next.boxes[0].key).not.toBe(folded.boxes[0].key);
    expect(runSlices(seedSlices(folded, layout, next))).toEqual(layout);
  });

  test("new boxes have no place yet", () => {
    const grown = recorded("mlp3");
    grown.nodes.push({ label: "MulBackward0", kind: "fn", seq: 1e6, line: null, mod: null });
    grown.edges.push([grown.nodes.length - 1, 0]);
    const next = fold(toGraph(grown));
    const seeded = runSlices(seedSlices(folded, layout, next));
    expect([...seeded.x].filter(Number.isNaN)).toHaveLength(1);
    expect([...seeded.x].slice(0, folded.boxes.length)).toEqual([...layout.x]);
  });
});
