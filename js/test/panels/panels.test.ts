// @vitest-environment happy-dom
/** The panels change what has changed, and nothing else: focus, selection and alerts stay. */
import { afterEach, expect, test } from "vitest";
import { reused, tiny } from "../../dev/stories.ts";
import { node, type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

test("an update that says the same leaves the findings, their text and the focus where they are", async () => {
  view = await show(reused());
  const alert = view.one("[role=alert]");
  const finding = view.one("[data-finding]");
  const text = finding.querySelector("h3")!.lastChild;
  const fix = view.button("copy the fix");
  fix.focus();
  const changes: MutationRecord[] = [];
  const observer = new MutationObserver((records) => changes.push(...records));
  for (const each of [alert, finding]) observer.observe(each, { childList: true, characterData: true, subtree: true });
  view.kernel.publish();
  await view.settle();
  observer.disconnect();
  expect(alert.textContent).toContain("needs saved tensors that");
  expect(alert.querySelector("button, [data-finding]")).toBeNull();
  expect(view.root.dataset.serial).toBe("2");
  expect(view.one("[role=alert]")).toBe(alert);
  expect(finding.querySelector("h3")!.lastChild).toBe(text);
  expect(changes).toEqual([]);
  expect(document.activeElement).toBe(fix);
});

test("a path step keeps the focus when a node is brought out by it", async () => {
  view = await show(reused());
  const [step] = view.all(".gw-step");
  step!.focus();
  view.kernel.publish();
  await view.settle();
  expect(document.activeElement).toBe(step);
});

test("the buttons of a root stay the same elements while its call runs and after it", async () => {
  view = await show(tiny());
  const button = view.button("loss.backward()");
  button.focus();
  button.click();
  await view.settle();
  expect(view.button("loss.backward()")).toBe(button);
  expect(document.activeElement).toBe(button);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
});

test("the slider goes back to where it was when a step leads nowhere", async () => {
  view = await show(tiny());
  const slider = view.one("input[type=range]") as HTMLInputElement;
  const before = slider.value;
  slider.value = "0";
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  await view.settle();
  expect(slider.value).toBe(before);
});

test("the copy button says what came of it, and then its name again", async () => {
  view = await show(reused());
  const copy = view.button("copy the fix");
  copy.click();
  await expect.poll(() => copy.textContent).toMatch(/copied|select and copy/);
  await expect.poll(() => copy.textContent, { timeout: 10_000 }).toBe("copy");
});
