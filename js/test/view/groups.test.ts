// @vitest-environment happy-dom
import { afterEach, expect, test } from "vitest";
import { deep, tiny } from "../../dev/stories.ts";
import { type Shown, show } from "./support.ts";

let view: Shown;
afterEach(() => view.close());

function group(): HTMLElement {
  return view.one('[role=treeitem][aria-expanded="false"]');
}

const cards = () => view.all("svg.gw-tree")[0]!.querySelectorAll("[role=treeitem]");
const lens = () => view.one(".gw-lens");
const inside = (selector: string) => [...lens().querySelectorAll<HTMLElement>(selector)];

async function open(card: HTMLElement): Promise<void> {
  card.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  await view.settle();
}

test("a group opens in a lens beside the drawing, which stays as it is; Escape closes it and goes back to its card", async () => {
  view = await show(deep(40));
  const card = group();
  const before = [...cards()].map((each) => (each as HTMLElement).style.transform);
  card.focus();
  view.press("Enter", card);
  await view.settle();
  expect(lens().getAttribute("aria-label")).toBe(`Inside ${card.dataset.node}`);
  expect(inside("[role=treeitem]").length).toBeGreaterThan(1);
  expect([...cards()].map((each) => (each as HTMLElement).style.transform)).toEqual(before);
  expect(lens().contains(document.activeElement)).toBe(true);
  view.press("Escape", document.activeElement!);
  await view.settle();
  expect(view.all(".gw-lens")).toEqual([]);
  expect(document.activeElement).toBe(card);
});

test("a double click whose second click has opened the group leaves it open", async () => {
  view = await show(deep(40));
  const card = group();
  for (const type of ["click", "click", "dblclick"]) {
    card.dispatchEvent(new MouseEvent(type, { bubbles: true }));
    await view.settle();
  }
  expect(lens().getAttribute("aria-label")).toBe(`Inside ${card.dataset.node}`);
});

test("a group inside a group takes its place, with a way back; every node can be reached", async () => {
  view = await show(deep(400));
  let card: HTMLElement | undefined = group();
  let depth = 0;
  for (; card && depth < 9; depth++) {
    await open(card);
    expect(inside(".gw-trail b").map((each) => each.textContent)).toEqual([card.dataset.node]);
    card = inside('[aria-expanded="false"]')[0];
  }
  expect(card).toBeUndefined();
  expect(depth).toBeGreaterThan(1);
  const crumbs = inside(".gw-trail button");
  expect(crumbs).toHaveLength(depth - 1);
  const name = crumbs[0]!.textContent;
  crumbs[0]!.click();
  await view.settle();
  expect(lens().getAttribute("aria-label")).toBe(`Inside ${name}`);
});

test("the lens says how much is inside and what is around; its cards have bars, a node in it can be inspected", async () => {
  view = await show(deep(40));
  const nodes = /(\d+) nodes/.exec(group().getAttribute("aria-label")!)![1];
  await open(group());
  expect(lens().textContent).toContain(`${nodes} nodes`);
  expect(lens().querySelector(".gw-lensends")!.textContent).toMatch(/from .*|to .*/);
  expect(inside(".g-bytebar").length).toBeGreaterThan(0);
  await open(inside('[aria-expanded="false"]')[0]!);
  const node = inside('[data-node$="Backward0"]')[0]!;
  node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await view.settle();
  expect(view.one(".gw-inspector").textContent).toContain(node.dataset.node);
});

test("the lens follows the picture: a call empties the slots in it, and it closes when its nodes are gone", async () => {
  view = await show(deep(40));
  await open(group());
  expect(inside('[data-state="held"]').length).toBeGreaterThan(0);
  view.button("loss.backward()").click();
  await view.settle();
  await view.settle();
  expect(inside('[data-state="held"]')).toEqual([]);
  const { nodes, ...rest } = tiny();
  const far = (uid: number) => uid + 1e6;
  view.kernel.story = {
    ...rest,
    roots: [],
    nodes: nodes.map((n) => ({ ...n, uid: far(n.uid), next: n.next.map(far) })),
  };
  view.kernel.publish();
  await view.settle();
  expect(view.all(".gw-lens")).toHaveLength(0);
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
  expect(view.one(".gw-empty").textContent).toContain("Nothing has been freed");
  view.button("Show everything").click();
  await view.settle();
  expect(view.all("[data-node$=Backward0]")).toHaveLength(before);
  expect(view.one(".gw-empty").hidden).toBe(true);
});

test("a part that cannot be shown says why, and the picture stays", async () => {
  const story = tiny();
  view = await show({ ...story, roots: story.roots.map((root) => ({ ...root, alive: false })) });
  const menu = view.one("select.gw-group") as HTMLSelectElement;
  const before = view.all("[data-node$=Backward0]").length;
  view.one("[data-node$=Backward0]").focus();
  menu.value = "root";
  menu.dispatchEvent(new Event("change"));
  await view.settle();
  expect(view.one(".gw-answer").textContent).toContain("There is no root that is alive.");
  expect(menu.value).toBe("auto");
  expect(view.all("[data-node$=Backward0]")).toHaveLength(before);
});

test("fitting more than can be read says so, and how to get around", async () => {
  view = await show(deep(80));
  const menu = view.one("select.gw-group") as HTMLSelectElement;
  menu.value = "all";
  menu.dispatchEvent(new Event("change"));
  await expect.poll(() => view.all(".gw-canvas[data-drawn-as]").length, { timeout: 30_000 }).toBe(1);
  await view.settle();
  view.button("Fit").click();
  await view.settle();
  expect(view.one(".gw-answer").textContent).toMatch(/too small to read.*map/);
});

test("a hit inside a closed group is shown in the lens, which the end of the search closes again", async () => {
  view = await show(deep(40));
  const before = cards().length;
  view.press("/");
  await view.settle();
  const box = view.one("input[type=search]") as HTMLInputElement;
  box.value = "tanh layers[5]";
  box.dispatchEvent(new Event("input"));
  await view.settle();
  expect(view.one(".gw-found").textContent).toBe("1 of 1");
  expect(inside('[data-node="TanhBackward0"][aria-label*="layers[5],"]')).toHaveLength(1);
  expect(document.activeElement).toBe(box);
  view.press("Escape", box);
  await view.settle();
  expect(view.all(".gw-lens")).toEqual([]);
  expect(cards()).toHaveLength(before);
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
