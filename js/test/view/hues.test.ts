// @vitest-environment happy-dom
/** A call has one number and one hue, wherever it is drawn: on cards, at its flag, on the timeline, in the panel. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { View } from "../../src/app/view.ts";

const file = (name: string) => readFileSync(join(import.meta.dirname, "../fixtures", `${name}.json`), "utf8");

/** Of each call's number that is drawn: its hues, by the part of the view in which it stands. */
function hues(root: Element): Map<string, Record<string, Set<string>>> {
  const found = new Map<string, Record<string, Set<string>>>();
  for (const text of root.querySelectorAll("text.g-callno")) {
    const part = [".gw-tree", ".gw-foot", ".gw-panel"].find((each) => text.closest(each)) ?? "elsewhere";
    const hue = [...text.classList].find((each) => /^g-r\d$/.test(each)) ?? "none";
    const parts = found.get(text.textContent!) ?? {};
    found.set(text.textContent!, parts);
    parts[part] ??= new Set();
    parts[part].add(hue);
  }
  return found;
}

test.each([
  [0, 1],
  [2, 3],
  [3, 0],
])("the calls of a failing pair with the orders %i and %i", async (older, newer) => {
  const wire = JSON.parse(file("second_backward"));
  [wire.calls[0].order, wire.calls[1].order] = [older, newer];
  // The older one's root is not in the picture: before, its hue was lost with it.
  wire.roots = wire.roots.filter(({ order }: { order: number }) => order !== wire.roots[0].order);
  const model = new FakeModel();
  model.set("wire", JSON.stringify(wire));
  const life = new AbortController();
  const el = document.createElement("div");
  document.body.append(el);
  new View(model, el, life.signal);
  await expect
    .poll(() => Object.keys(hues(el).get("1") ?? {}).sort(), { timeout: 30_000 })
    .toEqual([".gw-foot", ".gw-panel", ".gw-tree"]);
  for (const [number, order] of [
    ["1", older],
    ["2", newer],
  ] as const) {
    const parts = hues(el).get(number)!;
    expect(Object.keys(parts)).toEqual(expect.arrayContaining([".gw-foot", ".gw-panel"]));
    for (const [part, of] of Object.entries(parts)) expect([part, ...of]).toEqual([part, `g-r${order + 1}`]);
  }
  life.abort();
  el.remove();
});
