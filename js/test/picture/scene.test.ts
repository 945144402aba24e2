import { describe, expect, it } from "vitest";
import { measureByTable } from "../../src/picture/measure.ts";
import { drawSlices, type Picture, redrawSlices, sceneOf } from "../../src/picture/picture.ts";
import { levelOf } from "../../src/picture/scene/context.ts";
import { importantUids } from "../../src/picture/scene/index.ts";
import { noTracks } from "../../src/picture/scene/wires/tracks.ts";
import { type Courses, courseAt } from "../../src/picture/scene/wires/wires.ts";
import { runSlices } from "../../src/picture/slices.ts";
import * as SLOT from "../../src/picture/slot.ts";
import { Builder, toGraph } from "../graphs/index.ts";
import { momentOf } from "../programs/index.ts";
import { byKey, classes, FIXTURES, graphOf, sceneOfFixture, textBoxes, texts } from "./support.ts";

const SCALES = { near: 1, smaller: 0.87, half: 0.6, far: 0.4, farthest: 0.2 };

describe("in every fixture", () => {
  for (const name of FIXTURES) {
    it(`no text of ${name} is drawn below 9 px`, () => {
      for (const scale of Object.values(SCALES)) {
        for (const box of textBoxes(sceneOfFixture(name, { level: levelOf(scale) }))) {
          expect(box.size * Math.min(1, scale), `${box.text} at ${scale}`).toBeGreaterThanOrEqual(8.99);
        }
      }
    });

    for (const compact of [false, true]) {
      it(`no two texts of ${name} overlap${compact ? " in compact form" : ""}`, () => {
        const boxes = textBoxes(sceneOfFixture(name, { compact, buttons: true }));
        const pairs = boxes.flatMap((a, i) =>
          boxes
            .slice(i + 1)
            .filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
            .map((b) => `${a.item}: ${a.text} / ${b.item}: ${b.text}`),
        );
        expect(pairs).toEqual([]);
      });
    }

    it(`no card of ${name} covers another, a flag or a leaf`, () => {
      const solid = sceneOfFixture(name).items.filter(
        ({ role, key }) => role === "node" || role === "group" || role === "root" || (role === "leaf" && key),
      );
      for (const a of solid) {
        for (const b of solid) {
          if (a === b || a.role === "leaf" || (b.role === "leaf" && b.h < 18)) continue;
          const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
          expect(apart, `${a.key} and ${b.key}`).toBe(true);
        }
      }
    });

    it(`everything of ${name} lies inside the scene`, () => {
      for (const compact of [false, true]) {
        const scene = sceneOfFixture(name, { compact, buttons: true });
        for (const item of scene.items) {
          expect(item.x, item.key).toBeGreaterThanOrEqual(scene.left);
          expect(item.y, item.key).toBeGreaterThanOrEqual(scene.top);
          expect(item.x + item.w, item.key).toBeLessThanOrEqual(scene.left + scene.width);
          expect(item.y + item.h, item.key).toBeLessThanOrEqual(scene.top + scene.height);
        }
      }
    });

    it(`keys of ${name} name one item each`, () => {
      const keys = sceneOfFixture(name).items.map((item) => item.key);
      expect(keys.length).toBe(new Set(keys).size);
    });

    it(`every focusable thing of ${name} has a name`, () => {
      for (const item of sceneOfFixture(name).items) {
        if (["node", "group", "root", "leaf"].includes(item.role)) expect(item.label, item.key).toBeTruthy();
      }
    });
  }
});

it("who freed it stands at the loss after any number of iterations", () => {
  const { graph } = momentOf("mlp_loop", "In[2]");
  expect(graph.calls.at(-1)?.rootUids).toEqual([]);
  const lines = sceneOf(graph).items.filter(({ data }) => data?.role === "line");
  expect(lines.map(texts)).toEqual([["20", "freed 11 saved tensors"]]);
});

