// @vitest-environment happy-dom
/** Answers that are empty or odd: the view says so, and goes on. */
import { afterEach, expect, test } from "vitest";
import { tiny } from "../../dev/stories.ts";
import { REPLIES, type Verb } from "../../src/state/replies.ts";
import { node, type Shown, show } from "./support.ts";

let view: Shown;
afterEach(() => view.close());

async function keys(...pressed: string[]): Promise<void> {
  for (const key of pressed) {
    view.press(key);
    await view.settle();
  }
}

async function call(): Promise<void> {
  view.button("loss.backward()").click();
  await view.settle();
}

/** What a person does until the kernel is asked for the verb. */
const ASKING: Partial<Record<Verb, () => Promise<unknown>>> = {
  forecast: async () => view.button("loss.backward()").focus(),
  backward: call,
  inspect: async () => node(view, "MulBackward0")[0]!.dispatchEvent(new MouseEvent("click", { bubbles: true })),
  keepers: () => keys("b"),
  steps_ahead: () => keys("s", ".", "."),
  snapshot: async () => {
    await call();
    await keys("[");
  },
  compare: async () => {
    await call();
    await keys("[", "c", "n");
  },
  steps_of: async () => {
    await call();
    await keys("s");
    const choice = view.one(".gw-play select") as HTMLSelectElement;
    choice.value = [...choice.options].find((option) => !option.textContent!.includes("not run"))!.value;
    choice.dispatchEvent(new Event("change", { bubbles: true }));
    await view.settle();
    await keys(".", ".");
  },
  predict: async () => {
    await keys("q");
    const runs = view.all(".gw-guess label").find((each) => each.textContent === "It runs")!;
    runs.querySelector("input")!.click();
    await view.settle();
    view.button("Run it and compare").click();
  },
};

/** The same value with its lists and texts empty, or with numbers that nothing here has. */
function other(value: unknown, list: (all: unknown[]) => unknown, leaf: (one: unknown) => unknown): unknown {
  const inner = (each: unknown) => other(each, list, leaf);
  if (Array.isArray(value)) return list(value.map(inner));
  if (typeof value !== "object" || value === null) return leaf(value);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inner(each)]));
}

const TWISTS: Record<string, (answer: unknown) => unknown> = {
  "an empty object": () => ({}),
  "nothing within": (answer) =>
    other(
      answer,
      () => [],
      (one) => (typeof one === "string" ? "" : one),
    ),
  "numbers nobody has": (answer) =>
    other(
      answer,
      (all) => all,
      (one) => (typeof one === "number" ? 987654 : one),
    ),
};

for (const [verb, ask] of Object.entries(ASKING))
  for (const [words, twist] of Object.entries(TWISTS))
    test(`${verb}, answered by ${words}: the view is alive`, async () => {
      view = await show(tiny());
      let asked = 0;
      view.kernel.twist = (of, answer) => {
        if (of !== verb) return answer;
        asked++;
        return twist(answer);
      };
      await ask();
      await expect.poll(() => asked).toBeGreaterThan(0);
      await view.settle();
      const words = view.all(".gw-head, .gw-body, .gw-foot").map((each) => each.textContent);
      expect(words.join(" ").match(/.{0,40}(view failed|Cannot read|undefined|NaN|is not a ).{0,40}/)).toBe(null);
      view.kernel.twist = (_, answer) => answer;
      await keys("Escape");
      node(view, "MulBackward0")[0]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      await view.settle();
      expect(view.one(".gw-inspector h3").textContent).toContain("MulBackward0");
    });

test("of every verb an answer of another shape is refused with the place where it differs", () => {
  for (const [verb, shape] of Object.entries(REPLIES)) {
    for (const odd of [undefined, null, 3, "x", []]) expect(shape.differs(odd, ""), verb).not.toBe("");
  }
  const keepers = { names: ["a"], moments: [[1, [2]]] };
  expect(REPLIES.keepers.differs(keepers, "")).toBe("");
  expect(REPLIES.keepers.differs({ ...keepers, moments: [[1, ["2"]]] }, "")).toBe("moments[0][1][0] is no number");
  expect(REPLIES.keepers.differs({ ...keepers, names: [] }, "")).not.toBe("");
});
