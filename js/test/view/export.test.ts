// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { reused } from "../../dev/stories.ts";
import { show } from "./support.ts";

test("the menu offers what the kernel writes, and saves what it answers", async () => {
  const view = await show(reused());
  const saved: string[] = [];
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    saved.push(this.download);
  });
  view.press("?");
  await view.settle();
  const tools = view.all(".gw-dialog .gw-row button").map((button) => button.textContent);
  expect(tools).toEqual(expect.arrayContaining(["Export SVG", "Export HTML", "Copy as text"]));
  expect(tools).not.toContain("Export Text");
  view.button("Export HTML").click();
  await view.settle();
  expect(view.model.sent.at(-1)).toMatchObject({ verb: "export", format: "html" });
  expect(saved).toEqual(["autograd-graph.html"]);
  expect(view.root.textContent).toContain("Saved as autograd-graph.html.");
  view.close();
});
