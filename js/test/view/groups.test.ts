// @vitest-environment happy-dom
import { afterEach, expect, test } from "vitest";
import { deep, tiny } from "../../dev/stories.ts";
import { type Shown, show } from "./support.ts";

let view: Shown;
afterEach(() => view.close());

function group(): HTMLElement {
  return view.one('[role=treeitem][aria-expanded="false"]');
}

test("a group opened by hand stands in a frame that names it, and that closes it again", async () => {
  view = await show(deep(40));
  const name = group().dataset.node!;
  group().dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  await view.settle();
  const frame = view.one('[role=treeitem][aria-expanded="true"]');
  expect(frame.dataset.node).toBe(name);
  expect(frame.getAttribute("aria-label")).toMatch(/, open group of \d+ nodes, \d+ saved tensors held$/);
  frame.querySelector(".g-closer")!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await view.settle();
  expect(view.all('[aria-expanded="true"]').filter((each) => each.getAttribute("role") === "treeitem")).toEqual([]);
  expect(view.all(`[data-node="${name}"]`)).toHaveLength(1);
});

test("the menu offers every part of the graph that can be shown alone", async () => {
  view = await show(tiny());
  const menu = view.one("select.gw-group") as HTMLSelectElement;
  expect([...menu.options].map((option) => option.textContent)).toEqual([
    "Group: auto",
    "Every node",
    "Only freed",
    "Around selection",
    "One root",
    "One cell",
  ]);
  const before = view.all("[data-node$=Backward0]").length;
  menu.value = "cell";
  menu.dispatchEvent(new Event("change"));
  await view.settle();
  expect(view.all("[data-node$=Backward0]")).toHaveLength(before);
  menu.value = "freed";
  menu.dispatchEvent(new Event("change"));
  await view.settle();
  expect(view.all("[data-node$=Backward0]")).toEqual([]);
  expect(view.all(".gw-run, [data-key^=root]")).toEqual([]); // no flag without its graph
});

test("a hit inside a closed group is stood for by the group, and going to it opens the group", async () => {
  view = await show(deep(40));
  view.press("/");
  await view.settle();
  const box = view.one("input[type=search]") as HTMLInputElement;
  box.value = "tanh layers[5]";
  box.dispatchEvent(new Event("input"));
  await view.settle();
  expect(view.one(".gw-found").textContent).toBe("1 of 1");
  const hit = '[data-node="TanhBackward0"][aria-label*="layers[5],"]';
  expect(view.all(hit)).toEqual([]);
  view.press("Enter", box);
  await view.settle();
  expect(view.all(hit)).toHaveLength(1);
});

test("what is small enough to be shown whole, but too high to be read, is folded to one screen; every node can be asked for", async () => {
  view = await show(deep(5));
  const whole = view.all("[data-node$=Backward0]").length;
  expect(whole).toBeGreaterThan(16);
  view.close();
  view = await show(deep(8));
  expect(view.all("[role=treeitem][data-node]").length).toBeLessThanOrEqual(24);
  expect(view.all("[role=treeitem][aria-expanded=false]").length).toBeGreaterThan(0);
  const menu = view.one("select.gw-group") as HTMLSelectElement;
  menu.value = "all";
  menu.dispatchEvent(new Event("change"));
  // It is drawn in slices, and other programs may have the processor.
  await expect.poll(() => view.all("[data-node$=Backward0]").length, { timeout: 30_000 }).toBeGreaterThan(whole);
});

test("what is much smaller than before is written out as at a first look", async () => {
  const words = () => view.all("svg.gw-tree [role=treeitem]").map((item) => item.textContent);
  view = await show(deep(1));
  const fresh = words();
  view.close();
  view = await show(deep(8));
  view.kernel.story = deep(1);
  view.kernel.publish();
  await view.settle();
  expect(fresh.length).toBeGreaterThan(5);
  expect(words().sort()).toEqual(fresh.sort());
});
