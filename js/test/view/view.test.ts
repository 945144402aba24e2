// @vitest-environment happy-dom
import { afterEach, expect, test } from "vitest";
import { deep, reused, STORIES, tiny, trunk } from "../../dev/stories.ts";
import { node, type Shown, show } from "./support.ts";

let view: Shown;
afterEach(() => view.close());

test("every node is a treeitem that says its op, label, state, cell and line", async () => {
  view = await show(reused());
  const shared = node(view, "MvBackward0").find((each) => each.dataset.shared === "true")!;
  expect(shared.dataset).toMatchObject({ uid: "4", state: "freed", ghost: "false" });
  const label = shared.getAttribute("aria-label")!;
  for (const part of [
    "MvBackward0 of y",
    "In[1] line 6",
    "shared by",
    "2 saved tensors freed by call 1",
    "raised here",
  ]) {
    expect(label).toContain(part);
  }
  expect(view.one("[role=tree]").getAttribute("aria-label")).toBe("Autograd graph, 7 nodes, 1 finding");
});

test("one item is the tab stop and all others can be focused", async () => {
  view = await show(reused());
  const stops = view.all("[role=treeitem]").map((item) => item.getAttribute("tabindex"));
  expect(stops.filter((stop) => stop === "0")).toHaveLength(1);
  expect(stops.filter((stop) => stop !== "0" && stop !== "-1")).toEqual([]);
});

test("the picture is busy until the drawing that was asked for is on screen", async () => {
  view = await show(reused());
  const tree = view.one("[role=tree]");
  expect(tree.getAttribute("aria-busy")).toBe(null);
  const seen: (string | null)[] = [];
  const observer = new MutationObserver(() => seen.push(tree.getAttribute("aria-busy")));
  observer.observe(tree, { attributeFilter: ["aria-busy"] });
  view.kernel.story = trunk();
  view.kernel.publish();
  await view.settle();
  observer.disconnect();
  expect([seen[0], seen.at(-1)]).toEqual(["true", null]);
  expect(node(view, "ReluBackward0").length).toBeGreaterThan(0);
});

test("focusing a button forecasts both calls, and marks what would be freed", async () => {
  view = await show(trunk());
  const button = view.button("loss1.backward()");
  button.focus();
  await view.settle();
  await view.settle();
  expect(view.one(".gw-forecast").textContent).toContain("nothing has run");
  expect(view.one(".gw-card[data-mode=backward]").textContent).toContain("would free 11");
  expect(view.one(".gw-card[data-mode=retain]").textContent).toContain("would free 0");
  expect(view.one(".gw-after").textContent).toContain("loss2.backward()");
  expect(button.getAttribute("aria-description")).toContain(
    "frees 11 saved tensors; afterwards loss1.backward() would then raise",
  );
  expect(node(view, "ReluBackward0")[0]!.getAttribute("aria-label")).toContain("would be freed");
  button.blur();
  await expect.poll(() => view.one(".gw-forecast").hidden).toBe(true);
  await view.settle();
  expect(node(view, "ReluBackward0")[0]!.getAttribute("aria-label")).not.toContain("would be freed");
});

test("the finding shows its path with the carrier and at most three fixes", async () => {
  view = await show(reused());
  const finding = view.one("[data-finding=second_backward]");
  expect(finding.querySelectorAll("[data-fix]")).toHaveLength(3);
  expect([...finding.querySelectorAll(".gw-path [role=listitem]")].map((e) => e.textContent)).toEqual([
    "loss",
    "x_out",
    "y",
    "MvBackward0",
  ]);
  expect(finding.querySelector(".gw-tagbutton")!.textContent).toBe("y");
});

test("a finding offers to show its nodes only if it has some; one behind another can be brought to the front", async () => {
  const [first] = reused().findings;
  const bare = { ...first, uid: null, uids: [], headline: "`out` is not one number." };
  view = await show({ ...reused(), findings: [bare, { ...bare, headline: "`b` is not, either." }, first!] });
  const links = () => view.all("[data-finding]").map((each) => each.querySelector(":scope > .gw-link")?.textContent);
  expect(links()).toEqual([undefined, "show", "show its nodes"]);
  view.all("[data-finding]")[1]!.querySelector<HTMLElement>(":scope > .gw-link")!.click();
  await view.settle();
  expect(links()).toEqual(["show", undefined, "show its nodes"]);
});