describe("y = t @ a, reused in a loop, at the error", () => {
  const scene = sceneOfFixture("second_backward");

  it("the shared node says what it is, what happened to it and who reaches it", () => {
    const node = byKey(scene, "n1");
    expect(node.data).toEqual({ node: "MvBackward0", uid: "1", state: "freed", shared: "true", ghost: "false" });
    expect(node.label).toBe(
      "MvBackward0 of y, In[1] line 6, shared by loss of iteration 0 and loss of iteration 1, " +
        "2 saved tensors freed by call 1, raised here",
    );
  });

  it("its slots are hollow with a slash, and the number of the call that freed them stands beside them", () => {
    const node = byKey(scene, "n1");
    expect(classes(node).filter((c) => c === "freed")).toHaveLength(2);
    expect(classes(node).filter((c) => c === "slash")).toHaveLength(2);
    expect(texts(node)).toEqual(expect.arrayContaining(["self", "vec", "freed", "1"]));
  });

  it("it carries the stripes of both losses, the second one hollow", () => {
    const stripes = classes(byKey(scene, "n1")).filter((c) => c.startsWith("stripe"));
    expect(stripes).toEqual(["stripe r1", "stripe line2 r2"]);
  });

  it("iteration 0 is drawn as gone and left of iteration 1", () => {
    const old = byKey(scene, "n13");
    expect(old.data?.ghost).toBe("true");
    expect(classes(old)).toContain("node ghost");
    expect(old.x).toBeLessThan(byKey(scene, "n23").x);
    expect(texts(byKey(scene, "root0"))).toEqual(["loss", "iteration 0, gone"]);
    expect(classes(byKey(scene, "wn13>n1"))[0]).toBe("wire r1 gone");
  });

  it("y is the carrier: its filled tag lies on the border, whose two sides are named", () => {
    const tag = byKey(scene, "tag1");
    expect(classes(tag)[0]).toBe("tag carrier");
    expect(texts(tag)).toEqual(["y"]);
    const border = byKey(scene, "boundary");
    const line = border.y + border.h / 2;
    expect(tag.y).toBeLessThan(line);
    expect(tag.y + tag.h).toBeGreaterThan(line);
    expect(texts(border)).toEqual(["kept since In[1]", "new in iteration 1"]);
  });

  it("lines of files are grouped by function, in the order in which they first made something", () => {
    const graph = graphOf("second_backward");
    const files: Record<string, [string, string, number]> = {
      "6": ["proj/model.py", "Net.forward", -1],
      "2": ["proj/train.py", "fit", -9],
      "3": ["proj/train.py", "fit", -9],
    };
    const places = graph.places.map((place) => {
      const [file, fn, inner] = files[`${place.line}`] ?? [null, null, null];
      return file ? { ...place, cell: null, file, fn, inner, run: 0 } : place;
    });
    const calls = graph.calls.map((call) => ({ ...call, cell: null, file: "proj/train.py", inner: -9 }));
    const rails = sceneOf({ ...graph, places, calls }).items.filter((item) => item.role === "rail");
    expect(rails.map((item) => texts(item)[0])).toEqual([
      "model.py:6 forward · once",
      "train.py:2 fit · each iteration",
      ":3",
      "train.py:4",
    ]);
    expect(rails[2]!.label).toBe("train.py:3 fit loss = mse(x_out, x)");
  });

  it("rows of the code rail stand beside the nodes that they made, with the carrier in bold", () => {
    const rails = scene.items.filter((item) => item.role === "rail");
    expect(rails.map(texts)).toEqual([
      ["In[1]:6 · once", "y = t @ a"],
      ["In[2]:2 · each iteration", "x_out = t @ (x + y)"],
      ["In[2]:3", "loss = mse(x_out, x)"],
      ["In[2]:4", "loss.backward()"],
    ]);
    const node = byKey(scene, "n1");
    expect(Math.abs(rails[0]!.y + rails[0]!.h / 2 - node.y - node.h / 2)).toBeLessThan(1);
    const code = rails[1]!.marks.find((mark) => mark.kind === "text" && mark.text.includes("x_out"));
    expect(code).toMatchObject({
      runs: [
        { text: "x_out = t @ (x + ", classes: "" },
        { text: "y", classes: "hot" },
        { text: ")", classes: "" },
      ],
    });
  });

  it("calls are named under the flags in the order in which people count", () => {
    expect(texts(byKey(scene, "line0"))).toEqual(["1", "freed 6 saved tensors"]);
    expect(texts(byKey(scene, "line1"))).toEqual(["2", "raised at its 4th node"]);
  });

  it("the octagon is solid, and the turns of the failing call are written beside its nodes", () => {
    expect(classes(byKey(scene, "x1"))).toEqual(["octagon", "octagonx"]);
    expect([21, 22, 23, 1].map((uid) => texts(byKey(scene, `turn${uid}`))[0])).toEqual(["1st", "2nd", "3rd", "4th"]);
  });

  it("cards of one row stand level", () => {
    expect(byKey(scene, "n12").y).toBeCloseTo(byKey(scene, "n22").y, 3);
    expect(byKey(scene, "n11").y).toBeCloseTo(byKey(scene, "n21").y, 3);
  });

  it("the shared node stands over the middle of its two users", () => {
    const middle = (key: string) => byKey(scene, key).x + byKey(scene, key).w / 2;
    expect(middle("n1")).toBeCloseTo((middle("n13") + middle("n23")) / 2, 3);
  });
});

