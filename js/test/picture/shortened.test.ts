/** Texts that do not fit are shortened, and say nothing untrue then. */
import { describe, expect, it } from "vitest";
import { type DrawOptions, sceneOf } from "../../src/picture/picture.ts";
import { anyDag, lstm, residual, toGraph } from "../graphs/index.ts";
import { FIXTURES, graphOf } from "./support.ts";

describe("what does not fit", () => {
  const graphs = {
    ...Object.fromEntries(FIXTURES.map((name) => [name, graphOf(name)])),
    residual: toGraph(residual(4000)),
    lstm: toGraph(lstm(40)),
    dag: toGraph(anyDag(300, 3)),
  };
  /** The texts of each card, with their classes. */
  const cards = (options: DrawOptions) =>
    Object.values(graphs).flatMap((graph) =>
      sceneOf(graph, options).items.flatMap(({ role, marks }) =>
        role === "node" || role === "group" ? [marks.filter((mark) => mark.t === "text")] : [],
      ),
    );

  it("a name is whole wherever a count stands beside it", () => {
    const cut = cards({ level: 2, compact: true }).filter((all) =>
      all.some(({ c, s }) => /^op/.test(c) && /\S…|…\S/.test(s)),
    );
    expect(cut.length).toBeGreaterThan(0);
    expect(cut.flat().filter(({ c, s }) => /^note/.test(c) && /\d/.test(s))).toEqual([]);
  });

  it("a number is never cut from the left", () => {
    const notes = cards({}).flatMap((all) => all.filter(({ c }) => /^note/.test(c)).map(({ s }) => s));
    expect(notes.some((note) => / nodes$/.test(note))).toBe(true);
    expect(notes.filter((note) => /^…\d/.test(note))).toEqual([]);
  });
});
