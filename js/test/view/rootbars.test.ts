// @vitest-environment happy-dom
/** The buttons under roots. */
import { expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { momentOf } from "../programs/index.ts";
import { mount } from "./support.ts";

test("a root that only the last error keeps has no buttons, for it has no name in the program", async () => {
  const { wire } = momentOf("two_losses", "In[2]");
  const [first, ...others] = wire.roots as Record<string, unknown>[];
  const model = new FakeModel();
  model.set("wire", JSON.stringify({ ...wire, roots: [{ ...first, lost: true }, ...others] }));
  const { root, close } = mount(model);
  const buttons = () => [...root.querySelectorAll(".gw-run")].map((button) => button.getAttribute("aria-label"));
  await expect.poll(buttons, { timeout: 30_000 }).toContain("loss2.backward()");
  expect(buttons()).not.toContain("loss1.backward()");
  expect(root.querySelectorAll("[data-role=root]")).toHaveLength(2);
  close();
});
