// @vitest-environment happy-dom
/** Predicting a call in the view: marks in the picture and in the list, by keys, the call, and how right they were. */
import { afterEach, expect, test } from "vitest";
import { reused, tiny } from "../../dev/stories.ts";
import { node, type Shown, show } from "../view/support.ts";

let view: Shown;
afterEach(() => view.close());

const marks = () => view.all(".gw-guessing [data-sign]");
const looks = () => marks().map((each) => each.querySelector("rect")?.getAttribute("class"));
const box = (name: string) => view.one(`.gw-guess input[aria-label="${name}"]`) as HTMLInputElement;
const radio = (words: string) =>
  view
    .all(".gw-guess label")
    .find((each) => each.textContent === words)!
    .querySelector("input")!;
const sent = () => view.model.sent.filter(({ verb }) => verb === "predict");

async function open(): Promise<void> {
  view.press("q");
  await view.settle();
}

async function click(element: Element): Promise<void> {
  element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  await view.settle();
}

test("each slot can be marked in the picture, in the list and by its number; nothing runs before the button", async () => {
  view = await show(tiny());
  await open();
  expect(view.one(".gw-guess h3").textContent).toBe("What does loss.backward() do?");
  expect(looks()).toEqual(["g-mayring", "g-mayring"]);
  expect(view.button("Run it and compare").disabled).toBe(true);
  await click(
    marks()
      .find((each) => each.getAttribute("data-sign") === "mark 2:0")!
      .querySelector("rect")!,
  );
  expect(box("ReluBackward0.result of h").checked).toBe(true);
  expect(looks().filter((look) => look === "g-ring")).toHaveLength(1);
  const mul = node(view, "MulBackward0")[0]!;
  mul.focus();
  view.press("1", mul);
  await view.settle();
  expect(box("MulBackward0.other of In[1]:3").checked).toBe(true);
  view.press("1", mul);
  await view.settle();
  expect(box("MulBackward0.other of In[1]:3").checked).toBe(false);
  expect(sent()).toEqual([]);
  expect(view.model.sent.filter(({ verb }) => verb === "forecast")).toEqual([]);
});

test("the call runs on the click, and every mark gets its verdict as a shape and as a sentence", async () => {
  view = await show(tiny());
  await open();
  await click(box("ReluBackward0.result of h"));
  await click(radio("It runs"));
  view.button("Run it and compare").click();
  await view.settle();
  expect(sent()).toMatchObject([{ fails: "no", fails_at: -1, frees: [[2, 0]], retain_graph: false }]);
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
  expect(view.one(".gw-score").textContent).toBe("1 of 2 found · 1 missed");
  expect(looks().sort()).toEqual(["g-ring", "g-ringmissed"]);
  expect(view.one(".gw-guessing").innerHTML).toContain("g-tick");
  expect(view.all(".gw-why li").map((each) => each.dataset.right)).toEqual(["right", "right", "wrong"]);
  expect(view.one("[role=status].gw-score")).toBeTruthy();
  view.button("Next prediction").click();
  await view.settle();
  expect(view.all(".gw-guess fieldset")).toHaveLength(2);
});

test("who says that it raises names the node by a click on its card, and then says nothing of slots", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  await open();
  await click(radio("It raises, at"));
  await click(node(view, "ReluBackward0")[0]!);
  expect((view.one("[aria-label='Node at which it raises']") as HTMLSelectElement).value).toBe("2");
  view.button("Run it and compare").click();
  await view.settle();
  expect(sent()).toMatchObject([{ fails: "yes", fails_at: 2, frees: null }]);
  expect(view.one(".gw-score").textContent).toBe("All right");
});

test("nothing gives the answer away: no finding, no octagon, no forecast", async () => {
  view = await show(reused());
  expect(view.all(".gw-finding").length).toBeGreaterThan(0);
  await open();
  expect(view.all(".gw-finding, .gw-forecast")).toEqual([]);
  view.button("loss.backward()").focus();
  await new Promise((later) => setTimeout(later, 250));
  await view.settle();
  expect(view.model.sent.filter(({ verb }) => verb === "forecast")).toEqual([]);
  view.press("Escape");
  await view.settle();
  expect(view.all(".gw-guess")).toEqual([]);
  expect(marks()).toEqual([]);
  expect(view.all(".gw-finding").length).toBeGreaterThan(0);
});

test("a call that waits for a cell says so, and the marks stay as they are", async () => {
  view = await show(tiny());
  view.kernel.behind = "In[7]";
  await open();
  await click(radio("It runs"));
  view.button("Run it and compare").click();
  await view.settle();
  expect(view.one(".gw-answer[role=status]").textContent).toContain("waits for In[7]");
  expect(view.all(".gw-guess fieldset").every((each) => (each as HTMLFieldSetElement).disabled)).toBe(true);
  await click(marks()[0]!.querySelector("rect")!);
  expect(looks()).toEqual(["g-mayring", "g-mayring"]);
  view.kernel.release();
  await view.settle();
  expect(view.one(".gw-score").textContent).toBe("0 of 2 found · 2 missed");
});
