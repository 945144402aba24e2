// @vitest-environment happy-dom
/** Calls from the view: the buttons under roots, what they ask, what is answered; rebuilding, and trying a fix. */
import { afterEach, expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { reused, tiny } from "../../dev/stories.ts";
import { momentOf } from "../programs/index.ts";
import { mount, node, type Shown, show } from "./support.ts";

let view: Shown;
afterEach(() => view?.close());

test("each live root has two buttons with the calls as their names, a gone one has none", async () => {
  view = await show(reused());
  const names = view.all(".gw-run").map((each) => each.getAttribute("aria-label"));
  expect(names).toEqual(["loss.backward()", "loss.backward(retain_graph=True)", "Rebuild loss"]);
});

/** Presses the button of a call that would raise, and says yes. */
async function runAnyway(view: Shown): Promise<void> {
  view.button("loss.backward()").click();
  await view.settle();
  view.button("Run it anyway").click();
  await view.settle();
}

test("backward empties the slots and the answer is announced; the second one raises and is an alert", async () => {
  view = await show(tiny());
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("held");
  view.button("loss.backward()").click();
  await view.settle();
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
  expect(view.one(".gw-answer[role=status]").textContent).toContain("loss.backward() ran and freed 2 saved tensors");
  expect(view.all("[role=alert]")).toEqual([]);
  await runAnyway(view);
  expect(view.one(".gw-answer[role=alert]").textContent).toContain(
    "Trying to backward through the graph a second time",
  );
  expect(view.one(".gw-answer[role=status]").textContent).toBe("");
  expect(node(view, "ReluBackward0")[0]!.getAttribute("aria-label")).toContain("raised here");
});

test("a call that would raise asks first; it runs on a second, explicit press only", async () => {
  view = await show(tiny());
  const calls = () => view.model.sent.filter(({ verb }) => verb === "backward");
  view.button("loss.backward()").click();
  await view.settle();
  const button = view.button("loss.backward()");
  button.focus();
  button.click();
  await view.settle();
  const dialog = view.one("dialog") as HTMLDialogElement;
  expect([dialog.open, dialog.getAttribute("role")]).toEqual([true, "alertdialog"]);
  expect(dialog.getAttribute("aria-label")).toBe("loss.backward() would raise");
  expect(dialog.getAttribute("aria-description")).toContain("Before that it would free");
  expect(dialog.querySelector("[autofocus]")!.textContent).toBe("Cancel"); // an Enter that repeats runs nothing
  expect(node(view, "ReluBackward0")[0]!.getAttribute("aria-label")).not.toContain("raised here");
  view.button("Cancel").click();
  await view.settle();
  expect(dialog.open).toBe(false);
  expect(calls().length).toBe(2);
  expect(view.all("[role=alert]")).toEqual([]);
  await runAnyway(view);
  expect(dialog.open).toBe(false);
  expect(calls().at(-1)).toMatchObject({ confirmed: expect.any(Number), retain_graph: false });
  // The legend is a dialog, and no question.
  view.button("Legend").click();
  expect([dialog.getAttribute("role"), dialog.getAttribute("aria-description")]).toEqual([null, null]);
});

test("the focus that a closed question gives back to the button asks for no forecast: it would hide the answer", async () => {
  view = await show(tiny());
  const button = view.button("loss.backward()");
  button.click();
  await view.settle();
  button.focus();
  button.click();
  await view.settle();
  const dialog = view.one("dialog") as HTMLDialogElement;
  const close = dialog.close.bind(dialog);
  dialog.close = () => {
    close();
    button.blur();
    button.focus(); // as browsers do
  };
  view.button("Run it anyway").click();
  await new Promise((resolve) => setTimeout(resolve, 300));
  await view.settle();
  expect(view.one(".gw-forecast").hidden).toBe(true);
});

test("who has gone on typing elsewhere is not interrupted by the question", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  view.button("loss.backward()").click();
  const cell = document.body.appendChild(document.createElement("textarea"));
  cell.focus();
  await view.settle();
  expect((view.one("dialog") as HTMLDialogElement).open).toBe(false);
  expect(document.activeElement).toBe(cell);
  expect(view.one(".gw-answer[role=alert]").textContent).toContain("would raise. Nothing has run.");
  cell.remove();
});

test("retain_graph leaves the slots held", async () => {
  view = await show(tiny());
  for (let i = 0; i < 2; i++) {
    view.button("loss.backward(retain_graph=True)").click();
    await view.settle();
  }
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("held");
  expect(view.model.sent.filter(({ verb }) => verb === "backward").map((m) => m.retain_graph)).toEqual([true, true]);
});

