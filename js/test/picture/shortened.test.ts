/** Texts that do not fit are shortened, and say nothing untrue then. */
import { describe, expect, it } from "vitest";
import { type Measure, measureByTable } from "../../src/picture/measure.ts";
import { type DrawOptions, sceneOf } from "../../src/picture/picture.ts";
import { decode } from "../../src/picture/wire.ts";
import { anyDag, Builder, lstm, residual, toGraph } from "../graphs/index.ts";
import { FIXTURES, graphOf, sceneOfFixture, texts, wireText } from "./support.ts";

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
        role === "node" || role === "group" ? [marks.filter((mark) => mark.kind === "text")] : [],
      ),
    );

  it("a name is whole wherever a count stands beside it", () => {
    const cut = cards({ level: 2, compact: true }).filter((all) =>
      all.some(({ classes, text }) => /^op/.test(classes) && /\S…$|^…\S/.test(text)),
    );
    expect(cut.length).toBeGreaterThan(0);
    expect(cut.flat().filter(({ classes, text }) => /^note/.test(classes) && /\d/.test(text))).toEqual([]);
  });

  it("a number is never cut from the left", () => {
    const notes = cards({}).flatMap((all) =>
      all.filter(({ classes }) => /^note/.test(classes)).map(({ text }) => text),
    );
    expect(notes.some((note) => / nodes$/.test(note))).toBe(true);
    expect(notes.filter((note) => /^…\d/.test(note))).toEqual([]);
  });

  it("a path of modules that is too long loses its beginning", () => {
    const b = new Builder();
    let x = b.leaf("w");
    for (let i = 0; i < 12; i++)
      for (const op of ["Exp", "Mul", "Tanh", "Add"])
        x = b.fn(op, [x], {
          mod: `network.backbone.of.many.stages.and.more.of.them.blocks[${i}]`,
          line: `c:${op.length}`,
          call: i,
        });
    const groups = sceneOf(toGraph(b.graph)).items.filter(({ role }) => role === "group");
    expect(
      groups.map((group) =>
        texts(group)
          .find((each) => each.endsWith("▸"))!
          .replace(/^….*(?=\.)/, ""),
      ),
    ).toEqual(groups.map((_, i) => `.blocks[${i}] ▸`));
  });

  it("a card says its name before anything of its saved tensors, however little room there is", () => {
    const wide: Measure = (text, look) => 2 * measureByTable(text, look);
    for (const name of FIXTURES)
      for (const level of [2, 3] as const)
        for (const compact of [false, true])
          for (const { key, role, marks, data } of sceneOfFixture(name, { level, compact, measure: wide }).items) {
            if (role !== "node") continue;
            const written = marks.find((mark) => mark.kind === "text" && mark.classes.startsWith("op"));
            expect(written?.kind === "text" && written.text.slice(0, 2), key).toBe(data!.node!.slice(0, 2));
          }
  });

  it("long names of roots lose their middle, so that no flag meets another", () => {
    const message = wireText("two_losses").replace(
      /"loss([12])"/g,
      '"sys.last_traceback: the_loss_of_a_long_function[$1]"',
    );
    for (const level of [2, 3] as const) {
      const flags = sceneOf(decode(message), { level }).items.filter(({ role }) => role === "root");
      expect(flags.map((flag) => /^sys.*….*\[[12]\]$/.test(texts(flag)[0]!))).toEqual([true, true]);
      const [a, b] = flags.sort((one, other) => one.x - other.x);
      expect(a!.x + a!.w).toBeLessThanOrEqual(b!.x);
      for (const { label } of flags) expect(label).toContain("the_loss_of_a_long_function");
    }
  });
});