describe("two losses over one trunk", () => {
  it("wires of both losses run side by side in the order of the roots", () => {
    const wire = byKey(sceneOfFixture("two_losses"), "wn30>n31");
    expect(classes(wire).filter((c) => c.startsWith("wire "))).toEqual(["wire r1", "wire line2 r2"]);
  });

  it("the hull says by whom the trunk is shared", () => {
    const hull = sceneOfFixture("two_losses").items.find((item) => item.role === "hull")!;
    expect(texts(hull)).toEqual(["shared by loss1 and loss2"]);
  });

  it("under each live root there is room for two buttons", () => {
    const scene = sceneOfFixture("two_losses", { buttons: true });
    const rooms = ["root0", "root1"].map((key) => {
      const root = byKey(scene, key);
      expect(root.buttons!.y).toBeGreaterThanOrEqual(root.h);
      expect(root.buttons!.h).toBeGreaterThanOrEqual(24);
      return { left: root.x + root.buttons!.x, right: root.x + root.buttons!.x + root.buttons!.w };
    });
    const [first, second] = rooms.sort((a, b) => a.left - b.left);
    expect(second!.left).toBeGreaterThanOrEqual(first!.right);
  });

  it("a gone root offers none", () => {
    expect(byKey(sceneOfFixture("second_backward", { buttons: true }), "root0").buttons).toBeUndefined();
  });

  it("what raised before the newest call is not red any more", () => {
    const graph = graphOf("second_backward");
    const later = { ...graph.calls.at(-1)!, n: 2, result: "ok" as const, failedUid: null };
    const { items } = sceneOf({ ...graph, calls: [...graph.calls, later] });
    expect(items.length).toBeGreaterThan(10);
    expect(items.filter(({ role }) => role === "octagon")).toEqual([]);
    expect(items.flatMap(({ marks }) => marks).filter(({ classes }) => classes.includes("failcard"))).toEqual([]);
  });

  it("a forecast draws half boxes and a dashed octagon, and changes no place", () => {
    const before = sceneOfFixture("two_losses");
    const forecast = {
      executes: [40, 41, 42, 30],
      frees: [
        [40, 0],
        [30, 0],
      ] as [number, number][],
      failsAt: 30,
    };
    const after = sceneOfFixture("two_losses", { forecast });
    expect(classes(byKey(after, "n30"))).toContain("will");
    expect(classes(byKey(before, "n30"))).not.toContain("will");
    expect(byKey(after, "n30").label).toContain("1 saved tensor would be freed");
    expect(classes(byKey(after, "x30"))).toEqual(["octagonopen", "octagonopenx"]);
    for (const item of before.items.filter(({ role }) => role === "node")) {
      expect([byKey(after, item.key).x, byKey(after, item.key).y]).toEqual([item.x, item.y]);
    }
  });

  it("the bowl of a leaf is empty until .grad is there", () => {
    const leaf = sceneOfFixture("two_losses").items.find((item) => item.role === "leaf");
    expect(leaf?.label).toContain(".grad is None");
    expect(classes(leaf!)).toContain("bowlempty");
    expect(classes(byKey(sceneOfFixture("second_backward"), "leafn1:2"))).toContain("bowl");
  });
});

