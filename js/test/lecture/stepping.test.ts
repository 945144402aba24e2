// @vitest-environment happy-dom
/** Stepping through one call in the view: ahead and recorded, forwards and backwards, by button, key and slider. */
import { afterEach, expect, test } from "vitest";
import { deep, tiny } from "../../dev/stories.ts";
import { node, type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

const signs = () => view.all("[data-sign]").map((each) => each.getAttribute("data-sign")!);
const runsNow = () => signs().filter((key) => key.startsWith("now "));
const hasRun = () => signs().filter((key) => key.startsWith("ran "));
const said = () => view.one(".gw-play [role=status]").textContent!;
const slider = () => view.one(".gw-play input[type=range]") as HTMLInputElement;
const choice = () => view.one(".gw-play select") as HTMLSelectElement;
const marks = (name: string) => node(view, name)[0]!.innerHTML;

async function open(words?: string): Promise<void> {
  view.press("s");
  await view.settle();
  if (!words) return;
  choice().value = [...choice().options].find((option) => option.textContent === words)!.value;
  choice().dispatchEvent(new Event("change", { bubbles: true }));
  await view.settle();
}

async function moveTo(at: number): Promise<void> {
  slider().value = String(at);
  slider().dispatchEvent(new Event("input", { bubbles: true }));
  await view.settle();
}

test("a call ahead is stepped through: slots turn into would-be-freed, one node is marked, and nothing has run", async () => {
  view = await show(tiny());
  await open();
  expect(choice().selectedOptions[0]!.textContent).toBe("loss.backward(), not run");
  expect(said()).toContain("Before the call. Nothing has run.");
  expect(document.activeElement).toBe(slider());
  const before = marks("ReluBackward0");
  await moveTo(2);
  expect(said()).toMatch(/^Step 2 of \d: ReluBackward0/);
  expect(marks("ReluBackward0")).toContain("g-will");
  expect(node(view, "ReluBackward0")[0]!.getAttribute("aria-label")).toContain("would be freed");
  expect(runsNow()).toHaveLength(1);
  expect(hasRun()).toHaveLength(2);
  view.press(",");
  await view.settle();
  expect(marks("ReluBackward0")).toBe(before);
  expect(hasRun()).toHaveLength(1);
  view.press(".");
  view.press("Escape");
  await view.settle();
  expect(marks("ReluBackward0")).toBe(before);
  expect(signs()).toEqual([]);
  expect(view.all(".gw-play")).toEqual([]);
  expect(view.model.sent.every(({ verb }) => verb !== "backward")).toBe(true);
});

test("a recorded call begins with the picture before it, frees slot by slot, and leads back to now", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
  await open("1 loss.backward()");
  expect(view.root.hasAttribute("data-past")).toBe(true);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("held");
  const last = Number(slider().max);
  await moveTo(last);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
  expect(marks("ReluBackward0")).not.toContain("g-will");
  expect(said()).toContain("After the call.");
  expect(runsNow()).toEqual([]);
  await moveTo(0);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("held");
  expect(signs()).toEqual([]);
  view.button("End stepping").click();
  await view.settle();
  expect(view.root.hasAttribute("data-past")).toBe(false);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
});

test("the node at which a call would raise has an octagon and is the last one", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  await open("loss.backward(), not run");
  await moveTo(Number(slider().max) - 1);
  expect(said()).toContain("It would raise.");
  expect(view.one(".gw-signs").innerHTML).toContain("g-octagonopen");
  expect(view.one(".gw-signs").textContent).toContain("would raise: ");
});

test("of a group the lower edge is as long as the part of it that has run", async () => {
  view = await show(deep(12));
  await open();
  const group = view.one("[role=treeitem][aria-expanded=false]").getAttribute("data-key")!;
  const length = () => {
    const d = view.all("[data-sign]").find((each) => each.getAttribute("data-sign") === `ran ${group}`);
    const [from, to] = /^M([\d.]+) [\d.]+H([\d.]+)/
      .exec(d?.querySelector("path")?.getAttribute("d") ?? "M0 0H0")!
      .slice(1);
    return Number(to) - Number(from);
  };
  expect(length()).toBe(0);
  const last = Number(slider().max);
  await moveTo(last - 1);
  const whole = length();
  let at = last - 1;
  while (at > 0 && length() === whole) await moveTo(--at);
  expect(length()).toBeGreaterThan(0);
  expect(length()).toBeLessThan(whole);
});

test("it plays by itself, pauses, and stops at the end", async () => {
  view = await show(tiny());
  await open();
  const pace = view.one("[aria-label=Speed]") as HTMLSelectElement;
  pace.value = "3";
  pace.dispatchEvent(new Event("change", { bubbles: true }));
  view.press(" ", slider());
  await view.settle();
  expect(Number(slider().value)).toBeGreaterThan(0);
  view.button("Pause").click();
  await view.settle();
  const stands = slider().value;
  await new Promise((later) => setTimeout(later, 400));
  expect(slider().value).toBe(stands);
  view.button("Play").click();
  for (let waited = 0; slider().value !== slider().max && waited < 100; waited++)
    await new Promise((later) => setTimeout(later, 50));
  await view.settle();
  expect(slider().value).toBe(slider().max);
  expect(view.button("Play")).toBeTruthy();
});

test("while a cell runs it says what it waits for; a new picture ends the steps of a graph that was", async () => {
  view = await show(tiny());
  view.kernel.behind = "In[7]";
  await open();
  expect(view.one(".gw-play").textContent).toContain("waits for In[7]");
  view.kernel.release();
  await view.settle();
  expect(slider().value).toBe("0");
  view.kernel.publish();
  await view.settle();
  expect(view.all(".gw-play")).toEqual([]);
});