test("the box 'keep .grad' goes with the call", async () => {
  view = await show(tiny());
  view.one(".gw-keep input").click();
  view.button("loss.backward()").click();
  await view.settle();
  expect(view.model.sent.find(({ verb }) => verb === "backward")!.keep_grad).toBe(true);
  expect(view.one(".gw-answer[role=status]").textContent).toContain(".grad is as it was");
});

test("a second click while a call runs is refused with words and sends nothing", async () => {
  view = await show(tiny());
  view.kernel.delay = 60_000;
  view.button("loss.backward()").click();
  await view.settle();
  view.button("loss.backward(retain_graph=True)").click();
  await view.settle();
  expect(view.model.sent.filter(({ verb }) => verb === "backward")).toHaveLength(1);
  expect(view.one(".gw-answer[role=status]").textContent).toContain("loss.backward() is still running");
});

test("a queued call says what it waits for, and can be cancelled", async () => {
  view = await show(tiny());
  view.kernel.behind = "In[7]";
  view.button("loss.backward()").click();
  await view.settle();
  const status = view.one(".gw-answer[role=status]");
  expect(status.textContent).toContain("loss.backward() waits for In[7]. Nothing has changed yet");
  view.button("Cancel").click();
  await view.settle();
  expect(status.textContent).toBe("Cancelled. Nothing has run.");
  expect(view.model.sent.at(-1)).toMatchObject({
    verb: "cancel",
    request: view.model.sent.find((m) => m.verb === "backward")!.id,
  });
});

test("a root that has died gets a clear answer", async () => {
  view = await show(tiny());
  view.kernel.story.roots = [];
  view.button("loss.backward()").click();
  await view.settle();
  expect(view.one(".gw-answer[role=alert]").textContent).toContain("out of date");
});

test("without a kernel the buttons are off and say why", async () => {
  let tell = () => {};
  const kernel = {
    status: "idle",
    statusChanged: {
      connect(slot: () => void) {
        tell = slot;
      },
      disconnect() {},
    },
  };
  view = await show(tiny(), { kernel });
  expect(view.button("loss.backward()").disabled).toBe(false);
  kernel.status = "dead";
  tell();
  await view.settle();
  expect(view.button("loss.backward()").disabled).toBe(true);
  expect(view.button("loss.backward()").title).toContain("needs a kernel");
  expect(view.one(".gw-pill").textContent).toContain("read-only");
  expect(view.one(".gw-answer[role=status]").textContent).toContain("You can look around");
});

test("a root that only the last error keeps has no buttons, for it has no name in the program", async () => {
  const { wire } = momentOf("two_losses", "In[2]");
  const [first, ...others] = wire.roots as Record<string, unknown>[];
  const model = new FakeModel();
  model.set("wire", JSON.stringify({ ...wire, roots: [{ ...first, lost: true }, ...others] }));
  const { root, close } = mount(model);
  const buttons = () => [...root.querySelectorAll(".gw-run")].map((button) => button.getAttribute("aria-label"));
  await expect.poll(buttons, { timeout: 30_000 }).toContain("loss2.backward()");
  expect(buttons()).not.toContain("loss1.backward()");
  expect(root.querySelectorAll("[data-role=root]")).toHaveLength(2);
  close();
});

test("rebuild says which cells run before it runs them", async () => {
  view = await show(reused());
  view.button("Rebuild loss").click();
  expect(view.one("dialog[open]").textContent).toContain("In[1], In[2]");
  expect(view.model.sent.some(({ verb }) => verb === "rebuild")).toBe(false);
  view.button("Run In[1], In[2] again").click();
  await view.settle();
  expect(view.model.sent.some(({ verb }) => verb === "rebuild")).toBe(true);
  expect(view.one(".gw-answer[role=status]").textContent).toContain("built again");
});

test("a fix is tried on a click, after the cells that run again have been named", async () => {
  view = await show(reused());
  const [first, second] = view.all("[data-fix]");
  expect(second!.textContent).not.toContain("try it"); // it names no key: no program can make that change
  view.button("try it").click();
  await view.settle();
  expect(view.one("dialog[open]").textContent).toContain("In[1] and In[2] run again in a fresh process");
  expect(first!.textContent).not.toContain("Tried");
  view.button("Run the cells").click();
  await view.settle();
  expect(view.model.sent.filter(({ verb }) => verb === "try_fix").map(({ fix }) => fix)).toEqual([7, 7]);
  expect(view.one(".gw-answer[role=status]").textContent).toContain("ran 3 further passes");
  expect(view.one("[data-fix] .gw-ok:not(span)").textContent).toBe("Tried: ran 3 further passes in 2.1 s.");
  expect(view.button("try it again")).toBeTruthy();
});
