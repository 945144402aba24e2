// @vitest-environment happy-dom
/** A page without a kernel: what is written down with the picture can be asked, and nothing else is offered. */
import { gzipSync } from "node:zlib";
import { expect, test, vi } from "vitest";
import { encode } from "../../dev/fake_story.ts";
import { reused } from "../../dev/stories.ts";
import { openRecording } from "../../src/app/recorded.ts";
import { show } from "./support.ts";

const pack = (data: unknown) => gzipSync(JSON.stringify(data)).toString("base64");

function stored() {
  const story = reused();
  story.events = story.events.map((event) => ({ ...event, kept: true }));
  return story;
}

async function open(answers: (uid: number) => Record<string, unknown>) {
  const story = stored();
  const uid = story.nodes[0]!.uid;
  const place = document.createElement("div");
  place.textContent = "the static picture";
  document.body.append(place);
  await openRecording(place, pack({ wire: encode(story, 1), answers: answers(uid) }));
  const find = (selector: string) => place.querySelector<HTMLElement>(selector);
  await vi.waitFor(() => expect(find("[role=treeitem]")).not.toBeNull(), { timeout: 30_000 });
  return { place, find, uid };
}

test("a recording is drawn, and a button that would run something says that nothing runs", async () => {
  const { place, find } = await open(() => ({}));
  expect(place.textContent).not.toContain("the static picture");
  expect(find(".gw-pill")!.textContent).toMatch(/^recording · after In/);
  find('[aria-label="loss.backward()"]')!.click();
  await vi.waitFor(() => expect(find(".gw-answer")!.textContent).toContain("nothing runs here"));
  expect(find(".gw-keep")!.hidden).toBe(true);
  place.remove();
});

test("a message that is packed as stretches of pieces is put together again", async () => {
  const past = reused();
  const first = Number(past.events[0]!.id);
  const wire = encode({ ...past, events: past.events.slice(0, 1) }, first);
  const pieces = [wire.slice(0, 40), wire.slice(40, 90), wire.slice(90, 91), wire.slice(91)];
  const swapped = [pieces[2], pieces[0], pieces[1], pieces[3]];
  const place = document.createElement("div");
  document.body.append(place);
  const answers = { [`snapshot ${first}`]: { wire: [1, 2, 0, 1, 3, 1] } };
  await openRecording(place, pack({ wire: encode(stored(), 1), answers, pieces: swapped }));
  await vi.waitFor(() => expect(place.querySelector("[role=treeitem]")).not.toBeNull(), { timeout: 30_000 });
  place.querySelector<HTMLElement>('[aria-label^="First moment"]')!.click();
  await vi.waitFor(() => expect(place.querySelector("[data-past=true]")).not.toBeNull());
  await vi.waitFor(() => expect(place.querySelector(".gw-pill")!.textContent).toBe("a picture of the past"));
  expect(place.querySelector(".gw-err")).toBeNull();
  place.remove();
});

test("a prediction is not offered where nothing can run: no button, and the key does nothing", async () => {
  const { place, find } = await open(() => ({}));
  expect(find('[aria-label="Step through a call"]')).not.toBeNull();
  expect(find('[aria-label="Predict first"]')).toBeNull();
  find("[role=treeitem]")!.dispatchEvent(new KeyboardEvent("keydown", { key: "q", bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(find(".gw-guess")).toBeNull();
  place.remove();
});

test("a recording travels in time, and tells who keeps a node", async () => {
  const past = reused();
  const first = Number(past.events[0]!.id);
  const keeps = { keptBy: [{ path: "kept_here", kind: "variable", releases: "alone releases nothing" }], storages: [] };
  const { place, find, uid } = await open((uid) => ({
    [`snapshot ${first}`]: { wire: encode({ ...past, events: past.events.slice(0, 1) }, first) },
    [`inspect ${uid}`]: keeps,
  }));
  find(`[role=treeitem][data-uid="${uid}"]`)!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await vi.waitFor(() => expect(find(".gw-panel")!.textContent).toContain("kept_here"));
  find('[aria-label^="First moment"]')!.click();
  await vi.waitFor(() => expect(find("[data-past=true]")).not.toBeNull());
  await vi.waitFor(() => expect(find(".gw-pill")!.textContent).toBe("a picture of the past"));
  expect(find(".gw-err")).toBeNull();
  place.remove();
});

test("without a kernel and without a stored picture, a step back says so at once and stays", async () => {
  const host = { status: "idle", tell: () => {} };
  const connect = (slot: () => void) => {
    host.tell = slot;
  };
  const view = await show(stored(), { kernel: Object.assign(host, { statusChanged: { connect, disconnect() {} } }) });
  view.model.receive = () => {}; // nobody answers any more
  host.status = "dead";
  host.tell();
  await view.settle();
  view.one('[aria-label^="Previous step"]').click();
  await view.settle();
  expect(view.root.textContent).toContain("This is not stored here, and no kernel answers.");
  expect(view.one(".gw-pill").textContent).toBe("read-only: no kernel");
  view.close();
});