describe("states of saved tensors", () => {
  it("each has a glyph of its own and is named in words", () => {
    const stale = byKey(sceneOfFixture("stale"), "n30");
    expect(classes(stale)).toEqual(expect.arrayContaining(["stale", "cut", "held", "node stalecard"]));
    expect(stale.label).toContain("1 saved tensor held, 1 saved tensor stale");
    const hooks = sceneOfFixture("hooks");
    expect(classes(byKey(hooks, "n7"))).toContain("packed");
    expect(byKey(hooks, "n7").label).toContain("1 saved tensor packed");
    expect(classes(byKey(hooks, "n6"))).toContain("unknown");
    expect(byKey(hooks, "n6").label).toContain("1 saved tensor unknown");
    expect(classes(byKey(hooks, "n9"))).toContain("none");
    expect(byKey(hooks, "n9").label).toContain("no saved tensor needed");
  });

  it("two calls that freed one node's slots each stand beside their slot", () => {
    const node = byKey(sceneOfFixture("hooks"), "n8");
    expect(texts(node).filter((text) => text === "1" || text === "2")).toEqual(["1", "2"]);
    expect(node.label).toContain("2 saved tensors freed by call 1 and call 2");
  });

  it("more slots than fit become glyphs without names", () => {
    const node = byKey(sceneOfFixture("hooks"), "n4");
    expect(classes(node).filter((c) => c === "held" || c === "freed" || c === "packed")).toHaveLength(4);
    expect(texts(node)).not.toContain("stride");
  });

  it("a warning draws a dashed octagon and says so under the flag", () => {
    const scene = sceneOfFixture("stale");
    expect(classes(byKey(scene, "x30"))[0]).toBe("octagonopen");
    expect(texts(byKey(scene, "line1"))).toEqual(["would raise at D.2"]);
  });
});

describe("folded groups", () => {
  const folded = { fold: { maxBoxes: 4, visible: [] }, buttons: true };

  it("roots inside one repeat share a flag, and no hull calls them shared", () => {
    const scene = sceneOfFixture("leak", folded);
    const flags = scene.items.filter(({ role }) => role === "root");
    expect(flags.map((flag) => texts(flag)[0])).toEqual(["history[0]", "history[1] … history[7]"]);
    expect(scene.items.filter(({ role }) => role === "hull")).toEqual([]);
  });

  it("a tag tells the first and the last of one list, not of two", () => {
    const graph = graphOf("leak");
    graph.roots = [];
    graph.owners = graph.owners.flatMap((owner) =>
      ["losses", "kept"].map((list) => ({ ...owner, path: owner.path.replace("history", list) })),
    );
    const tags = sceneOf(graph, folded).items.filter(({ role }) => role === "tag");
    expect(tags.map((tag) => texts(tag)[0])).toEqual(["losses[1] … losses[7]", "losses[0] +1"]);
  });

  it("of many roots all have a flag, each on its own only where a call began", () => {
    const b = new Builder();
    const x = ["Exp", "Tanh"].reduce((y, op) => b.fn(op, [y]), b.leaf("w"));
    for (let i = 0; i < 50; i++) b.fn("Sum", [b.fn("Mul", [x], { line: "c:3" })], { line: "c:3" });
    const graph = toGraph(b.graph);
    const called = graph.roots[20]!;
    graph.calls = graphOf("one_call").calls.map((call) => ({
      ...call,
      failedUid: null,
      rootUids: [graph.uid[called.node]!],
    }));
    const flagsOf = (expandAll: boolean) =>
      sceneOf(graph, { fold: { visible: importantUids(graph, graph.roots), expandAll } }).items.filter(
        ({ role }) => role === "root",
      );
    expect(flagsOf(false).map((flag) => texts(flag)[0])).toEqual([
      "loss0",
      "loss1 … loss19",
      "loss20",
      "loss21 … loss49",
    ]);
    expect(flagsOf(true)).toHaveLength(50);
  });

  it("a repeat says how often, a group what it holds", () => {
    const scene = sceneOfFixture("leak", folded);
    const groups = scene.items.filter(({ role }) => role === "group");
    expect(groups.flatMap(texts)).toEqual(expect.arrayContaining(["×7", "4 held 35 kB", "28 held 246 kB"]));
    for (const group of groups) expect(group.data?.state).toBe("held");
  });

  it("what would raise inside a group is marked on it", () => {
    const scene = sceneOfFixture("stale", folded);
    expect(byKey(scene, "x30").role).toBe("octagon");
    expect(scene.items.find(({ role }) => role === "group")?.label).toContain("would raise inside");
  });
});

