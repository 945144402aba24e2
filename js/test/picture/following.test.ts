/** A picture that follows another keeps what was there; the code rail. */
import { describe, expect, it } from "vitest";
import { columnText } from "../../dev/columns.ts";
import { measureByTable } from "../../src/picture/measure.ts";
import type { Graph } from "../../src/picture/model.ts";
import { drawSlices, type Picture, sceneOf } from "../../src/picture/picture.ts";
import { importantUids } from "../../src/picture/scene/index.ts";
import type { Item } from "../../src/picture/scene/types.ts";
import { runSlices } from "../../src/picture/slices.ts";
import { decode } from "../../src/picture/wire.ts";
import { Builder, toGraph } from "../graphs/index.ts";
import { alongWire, byKey, graphOf, sceneOfFixture, texts, wireText } from "./support.ts";

describe("when a picture follows another", () => {
  it("old cards keep their places", () => {
    const draw = (earlier?: Picture) =>
      runSlices(drawSlices(graphOf("two_losses"), {}, () => ({ measure: measureByTable }), earlier));
    const first = draw();
    const before = first.scene;
    const after = draw(first).scene;
    for (const item of before.items.filter(({ role }) => role === "node")) {
      const moved = byKey(after, item.key);
      expect(Math.hypot(moved.x - item.x, moved.y - item.y), item.key).toBeLessThan(1);
    }
  });
});

describe("where groups are opened and closed again", () => {
  const inside = ({ x, y }: { x: number; y: number }, card: Item) =>
    x > card.x + 2 && x < card.x + card.w - 2 && y > card.y + 2 && y < card.y + card.h - 2;
  const meet = (a: Item, b: Item) =>
    a.x + 2 < b.x + b.w && b.x + 2 < a.x + a.w && a.y + 2 < b.y + b.h && b.y + 2 < a.y + a.h;

  it("tags hang beside all wires", () => {
    const { items } = sceneOfFixture("maml", { buttons: true });
    const wires = items.filter(({ role }) => role === "wire");
    const tags = items.filter(({ role }) => role === "tag");
    expect(tags.length).toBeGreaterThan(1);
    for (const tag of tags)
      expect(wires.filter((wire) => alongWire(wire).filter((point) => inside(point, tag)).length > 1)).toEqual([]);
  });

  for (const compact of [false, true]) {
    const graph = graphOf("maml");
    const draw = (wanted: number[], earlier?: Picture) =>
      runSlices(
        drawSlices(
          graph,
          { visible: [...wanted, ...importantUids(graph, graph.roots)] },
          () => ({ measure: measureByTable, compact, buttons: true }),
          earlier,
        ),
      );
    const first = draw([]);
    const pictures = [first];
    for (const { kind, nodes } of first.folded.boxes) {
      if (kind === "node") continue;
      const open = draw([graph.uid[nodes[0]]], first);
      pictures.push(open, draw([], open));
    }
    const form = compact ? "in compact form" : "in full";

    it(`wires run beside cards and flags ${form}`, () => {
      expect(pictures.length).toBeGreaterThan(10);
      for (const { scene } of pictures) {
        const solid = scene.items.filter(({ role }) => ["node", "group", "root", "note"].includes(role));
        for (const wire of scene.items.filter(({ role }) => role === "wire")) {
          const others = solid.filter(({ key }) => !wire.key.slice(1).split(">").includes(key));
          const hit = others.filter((item) => alongWire(wire).filter((point) => inside(point, item)).length > 1);
          expect(
            hit.map(({ key }) => key),
            wire.key,
          ).toEqual([]);
        }
      }
    });

    it(`hulls are around what is shared, and nothing else ${form}`, () => {
      for (const { scene } of pictures) {
        const hulls = scene.items.filter(({ role }) => role === "hull");
        const cards = scene.items.filter(({ role }) => role === "node" || role === "group");
        for (const card of cards)
          expect(
            hulls.some((hull) => meet(hull, card)),
            card.key,
          ).toBe(card.data!.shared === "true");
      }
    });
  }
});