test("selecting a node inspects it: line, saved tensors, what keeps it", async () => {
  view = await show(reused());
  node(view, "MvBackward0")
    .find((each) => each.dataset.shared === "true")!
    .dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await view.settle();
  const words = view.one(".gw-inspector").textContent!;
  for (const part of ["MvBackward0", "In[1]:6", "y = t @ a", "self", "vec", "freed", "del y"])
    expect(words).toContain(part);
});

test("arrow keys walk along the edges: down to the loss, up to the leaf", async () => {
  view = await show(tiny());
  const tree = view.one("[role=tree]");
  const at = () => view.one("[role=treeitem][tabindex='0']").getAttribute("data-key");
  const walked: (string | null)[] = [];
  for (const key of ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"]) {
    view.press(key, tree);
    walked.push(at());
  }
  expect(walked[0]).toMatch(/^leaf/);
  expect(walked.slice(1)).toEqual(["n1", "n2", "n3", "root1", "n3"]);
});

test("time goes back step by step, and the buttons are off there", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  view.press("[");
  await view.settle();
  expect(view.root.dataset.past).toBe("true");
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("held");
  expect(view.button("loss.backward()").disabled).toBe(true);
  expect(view.one("input[type=range]").getAttribute("aria-valuetext")).toBe("In[1], 48 B held");
  view.press("n");
  await view.settle();
  expect(view.root.dataset.past).toBeUndefined();
  expect(node(view, "ReluBackward0")[0]!.dataset.state).toBe("freed");
});

test("an older picture never replaces a newer one", async () => {
  view = await show(tiny());
  const old = view.model.get("wire");
  view.kernel.publish();
  view.kernel.publish();
  view.model.update({ wire: old });
  await view.settle();
  expect(view.root.dataset.serial).toBe("3");
});

test("a long picture is read in slices, then drawn, and changed as any other", async () => {
  view = await show(tiny());
  view.kernel.publish();
  const wire = String(view.model.get("wire"));
  await view.settle();
  const long = `${wire.replace('"serial":2', '"serial":7')}${" ".repeat(600_000)}`;
  view.model.update({ wire: long, delta: "" });
  view.model.update({ delta: "" });
  expect(view.root.dataset.serial).toBe("2");
  await view.settle();
  expect(view.root.dataset.serial).toBe("7");
  const status = { text: 0, state: "idle", cell: null };
  view.model.update({ delta: JSON.stringify({ schema: 2, base: 7, serial: 8, strings: [], slotState: [], status }) });
  await view.settle();
  expect(view.root.dataset.serial).toBe("8");
  view.model.update({ wire: `${long}!`, delta: "" });
  await view.settle();
  expect(view.root.textContent).toContain("(JSON)");
});

test("focus, selection and the opened time survive an update", async () => {
  view = await show(tiny());
  view.press("Home", view.one("[role=tree]"));
  const focused = document.activeElement!.getAttribute("data-key");
  view.kernel.publish();
  await view.settle();
  expect(document.activeElement!.getAttribute("data-key")).toBe(focused);
  expect(view.root.dataset.serial).toBe("2");
});

test("search counts its hits and walks through them", async () => {
  view = await show(trunk());
  view.press("/");
  await view.settle();
  const box = view.one("input[type=search]") as HTMLInputElement;
  box.value = "relu";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  await view.settle();
  expect(view.one(".gw-found").textContent).toBe("1 of 2");
  view.press("Enter", box);
  await view.settle();
  expect(view.one(".gw-found").textContent).toBe("2 of 2");
  view.press("Escape", box);
  await view.settle();
  expect(view.one(".gw-search").hidden).toBe(true);
});

test("the table twin has a row for every node", async () => {
  view = await show(reused());
  view.press("t");
  await view.settle();
  const rows = view.all(".gw-table tbody tr").map((row) => row.textContent);
  expect(rows).toHaveLength(9);
  expect(rows.find((row) => row!.includes("y = t @ a") || row!.includes("In[1]:6"))).toContain("call 1");
});