describe("overlays", () => {
  it("search hits are drawn on the card; what was not found is dimmed", () => {
    const scene = sceneOfFixture("two_losses", { hits: new Set([30, 32]), hit: 32 });
    expect(classes(byKey(scene, "n30"))).toContain("node hitcard");
    expect(classes(byKey(scene, "n32"))[0]).toBe("hitring");
    expect(classes(byKey(scene, "n40"))).toContain("node dim");
  });

  it("looking at one root dims the lines of the others", () => {
    const wire = byKey(sceneOfFixture("two_losses", { onlyRoot: 1 }), "wn30>n31");
    expect(classes(wire)[0]).toBe("wire r1 dim");
  });
});

it("cards that are drawn again with other options keep their size", () => {
  const options = { measure: measureByTable, buttons: true };
  for (const name of FIXTURES) {
    for (const before of [options, { ...options, compact: true }, { ...options, rail: false }]) {
      const picture = runSlices(drawSlices(graphOf(name), {}, () => before));
      const cards = ({ scene }: Picture) =>
        scene.items.filter(({ role }) => role === "node").map(({ key, x, y, w, h }) => [key, x, y, w, h]);
      for (const other of [options, { ...options, compact: true, rail: false }])
        expect(cards(runSlices(redrawSlices(picture, other)))).toEqual(cards(picture));
    }
  }
});

it("cards stand at the same place at every level of detail", () => {
  for (const name of FIXTURES) {
    const near = sceneOfFixture(name).items.filter(({ role }) => role === "node");
    for (const scale of Object.values(SCALES)) {
      const scene = sceneOfFixture(name, { level: levelOf(scale) });
      for (const { key, x, y, w, h } of near) expect(byKey(scene, key)).toMatchObject({ x, y, w, h });
    }
  }
});

it("from far away a box is a bar: filled when held, hollow when freed", () => {
  expect(classes(byKey(sceneOfFixture("two_losses", { level: 0 }), "n30"))).toEqual(["held"]);
  expect(classes(byKey(sceneOfFixture("second_backward", { level: 0 }), "n1"))).toEqual(["freed"]);
  expect(classes(byKey(sceneOfFixture("stale", { level: 0 }), "n30"))).toEqual(["stale"]);
});

it("a card is as wide when its saved tensors are freed as while they were held", () => {
  for (const name of FIXTURES) {
    for (const compact of [false, true]) {
      const widths = [SLOT.held, SLOT.freed].map((state) => {
        const graph = graphOf(name);
        graph.slotState.fill(state);
        graph.slotFreedBy.fill(state === SLOT.freed ? 0 : -1);
        const cards = sceneOf(graph, { compact }).items.filter(({ role }) => role === "node");
        return cards.map(({ key, w }) => [key, w]);
      });
      expect(widths[1]).toEqual(widths[0]);
    }
  }
});

it("a place on a wire is known at every height, also where a piece of it has none", () => {
  const points = Float64Array.from([10, 100, 10, 60, 30, 60, 30, 20]);
  const course = { points, start: Int32Array.of(0, points.length), tracks: noTracks(points) } as unknown as Courses;
  expect([100, 80, 60, 40, 20].map((y) => courseAt(course, 0, y))).toEqual([10, 10, 10, 30, 30]);
  expect(courseAt({ ...course, start: Int32Array.of(2, 6) }, 0, 60)).toBe(10);
});

it("a scene that is looked at from elsewhere has the marks that one made for that distance has", () => {
  for (const name of FIXTURES) {
    const scene = sceneOfFixture(name);
    for (const scale of Object.values(SCALES)) {
      scene.look(scale);
      const made = sceneOfFixture(name, { level: levelOf(scale) });
      for (const { key, role, marks } of made.items) {
        if (role === "node" || role === "group" || role === "wire") expect(byKey(scene, key).marks, key).toEqual(marks);
      }
    }
  }
});

it("the code rail lists calls in the order of their cells, also of cells that made no node", () => {
  for (const [program, moment, calls] of [
    ["rerun", "In[7]", ["In[3]:2", "In[7]:1"]],
    ["mlp_loop", "In[3]", ["In[2]:5", "In[3]:1"]],
  ] as const) {
    const { items } = sceneOf(momentOf(program, moment).graph, { room: { w: 900, h: 600 } });
    const rows = items.filter(({ role }) => role === "rail").sort((a, b) => a.y - b.y);
    const places = rows.map((row) => texts(row)[0]).filter((words) => calls.some((call) => words?.startsWith(call)));
    expect(places, program).toEqual(calls);
  }
});
