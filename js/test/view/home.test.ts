// @vitest-environment happy-dom
/** Keys and the focus stay in the view. */
import { expect, test } from "vitest";
import { STORIES } from "../../dev/stories.ts";
import { node, type Shown, show } from "./support.ts";

const MARK = "data-lm-suppress-shortcuts";

function press(on: Element, key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, composed: true, ...more });
  on.dispatchEvent(event);
  return event;
}

/** Everything in a view that takes the focus. */
const spots = ({ root, all }: Shown) => [root, ...all("button, input, select, [tabindex]")];

test("no key event leaves the view, whatever has the focus, whether the view uses the key or not", async () => {
  const view = await show(STORIES.reused!());
  const passed: string[] = [];
  const types = ["keydown", "keypress", "keyup"];
  for (const type of types) document.addEventListener(type, ({ target }) => passed.push(`${type} ${target}`));
  const found = spots(view);
  expect(found.length).toBeGreaterThan(15);
  for (const spot of found)
    for (const key of ["x", "d", "a", "b", "m", "Enter", "Escape", "l", "ArrowDown"])
      for (const type of types) spot.dispatchEvent(new KeyboardEvent(type, { key, bubbles: true, composed: true }));
  expect(passed).toEqual([]);
  view.close();
});

test("what has the focus bears the mark by which a host that gets the key first leaves it alone", async () => {
  const view = await show(STORIES.reused!());
  expect(view.root.getAttribute("tabindex")).toBe("-1");
  expect(view.root.hasAttribute(MARK)).toBe(true);
  for (const spot of spots(view)) {
    spot.focus();
    if (document.activeElement === spot) expect(spot.hasAttribute(MARK)).toBe(true);
  }
  view.close();
});

test("the browser keeps its keys, but for those that change or save something outside of the view", async () => {
  const view = await show(STORIES.reused!());
  const [spot] = node(view, "MvBackward0");
  for (const key of ["c", "a", "f", "p"]) expect(press(spot!, key, { ctrlKey: true }).defaultPrevented).toBe(false);
  expect(press(spot!, "Tab").defaultPrevented).toBe(false);
  for (const key of ["z", "Z", "y"]) expect(press(spot!, key, { ctrlKey: true }).defaultPrevented).toBe(true);
  expect(press(spot!, "s", { metaKey: true }).defaultPrevented).toBe(true);
  await view.settle();
  expect(view.one(".gw-answer").textContent).toContain("Nothing was saved");
  view.close();
});

test("when what had the focus goes, the view has it", async () => {
  const view = await show(STORIES.reused!());
  const box = view.one(".gw-keep input");
  box.focus();
  box.dispatchEvent(new FocusEvent("focusout", { bubbles: true }));
  box.remove();
  (document.activeElement as HTMLElement | null)?.blur();
  await Promise.resolve();
  expect(document.activeElement).toBe(view.root);
  view.close();
});
