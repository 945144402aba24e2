// @vitest-environment happy-dom
/** The view of a lecture: older graphs as one chip, older findings as one line, and what a browser test needs to find. */
import { describe, expect, test } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { olderWords } from "../../src/panels/stagebar.tsx";
import { momentOf, momentsOf } from "../programs/index.ts";
import { mount, settle } from "../view/support.ts";

interface Open {
  model: FakeModel;
  root: HTMLElement;
  show(program: string, moment: string): Promise<void>;
  all(selector: string): HTMLElement[];
  close(): void;
}

function open(): Open {
  const model = new FakeModel({ height: 0 });
  const { root, close } = mount(model);
  let serial = 0;
  const show = async (program: string, moment: string) => {
    serial += 1;
    model.set("wire", JSON.stringify({ ...momentOf(program, moment).wire, serial }));
    await expect.poll(() => root.dataset.serial, { timeout: 30_000 }).toBe(String(serial));
    await expect.poll(() => root.querySelectorAll(".gw-item").length, { timeout: 30_000 }).toBeGreaterThan(0);
    await settle();
  };
  return { model, root, show, close, all: (selector) => [...root.querySelectorAll<HTMLElement>(selector)] };
}

/** Zooms in until everything is written out: there is less room here than in a notebook. */
async function zoomIn({ root }: Open): Promise<void> {
  for (let i = 0; i < 3; i++) root.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
  await settle();
}

const flags = (view: Open) => view.all("[data-role=root]").map((flag) => flag.dataset.name);
const chip = (view: Open) => view.all("[data-role=older]")[0];

describe("in the lecture's last section", () => {
  test("older graphs are one chip that opens and closes, and have no buttons", async () => {
    const view = open();
    await view.show("lecture", "In[12]");
    expect(flags(view).sort()).toEqual(["loss", "loss"]);
    expect(chip(view)?.textContent).toBe("3 older graphs: x_out, product, total ▸");
    expect(chip(view)?.getAttribute("aria-expanded")).toBe("false");
    expect(view.all("button[aria-label='product.backward()']")).toEqual([]);
    chip(view)!.click();
    await expect.poll(() => flags(view).length, { timeout: 30_000 }).toBe(5);
    await expect.poll(() => view.all("button[aria-label='product.backward()']").length).toBe(1);
    expect(chip(view)?.getAttribute("aria-expanded")).toBe("true");
    chip(view)!.click();
    await expect.poll(() => flags(view).length, { timeout: 30_000 }).toBe(2);
    view.close();
  });

  test("findings of earlier cells are one line each, which opens; the newest is in full", async () => {
    const view = open();
    await view.show("lecture", "In[12]");
    const full = view.all(".gw-finding:not(.gw-past) .gw-kick").map((kick) => kick.textContent);
    expect(full).toEqual(["Second backward · In[12]:10 · iteration 1"]);
    const past = view.all(".gw-finding.gw-past");
    expect(past.length).toBeGreaterThan(1);
    for (const line of past) expect(line.querySelectorAll("p, li, h3, h4")).toHaveLength(0);
    const opened = past[0]!.querySelector("button")!;
    opened.click();
    const inFull = () => view.all(".gw-finding h4").length && view.all(".gw-finding.gw-past").length;
    await expect.poll(inFull, { timeout: 30_000 }).toBe(past.length - 1);
    view.close();
  });

  test("a cell that runs well afterwards leaves a line of the error, and a green state", async () => {
    const view = open();
    await view.show("lecture", "In[13]");
    const past = view.all(".gw-finding.gw-past");
    expect(past.length).toBe(view.all("[data-severity=error]").length);
    for (const line of past) expect(line.textContent).toMatch(/^Earlier: [a-z]/);
    expect(view.all(".gw-pill")[0]?.dataset.shape).toBe("ok");
    view.close();
  });
});

test("tags, flags and what calls did can be found; the carrier has its full name", async () => {
  const view = open();
  await view.show("lstm_hidden", "In[2]");
  await zoomIn(view);
  const carriers = view.all("[data-role=tag][data-carrier=true]");
  expect(carriers.map((tag) => tag.getAttribute("aria-label")).sort()).toEqual(["hidden[0]", "hidden[1]"]);
  expect(carriers.map((tag) => tag.querySelector("text")?.textContent).sort()).toEqual(["hidden[0]", "hidden[1]"]);
  expect(view.all("[data-role=line]").map((line) => line.textContent)).toEqual(
    expect.arrayContaining(["1freed 14 saved tensors", "2raised at its 13th node"]),
  );
  view.close();
});

test("a step between two backwards is drawn: amber state, dashed octagon, pencil, and what would raise", async () => {
  const view = open();
  await view.show("gan_step_early", "In[3]");
  await zoomIn(view);
  expect(view.all(".gw-pill")[0]?.dataset.shape).toBe("warn");
  expect(view.all(".gw-tree .g-octagonopen").length).toBeGreaterThan(0);
  expect(view.all("[data-role=line]").map((line) => line.textContent)).toContain("would raise at D[2]");
  // The picture stays where it is, so the note is short: its tooltip has all of it.
  expect(view.all("[data-role=write] text").map(({ textContent }) => textContent)).toEqual(["opt_D.step()"]);
  expect(view.all("[data-role=write] title")[0]?.textContent).toBe("opt_D.step()\nIn[3]:3 wrote D[2].weight");
  expect(view.all(".gw-tree .g-pencilline")).toHaveLength(3);
  expect(view.all(".gw-finding h3")[0]?.textContent).toMatch(/^g_loss.backward\(\) would raise/);
  view.close();
});

test("where words are cut there is a tooltip with the whole of them", async () => {
  const view = open();
  await view.show("gan_step_early", "In[2]");
  const cut = view.all(".gw-tree .gw-item").filter((item) => /…/.test(item.querySelector("text")?.textContent ?? ""));
  expect(cut.length).toBeGreaterThan(0);
  for (const item of cut) expect(item.querySelector("title")?.textContent, item.textContent!).toMatch(/\w/);
  view.close();
});

test("from picture to picture of a training loop no card moves", async () => {
  const view = open();
  const places = () =>
    new Map(view.all(".gw-tree [data-node]").map((item) => [item.dataset.node! + item.style.transform, true]));
  const live = momentsOf("mlp_loop").filter(({ name }) => name.startsWith("In[2]"));
  let before: Map<string, true> | undefined;
  for (const { name } of live) {
    await view.show("mlp_loop", name);
    await new Promise((resolve) => setTimeout(resolve, 60));
    if (before) expect([...places().keys()].sort(), name).toEqual([...before.keys()].sort());
    before = places() as Map<string, true>;
  }
  view.close();
});

test("the chip of older graphs lists names of the user's only", () => {
  const { graph } = momentOf("lecture", "In[12]");
  for (const root of graph.roots) if (root.path === "product") root.path = "__";
  expect(olderWords(graph)).toBe("3 older graphs: x_out, total");
});
