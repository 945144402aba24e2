// @vitest-environment happy-dom
/** The attributes that other programs (and people's tests) may rely on. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { STORIES } from "../../dev/stories.ts";
import { View } from "../../src/app/view.ts";
import { type Shown, show } from "./support.ts";

const FIXTURES = ["second_backward", "two_losses", "one_call", "stale", "leak", "hooks"];
const STATES = ["held", "freed", "mixed", "stale", "packed", "none"];

let close = () => {};
afterEach(() => close());

function check(drawn: readonly HTMLElement[]): void {
  expect(drawn.length).toBeGreaterThan(0);
  for (const each of drawn) {
    const { node, uid, state, shared, ghost } = each.dataset;
    const label = each.getAttribute("aria-label") ?? "";
    expect(each.getAttribute("role")).toBe("treeitem");
    expect(["0", "-1"]).toContain(each.getAttribute("tabindex"));
    expect(uid).toMatch(/^\d+$/);
    expect(STATES).toContain(state);
    expect(["true", "false"]).toContain(shared);
    expect(["true", "false"]).toContain(ghost);
    expect(label).toContain(node);
    expect(label).toMatch(/saved tensor|module|node/);
    if (ghost === "true") expect(label).toContain("gone");
    if (shared === "true") expect(label).toContain("shared by");
    if (node?.endsWith("Backward0")) expect(label).toMatch(/In\[\d+\] line \d+|cell and line unknown/);
  }
}

for (const [name, story] of Object.entries(STORIES)) {
  if (name === "empty") continue;
  test(`every drawn node of the story "${name}" can be focused and says all of itself`, async () => {
    const view: Shown = await show(story());
    close = view.close;
    const drawn = () => view.all("[data-node]");
    await expect.poll(() => drawn().length, { timeout: 30_000 }).toBeGreaterThan(0);
    check(drawn());
  });
}

for (const name of FIXTURES) {
  test(`every drawn node of the recorded picture "${name}" can be focused and says all of itself`, async () => {
    const model = new FakeModel();
    model.set("wire", readFileSync(join(import.meta.dirname, "../fixtures", `${name}.json`), "utf8"));
    const life = new AbortController();
    const el = document.createElement("div");
    document.body.append(el);
    close = () => {
      life.abort();
      el.remove();
    };
    new View(model, el, life.signal);
    const drawn = () => [...el.querySelectorAll<HTMLElement>("[data-node]")];
    await expect.poll(() => drawn().length, { timeout: 30_000 }).toBeGreaterThan(0);
    check(drawn());
  });
}

test("the badge of a leaf is a node like any other", async () => {
  const view = await show(STORIES.reused!());
  close = view.close;
  const leaves = view.all('[data-node="AccumulateGrad"]');
  expect(leaves.length).toBeGreaterThan(0);
  for (const leaf of leaves) expect(leaf.dataset.state).toBe("none");
  expect(leaves.some((leaf) => leaf.dataset.shared === "true")).toBe(true);
});
