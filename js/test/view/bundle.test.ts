// @vitest-environment happy-dom
/** The shipped bundle, whose property names are shortened, does what the sources do. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FakeKernel, FakeModel } from "../../dev/fake.ts";
import { STORIES } from "../../dev/stories.ts";
import source from "../../src/widget.ts";

type Widget = typeof source;
const file = join(import.meta.dirname, "../../../graphwidget/static/widget.js");
const code = readFileSync(file).toString("base64");
const { default: bundle } = (await import(/* @vite-ignore */ `data:text/javascript;base64,${code}`)) as {
  default: Widget;
};

/** What an element holds once it has stopped changing: three looks, as a busy machine may leave long pauses. */
async function settled(el: Element): Promise<string> {
  for (let before = "", same = 0; same < 3; ) {
    same = el.innerHTML === before ? same + 1 : 0;
    before = el.innerHTML;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return el.innerHTML;
}

/** What a page holds after the same was done in it. */
async function page(widget: Widget, fill: (model: FakeModel) => void, keys: string[]): Promise<string[]> {
  const model = new FakeModel();
  fill(model);
  const el = document.createElement("div");
  document.body.append(el);
  const end = widget.render({ model, el });
  const seen = [await settled(el)];
  for (const key of keys) {
    const on = document.activeElement?.closest(".graphwidget") ? document.activeElement : el.firstElementChild!;
    on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    seen.push(await settled(el));
  }
  for (const name of ["loss.backward()", "loss.backward()"]) {
    el.querySelector<HTMLElement>(`[aria-label="${name}"]`)?.click();
    seen.push(await settled(el));
  }
  end();
  el.remove();
  return seen;
}

/** The same page twice is slow on a busy machine. */
const PATIENCE = { timeout: 60_000 };
const KEYS = ["f", "Escape", "[", "n", "t", "l", "?"];

for (const name of ["reused", "deep"]) {
  test(`the bundle shows the story "${name}" as the sources do`, PATIENCE, async () => {
    const fill = (model: FakeModel) => void new FakeKernel(model, STORIES[name]!());
    const drawn = await page(bundle, fill, KEYS);
    expect(drawn[0]).toContain('role="treeitem"');
    expect(drawn).toEqual(await page(source, fill, KEYS));
  });
}

for (const name of ["two_losses", "stale", "hooks"]) {
  test(`the bundle shows the recorded picture "${name}" as the sources do`, PATIENCE, async () => {
    const wire = readFileSync(join(import.meta.dirname, "../fixtures", `${name}.json`), "utf8");
    const fill = (model: FakeModel) => {
      model.receive = ({ id }) => queueMicrotask(() => model.emit("msg:custom", { id, ok: true, result: {} }));
      model.set("wire", wire);
    };
    const drawn = await page(bundle, fill, ["f"]);
    expect(drawn[0]).toContain('role="treeitem"');
    expect(drawn).toEqual(await page(source, fill, ["f"]));
  });
}
