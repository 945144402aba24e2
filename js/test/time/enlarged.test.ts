// @vitest-environment happy-dom
/** The timeline in the view: it is enlarged by a button, a key or its edge, and its folded stretches open. */
import { afterEach, expect, test } from "vitest";
import { tiny } from "../../dev/stories.ts";
import { type Shown, show } from "../view/support.ts";
import { gan } from "./support.ts";

let view: Shown;
afterEach(() => view.close());

test("enlarged, the timeline names what keeps bytes, and a press on a name shows its nodes", async () => {
  view = await show(tiny());
  view.button("Enlarge the timeline: who keeps which bytes").click();
  await view.settle();
  const list = view.one("ul.gw-names");
  expect(list.getAttribute("aria-label")).toMatch(/^Kept after .*, by name$/);
  const [path] = view.kernel.story.owners[0]!;
  expect(list.textContent).toContain(path);
  expect(view.all(".gw-keeps").length).toBeGreaterThan(0);
  list.querySelector("button")!.click();
  await view.settle();
  expect(view.all(".gw-tree .g-focus, .gw-tree .g-hitcard, [role=treeitem]:focus").length).toBeGreaterThan(0);
  view.press("b");
  await view.settle();
  expect(view.all("ul.gw-names")).toEqual([]);
});

test("the edge of the timeline enlarges it by keys, and says how far", async () => {
  view = await show(tiny());
  Object.defineProperty(view.root, "clientHeight", { value: 600 });
  const edge = view.one(".gw-topedge");
  view.press("ArrowUp", edge);
  await view.settle();
  expect(edge.getAttribute("aria-valuenow")).toBe("20");
  expect(view.one(".gw-track").style.height).toBe("104px");
  view.press("ArrowDown", edge);
  await view.settle();
  expect(edge.getAttribute("aria-valuenow")).toBe("0");
});

test("a moment that was not measured says so instead of a band", async () => {
  view = await show(tiny());
  view.kernel.story.events.at(-1)!.id = 77;
  view.kernel.publish();
  view.kernel.story.events.pop();
  view.button("Enlarge the timeline: who keeps which bytes").click();
  await view.settle();
  expect(view.one(".gw-names").textContent).toContain("was not measured");
});

test("folded passes are a button that opens them, with a way back, also by Escape", async () => {
  const story = tiny();
  view = await show({ ...story, events: gan(300) as unknown as typeof story.events });
  const folded = view.one("button.gw-folded");
  expect(folded.getAttribute("aria-label")).toBe("Open ×299 · it 1–299 · In[8]");
  folded.click();
  await view.settle();
  expect(view.all("button.gw-folded").length).toBeGreaterThan(2);
  view.press("Escape");
  await view.settle();
  expect(view.all("button.gw-folded")).toHaveLength(1);
  view.one("button.gw-folded").click();
  await view.settle();
  view.button("Show more of the timeline").click();
  await view.settle();
  expect(view.all("button.gw-folded")).toHaveLength(1);
});
