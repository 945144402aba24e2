// @vitest-environment happy-dom
/** The shipped bundle starts, draws, and answers a key and a click. That it is what js/ builds is checked elsewhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { FakeKernel } from "../../dev/fake.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import { STORIES } from "../../dev/stories.ts";
import type source from "../../src/app/widget.ts";

const file = join(import.meta.dirname, "../../../graphwidget/static/widget.js");
const code = readFileSync(file).toString("base64");
const { default: bundle } = (await import(/* @vite-ignore */ `data:text/javascript;base64,${code}`)) as {
  default: typeof source;
};

test("the bundle draws a story, and a click on its backward runs it", async () => {
  const model = new FakeModel();
  void new FakeKernel(model, STORIES.reused!());
  const el = document.createElement("div");
  document.body.append(el);
  const end = bundle.render({ model, el });
  const button = () => el.querySelector<HTMLElement>('[aria-label="loss.backward()"]');
  await vi.waitFor(() => expect(button()).not.toBeNull(), { timeout: 30_000 });
  expect(el.querySelector('[role="treeitem"]')).not.toBeNull();
  const before = el.innerHTML;
  button()!.click();
  await vi.waitFor(() => expect(el.innerHTML).not.toBe(before));
  end();
  expect(el.querySelector('[role="treeitem"]')).toBeNull();
  el.remove();
});
