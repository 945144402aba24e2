// @vitest-environment happy-dom
/** Two moments compared: chosen with the mouse or the keyboard, told in words and tables, and marked on the cards. */
import { afterEach, expect, test } from "vitest";
import { tiny } from "../../dev/stories.ts";
import { node, type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

/** A view with two stored moments: before and after a call. */
async function afterACall(): Promise<void> {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  await view.settle();
}

const panel = () => view.one("section.gw-comparison");

test("the keyboard compares two moments: per variable, per node, and on the cards", async () => {
  await afterACall();
  view.press("[");
  await view.settle();
  view.press("c");
  await view.settle();
  expect(panel().textContent).toContain("Choose another moment");
  view.press("n");
  await view.settle();
  await view.settle();
  expect(panel().textContent).toMatch(/\d+ saved tensors? freed/);
  const [variables, nodes] = [...panel().querySelectorAll("table")];
  expect(variables!.textContent).toContain("loss");
  expect(nodes!.textContent).toContain("ReluBackward0");
  const card = node(view, "ReluBackward0")[0]!;
  expect(card.getAttribute("aria-label")).toContain("freed since the first moment");
  expect(card.querySelector(".g-changeword")!.textContent).toBe("freed");
  expect(view.all(".gw-from")).toHaveLength(1);
});

test("the mouse does the same, the order does not matter, and Escape ends it where it was", async () => {
  await afterACall();
  view.button("compare").click();
  await view.settle();
  view.button("Previous step").click();
  await view.settle();
  await view.settle();
  expect(panel().querySelector("h3")!.textContent).toMatch(/^From .* · step 1 to .* · step 2$/);
  view.press("Escape");
  await view.settle();
  expect(view.all("section.gw-comparison")).toEqual([]);
  expect(view.one(".gw-stepper").textContent).toContain("Past · step");
  expect(view.all(".g-changeword")).toEqual([]);
});