describe("a picture after nodes have gone", () => {
  /** `count` chains of `length` nodes side by side, of which those from `first` on are there; a node's uid says what it is. */
  const chains = (first: number, count: number, joined: boolean): Graph => {
    const b = new Builder();
    const ends: number[] = [];
    for (let c = first; c < count; c++) {
      let x = b.fn("Exp", []);
      for (let k = 1; k < 4; k++) x = b.fn("Exp", [x]);
      ends.push(x);
    }
    if (joined) b.fn("Stack", ends);
    const graph = toGraph(b.graph);
    graph.uid = graph.uid.map((uid) => (joined && uid === graph.n ? 1000 : 4 * first + uid));
    graph.indexOf = (uid) => graph.uid.indexOf(uid ?? -1);
    return graph;
  };
  const draw = (graph: Graph, earlier?: Picture) =>
    runSlices(drawSlices(graph, {}, () => ({ measure: measureByTable }), earlier));
  const right = ({ placed }: Picture) => placed.left + placed.width;

  it("keeps its places where that costs little", () => {
    const first = draw(chains(0, 3, false));
    const after = draw(chains(1, 3, false), first);
    expect(right(after)).toBeCloseTo(right(first), 0);
  });

  it("keeps its places, whatever that costs, where nothing has gone", () => {
    const plain = (joined: boolean) => {
      const b = new Builder();
      const ends = Array.from({ length: 10 }, () => b.fn("Tanh", [b.fn("Exp", [])]));
      // Each is joined with the one opposite.
      if (joined) for (let i = 0; i < 5; i++) b.fn("Mul", [ends[i], ends[9 - i]]);
      return toGraph(b.graph);
    };
    const first = draw(plain(false));
    const after = draw(plain(true), first);
    const place = ({ plan, placed }: Picture) =>
      new Map(plan.context.folded.boxes.map(({ key }, i) => [key, placed.x[i]]));
    const now = place(after);
    for (const [key, x] of place(first)) expect(Math.abs(now.get(key)! - x)).toBeLessThan(40);
  });

  it("is laid out afresh where the holes make its wires much longer", () => {
    const first = draw(chains(0, 9, false));
    const graph = chains(0, 9, true);
    // Only the outermost chains are left, and now something joins them.
    const keep = [...Array(graph.n).keys()].filter((v) => v < 4 || v >= 32);
    const left = chains(0, 2, true);
    left.uid = Float64Array.from(keep, (v) => graph.uid[v]);
    left.indexOf = (uid) => left.uid.indexOf(uid ?? -1);
    const after = draw(left, first);
    const fresh = draw(left);
    expect([...after.placed.x]).toEqual([...fresh.placed.x]);
    expect(right(after)).toBeLessThan(right(first) / 2);
  });
});

describe("roots in a picture that follows another", () => {
  it("are known by their node and name, as their ids change", () => {
    const draw = (graph: Graph, earlier?: Picture) =>
      runSlices(drawSlices(graph, {}, () => ({ measure: measureByTable }), earlier));
    const first = draw(graphOf("two_losses"));
    const renumbered = graphOf("two_losses");
    const ids = renumbered.roots.map(({ id }) => id).reverse();
    renumbered.roots = renumbered.roots.map((root, i) => ({ ...root, id: ids[i] }));
    const after = draw(renumbered, first);
    const places = ({ plan, placed }: Picture) =>
      new Map(plan.flags.map(({ view }, f) => [view.root.path, placed.x[f + plan.context.folded.boxes.length]]));
    expect(places(first).size).toBeGreaterThan(1);
    expect(places(after)).toEqual(places(first));
  });
});

describe("the code rail", () => {
  it("gives way to places on the cards where most nodes have no known line", () => {
    const message = JSON.parse(wireText("second_backward"));
    message.place = columnText([0, ...Array(message.n - 1).fill(-1)]);
    const graph = decode(message);
    const scene = sceneOf(graph);
    expect(scene.items.filter((item) => item.role === "rail")).toEqual([]);
    expect(texts(byKey(scene, "n11"))).toContain("In[1]:6");
  });

  it("leaves out comments, in which a variable's name means nothing", () => {
    const graph = graphOf("second_backward");
    const places = graph.places.map((place) => ({
      ...place,
      source: `${place.source}  # why y is needed here, again`,
    }));
    const rails = sceneOf({ ...graph, places }).items.filter((item) => item.role === "rail");
    expect(rails.map((rail) => texts(rail)[1])).toContain("x_out = t @ (x + y)");
    expect(rails.flatMap(texts).filter((words) => words.includes("why"))).toEqual([]);
  });
});
