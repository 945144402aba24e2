/** What the default view shows: what the newest cell made or ran, and the older part that this reaches. */
import { describe, expect, test } from "vitest";
import { fold, presentOf } from "../../src/picture/fold/index.ts";
import { type Graph, KIND } from "../../src/picture/model.ts";
import { momentOf, momentsOf, PROGRAMS } from "../programs/index.ts";

const paths = (roots: readonly { path: string; alive: boolean }[]) =>
  roots.map(({ path, alive }) => path + (alive ? "" : " (gone)")).sort();
const now = (program: string, moment: string) => {
  const { roots, older } = presentOf(momentOf(program, moment).graph);
  return { now: paths(roots), older: paths(older) };
};

describe("the first lecture, cell by cell", () => {
  test("each section shows its own graph alone", () => {
    const seen = momentsOf("lecture").map(({ name, graph }) => [name, paths(presentOf(graph).roots).join(", ")]);
    expect(seen.map(([, roots]) => roots)).toEqual([
      "loss",
      "loss",
      "loss",
      "loss",
      "loss",
      "total",
      "product",
      "y",
      "loss, loss (gone)",
      "loss",
      "loss",
      "loss, loss (gone)",
      "loss",
    ]);
  });
});

test("two losses on one trunk are seen together, in whatever cells they were made", () => {
  expect(now("two_losses", "In[2]")).toEqual({ now: ["loss1", "loss2"], older: [] });
  expect(now("two_losses", "In[4]")).toEqual({ now: ["loss1", "loss2"], older: [] });
  expect(now("four_roots", "In[3]").older).toEqual([]);
});

test("once a call has raised, only the failing pair is there", () => {
  expect(now("four_roots", "In[5]")).toEqual({ now: ["b", "c"], older: ["a", "d"] });
});

test("a cell that makes and runs nothing changes nothing", () => {
  const before = now("rerun", "In[3]");
  expect(before.now).toEqual(["loss"]);
  expect(now("rerun", "In[4]")).toEqual(before);
  expect(now("rerun", "In[5]")).toEqual(before);
});

test("a newer graph takes the place of the older one, until that is run again", () => {
  expect(now("rerun", "In[6]")).toEqual({ now: ["other"], older: ["loss"] });
  expect(now("rerun", "In[7]").now).toContain("loss");
  expect(now("rerun", "In[7]").older).toEqual(["other"]);
});

const ofGraph = (graph: Graph) => `${paths(presentOf(graph).roots)} | ${paths(presentOf(graph).older)}`;

test("while a loop runs the decision stays", () => {
  const seen = momentsOf("mlp_loop").map(({ graph }) => ofGraph(graph));
  expect(new Set(seen)).toEqual(new Set(["loss | "]));
});

describe.each(PROGRAMS)("in every picture of %s", (program) => {
  test.each(momentsOf(program).map(({ name, graph }) => [name, graph] as const))("%s", (_, graph) => {
    const { mask, roots, older } = presentOf(graph);
    const isIn = (node: number) => mask === null || mask[node] === 1;
    expect(roots.every(({ node }) => isIn(node))).toBe(true);
    expect(older.some(({ node }) => isIn(node))).toBe(false);
    expect(new Set([...roots, ...older])).toEqual(new Set(graph.roots.filter(({ node }) => node >= 0)));
    // Whatever is shown, is shown with all that it is computed from.
    for (let v = 0; v < graph.n; v++)
      for (let e = graph.edgeStart[v]; isIn(v) && e < graph.edgeStart[v + 1]; e++)
        expect(isIn(graph.edgeTo[e])).toBe(true);
    // What failed is there, with the call that freed it, unless a later cell has made something else.
    const last = graph.calls.at(-1);
    if (last?.result === "raised" && graph.indexOf(last.failedUid) >= 0 && last.cell === presentOf(graph).cell)
      expect(isIn(graph.indexOf(last.failedUid))).toBe(true);
    // The picture draws that, or everything.
    const drawn = fold(graph);
    for (let v = 0; v < graph.n; v++) if (!isIn(v)) expect(drawn.boxOf[v]).toBe(-1);
    const all = fold(graph, { older: true });
    for (const { node } of older)
      if (graph.kind[node] !== KIND.accumulate) expect(all.boxOf[node]).toBeGreaterThanOrEqual(0);
  });
});
