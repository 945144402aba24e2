// @vitest-environment happy-dom
/** A forecast says in sentences what a call would do, stays when it is kept, and is asked for again for a new picture. */
import { afterEach, expect, test } from "vitest";
import { reused, tiny } from "../../dev/stories.ts";
import { type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

const HOVER_MS = 200;
const LEAVE_MS = 300;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const forecast = () => view.one(".gw-forecast");

async function hover(name: string): Promise<HTMLButtonElement> {
  const button = view.button(name);
  button.dispatchEvent(new Event("pointerenter"));
  await wait(HOVER_MS);
  await view.settle();
  return button;
}

async function leave(button: HTMLElement): Promise<void> {
  button.dispatchEvent(new Event("pointerleave"));
  await wait(LEAVE_MS);
  await view.settle();
}

test("a forecast ends when the pointer leaves, unless a press on its card keeps it", async () => {
  view = await show(tiny());
  const button = await hover("loss.backward()");
  expect(forecast().hidden).toBe(false);
  await leave(button);
  expect(forecast().hidden).toBe(true);
  await hover("loss.backward()");
  view.one(".gw-card[data-mode=retain]").click();
  await leave(button);
  expect(forecast().hidden).toBe(false);
  expect(view.one(".gw-card[data-mode=retain]").getAttribute("aria-pressed")).toBe("true");
  view.press("Escape");
  await view.settle();
  expect(forecast().hidden).toBe(true);
});

test("the key k keeps a forecast that the focus has asked for, and lets it go", async () => {
  view = await show(tiny());
  const button = view.button("loss.backward()");
  button.focus();
  await wait(HOVER_MS);
  await view.settle();
  view.press("k", button);
  button.blur();
  await wait(LEAVE_MS);
  await view.settle();
  expect(forecast().textContent).toContain("would free");
  view.press("k");
  await view.settle();
  expect(forecast().hidden).toBe(true);
});

test("a forecast that is kept is asked for again when the picture is a new one", async () => {
  view = await show(tiny());
  const button = await hover("loss.backward()");
  view.press("k", button);
  for (const { slots = [] } of view.kernel.story.nodes) for (const slot of slots) slot.state = 1;
  view.kernel.publish();
  await view.settle();
  await expect.poll(() => forecast().textContent).toContain("would raise at");
});

test("a call that would raise is told in one sentence with its call, and no heading is empty", async () => {
  view = await show(reused());
  await hover("loss.backward()");
  const outcome = view.one(".gw-card.gw-on .gw-outcome");
  expect(outcome.textContent).toMatch(/^ ?would raise at MseLossBackward0: 1 freed its self$/);
  expect(outcome.querySelector("[aria-label='call 1']")).not.toBeNull();
  for (const heading of forecast().querySelectorAll("h3, h4, th")) {
    expect(heading.textContent).not.toBe("");
    if (heading.tagName === "H4") expect(heading.nextElementSibling?.textContent).toBeTruthy();
  }
});

test("the timeline shows what the call would change", async () => {
  view = await show(tiny());
  await hover("loss.backward()");
  expect(view.one(".gw-line").textContent).toMatch(/forecast: −\d+ B/);
});
