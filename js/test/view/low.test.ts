// @vitest-environment happy-dom
/** A low view: the picture, a headline and a fix, the timeline in the header, and a way to the full view. */
import { expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { momentOf } from "../programs/index.ts";
import { mount, settle } from "./support.ts";

test("the timeline is in the header, with the numbers of its calls; there are no buttons to run something", async () => {
  const model = new FakeModel({ height: 220 });
  model.set("wire", JSON.stringify(momentOf("two_losses", "In[4]").wire));
  const { root, close } = mount(model);
  await expect.poll(() => root.querySelectorAll("[data-role=root]").length, { timeout: 30_000 }).toBe(2);
  await settle();
  expect([...root.querySelectorAll(".gw-spark text")].map((text) => text.textContent).sort()).toEqual(["1", "2"]);
  expect(root.querySelectorAll(".gw-run")).toHaveLength(0);
  const full = [...root.querySelectorAll("button")].find((button) => button.textContent === "full view")!;
  full.click();
  await expect.poll(() => root.querySelector(".gw-spark")).toBeNull();
  expect(model.get("height")).toBe(0);
  await expect.poll(() => root.querySelectorAll(".gw-run").length, { timeout: 30_000 }).toBeGreaterThan(0);
  close();
});