test("an empty graph says what to do", async () => {
  view = await show(STORIES.empty!());
  expect(view.one(".gw-empty").hidden).toBe(false);
  expect(view.one(".gw-empty").textContent).toContain("requires_grad=True");
});

test("the legend is a dialog that says what it is and closes", async () => {
  view = await show(tiny());
  const button = view.button("Legend");
  button.focus();
  button.click();
  const dialog = view.one("dialog") as HTMLDialogElement;
  expect([dialog.open, dialog.getAttribute("aria-label")]).toEqual([true, "Legend"]);
  expect(dialog.textContent).toContain("freed; the number beside it: by which call");
  view.button("Close").click();
  expect(dialog.open).toBe(false);
});

test("names and messages from the kernel are text, whatever they contain", async () => {
  const story = tiny();
  const evil = `<img src=x onerror="globalThis.broken=1">`;
  story.nodes[0]!.place = [1, 4, evil, null];
  story.owners.push([evil, 2, "variable"]);
  view = await show(story);
  view.press("t");
  node(view, "MeanBackward0")[0]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await view.settle();
  expect(view.all("img")).toEqual([]);
  expect(view.one(".gw-src").textContent).toBe(evil);
  expect(view.one(".gw-table").textContent).toContain(evil);
});

test("a picture that cannot be read is an alert, and the next one is drawn", async () => {
  view = await show(tiny());
  const errors: unknown[] = [];
  const original = console.error;
  console.error = (...all: unknown[]) => errors.push(all);
  view.model.update({ wire: `{"schema": 99}` });
  await view.settle();
  console.error = original;
  expect(errors).toHaveLength(1);
  expect(view.one(".gw-answer[role=alert]").textContent).not.toBe("");
  view.kernel.publish();
  await view.settle();
  expect(view.root.dataset.serial).toBe("2");
});

test("a large graph is drawn as a bitmap with the tab stop as an element", async () => {
  view = await show(deep(120));
  const menu = view.one(".gw-group") as HTMLSelectElement;
  menu.value = "all";
  menu.dispatchEvent(new Event("change"));
  for (let i = 0; i < 30 && view.one(".gw-canvas").dataset.drawnAs !== "bitmap"; i++) await view.settle();
  expect(view.one(".gw-canvas").dataset.drawnAs).toBe("bitmap");
  expect(view.all("[role=treeitem]").length).toBeLessThan(5);
  view.press("ArrowUp", view.one("[role=tree]"));
  expect(view.one("[role=treeitem][tabindex='0']").getAttribute("data-node")).toBe("SumBackward0");
});

test("closing a view removes it and all its listeners", async () => {
  view = await show(tiny());
  view.close();
  expect(view.model.listening).toBe(0);
  expect(view.root.isConnected).toBe(false);
});

test("there is no id in the view, so that two of them can stand in one page", async () => {
  view = await show(reused());
  const second = await show(reused());
  expect(document.querySelectorAll(".graphwidget [id]")).toHaveLength(0);
  second.close();
});

test("slots empty in the engine's order, but what tests and screen readers see changes at once", async () => {
  view = await show(tiny());
  view.button("loss.backward()").click();
  await view.settle();
  const slashes = (name: string) => node(view, name)[0]!.querySelectorAll(".g-slash").length;
  expect(node(view, "MulBackward0")[0]!.dataset.state).toBe("freed");
  const both = () => [slashes("ReluBackward0"), slashes("MulBackward0")];
  await expect.poll(both, { timeout: 30_000 }).toEqual([1, 1]);
});

test("the view works inside a shadow root", async () => {
  view = await show(tiny());
  const host = document.createElement("div");
  document.body.append(host);
  const inner = host.attachShadow({ mode: "open" });
  inner.append(view.root.parentElement!);
  view.press("Home", view.one("[role=tree]"));
  expect(inner.activeElement?.getAttribute("role")).toBe("treeitem");
  view.press("l");
  expect((view.one("dialog") as HTMLDialogElement).open).toBe(true);
  host.remove();
});

test("a height that the model is given is the view's", async () => {
  view = await show(tiny());
  expect(view.root.style.getPropertyValue("--gw-h")).toBe("520px");
  view.model.set("height", 700);
  expect(view.root.style.getPropertyValue("--gw-h")).toBe("700px");
});
