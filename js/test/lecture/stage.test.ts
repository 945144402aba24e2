// @vitest-environment happy-dom
/** Presenting: by key and from the menu, remembered by the model; and what is said about a view beside the notebook. */
import { afterEach, expect, test } from "vitest";
import { reused, tiny } from "../../dev/stories.ts";
import { type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

test("p presents: the picture, the headline and the first fix; the model keeps it, and p ends it", async () => {
  view = await show(reused());
  view.press("p");
  await view.settle();
  expect(view.model.get("presenting")).toBe(true);
  expect(view.model.saves).toBe(1);
  expect(view.root.hasAttribute("data-present")).toBe(true);
  expect(view.one(".gw-body").dataset.stage).toBe("headline");
  const [finding, ...more] = view.all(".gw-panel section");
  expect(more).toEqual([]);
  expect(finding!.querySelectorAll("h3")).toHaveLength(1);
  expect(finding!.querySelectorAll(".gw-best").length).toBeLessThanOrEqual(1);
  view.button("End presenting").click();
  await view.settle();
  expect(view.model.get("presenting")).toBe(false);
  expect(view.root.hasAttribute("data-present")).toBe(false);
  expect(view.all(".gw-finding").length).toBeGreaterThan(0);
});

test("with nothing to say the picture is alone; who steps through a call has the panel for that", async () => {
  view = await show(tiny());
  view.model.update({ presenting: true });
  await view.settle();
  expect(view.one(".gw-body").dataset.stage).toBe("alone");
  view.press("s");
  await view.settle();
  expect(view.one(".gw-body").dataset.stage).toBe(undefined);
  expect(view.all(".gw-play")).toHaveLength(1);
});

test("where no menu opens, one sentence says how the view gets beside the notebook", async () => {
  view = await show(tiny());
  view.press("?");
  await view.settle();
  view.button("Show beside the notebook").click();
  await view.settle();
  expect(view.one(".gw-answer[role=status]").textContent).toContain('then "Create New View for Cell Output".');
});
