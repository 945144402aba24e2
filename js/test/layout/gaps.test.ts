/** Gaps between rows, and the tracks of the wires in them. */
import { describe, expect, test } from "vitest";
import { mostLines } from "../../src/picture/layout/gaps.ts";
import { layout } from "../../src/picture/layout/index.ts";
import { measureByTable } from "../../src/picture/measure.ts";
import { drawSlices } from "../../src/picture/picture.ts";
import { LINE_GAP, layTracks } from "../../src/picture/scene/wires/tracks.ts";
import { runSlices } from "../../src/picture/slices.ts";
import { momentsOf, PROGRAMS } from "../programs/index.ts";
import { input } from "./support.ts";

test("the most lines over one place", () => {
  expect(mostLines([])).toBe(0);
  const flats = [
    { left: 0, right: 100, lines: 1 },
    { left: 50, right: 150, lines: 2 },
    { left: 100, right: 200, lines: 3 },
  ];
  expect(mostLines(flats)).toBe(5);
});

test("a gap is wider where wires with several lines run flat in it", () => {
  const edges = [2, 0, 2, 1, 3, 0, 3, 1].flat();
  const plain = {
    ...input(4, [
      [2, 0],
      [2, 1],
      [3, 0],
      [3, 1],
    ]),
    edges: Int32Array.from(edges),
  };
  const thick = { ...plain, lines: new Uint8Array(4).fill(4) };
  expect(layout(thick).height).toBeGreaterThan(layout(plain).height);
  // Rows that have a place get as much room.
  const { x, y } = layout(plain);
  const two = { ...thick, lines: new Uint8Array(4).fill(2) };
  expect(layout({ ...two, previous: { x, y } }).height).toBeGreaterThanOrEqual(layout(two).height);
});

describe("tracks", () => {
  /** Wires of two points each, from the lower to the upper end. */
  const wires = (...ends: number[][]) => ({
    start: Int32Array.from({ length: ends.length + 1 }, (_, e) => 4 * e),
    points: Float64Array.from(ends.flat()),
  });
  const gap = [{ high: 0, low: 60 }];

  test("of wires that run flat over one place are apart, also with several lines", () => {
    const { y, pitch } = layTracks(wires([0, 60, 200, 0], [50, 60, 300, 0], [400, 60, 20, 0]), gap, () => 2);
    const [a, b, c] = [y[1]!, y[3]!, y[5]!];
    for (const [one, other] of [
      [a, b],
      [b, c],
      [a, c],
    ])
      expect(Math.abs(one! - other!)).toBeGreaterThan(LINE_GAP);
    expect(new Set([a, b, c].map((each) => each > 0 && each < 60))).toEqual(new Set([true]));
    expect(pitch[1]).toBe(LINE_GAP);
  });

  test("are nearer to each other where there is little room", () => {
    const { pitch } = layTracks(wires([0, 20, 200, 0], [50, 20, 300, 0]), [{ high: 0, low: 20 }], () => 2);
    expect(pitch[1]).toBeLessThan(LINE_GAP);
    expect(pitch[1]).toBeGreaterThan(1);
  });

  test("are shared by wires whose lines do not meet", () => {
    const { y, pitch } = layTracks(wires([36, 30, 130, 0], [-16, 30, 16, 0]), [{ high: 0, low: 30 }], () => 3);
    expect(y[3]).toBe(y[1]);
    expect(pitch[1]).toBe(LINE_GAP);
  });

  test("are not needed by a wire that is alone, or steep", () => {
    const alone = layTracks(wires([0, 60, 200, 0], [300, 60, 500, 0]), gap, () => 1);
    const steep = layTracks(wires([0, 60, 20, 0], [10, 60, 40, 0]), gap, () => 2);
    for (const { y } of [alone, steep]) expect([...y].every(Number.isNaN)).toBe(true);
  });

  test("of two wires to one side do not cross", () => {
    const { y } = layTracks(wires([0, 60, 200, 0], [50, 60, 300, 0]), gap, () => 1);
    expect(y[3]).toBeGreaterThan(y[1]!); // the right one turns first
  });
});

test("in the pictures of programs no two lines run flat at the same height over the same place", () => {
  let met = 0;
  for (const program of PROGRAMS)
    for (const { name, graph } of momentsOf(program)) {
      const { scene } = runSlices(drawSlices(graph, {}, () => ({ measure: measureByTable, buttons: true })));
      const flats = scene.items
        .filter(({ role }) => role === "wire")
        .flatMap(({ x, y, marks, key }) =>
          marks.flatMap((mark, i) => {
            const d = mark.kind === "path" && mark.classes !== "linein" ? mark.d : "";
            // "V y C ... x y H x2": a flat piece begins where its corner ends.
            return [...d.matchAll(/C[^HVC]* ([-\d.]+) ([-\d.]+)H([-\d.]+)/g)].map((found) => {
              const [, x1, y1, x2] = found.map(Number) as [number, number, number, number];
              return {
                what: `${name} ${key} ${i}`,
                y: y + y1,
                left: x + Math.min(x1, x2),
                right: x + Math.max(x1, x2),
              };
            });
          }),
        );
      met += flats.length;
      flats.forEach((a, i) => {
        for (const b of flats.slice(i + 1)) {
          const both = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          if (both > 20 && a.what !== b.what) expect(Math.abs(a.y - b.y), `${a.what} / ${b.what}`).toBeGreaterThan(2.5);
        }
      });
    }
  expect(met).toBeGreaterThan(20);
});
