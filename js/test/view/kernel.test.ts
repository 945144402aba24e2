// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeModel } from "../../dev/fake_model.ts";
import { Kernel, type Link, NoAnswer, Refused } from "../../src/state/kernel.ts";

let life: AbortController;
beforeEach(() => {
  life = new AbortController();
  vi.useFakeTimers();
});
afterEach(() => {
  life.abort();
  vi.useRealTimers();
});

function connect(): { model: FakeModel; kernel: Kernel; links: Link[] } {
  const model = new FakeModel();
  const links: Link[] = [];
  return { model, links, kernel: new Kernel(model, life.signal, (link) => links.push(link)) };
}

test("a request resolves with the result that has its id", async () => {
  const { model, kernel } = connect();
  const first = kernel.ask("inspect", { uid: 4 });
  const second = kernel.ask("inspect", { uid: 5 });
  const of = (slot: number) => ({ keptBy: [], storages: [{ slot, owners: [] }] });
  expect(model.sent.map(({ verb, uid }) => [verb, uid])).toEqual([
    ["inspect", 4],
    ["inspect", 5],
  ]);
  model.emit("msg:custom", { id: second.id, ok: true, result: of(5) });
  model.emit("msg:custom", { id: first.id, ok: true, result: of(4) });
  expect(await first).toEqual(of(4));
  expect(await second).toEqual(of(5));
});

test("a refusal rejects with the kernel's words and its next step", async () => {
  const { model, kernel } = connect();
  const asked = kernel.ask("backward", { root: 1 });
  model.emit("msg:custom", {
    id: asked.id,
    ok: false,
    error: { message: "This picture is out of date", next: "Look again." },
  });
  const error = (await asked.catch((e: unknown) => e)) as Refused;
  expect(error).toBeInstanceOf(Refused);
  expect([error.message, error.next]).toEqual(["This picture is out of date", "Look again."]);
});

test("silence beyond the timeout rejects, and a kernel that does not answer a ping either counts as gone", async () => {
  const { kernel, links } = connect();
  const asked = kernel.ask("forecast", { root: 1 }, 100).catch((e) => e);
  await vi.advanceTimersByTimeAsync(150);
  expect(await asked).toBeInstanceOf(NoAnswer);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(links).toEqual(["gone"]);
});

test("silence while a cell runs is not death", async () => {
  const { model, kernel, links } = connect();
  model.set("busy", "In[7] is running");
  void kernel.ping();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(links).toEqual(["alive"]);
});

test("a queued request waits without a timeout", async () => {
  const { model, kernel } = connect();
  const received: string[] = [];
  const asked = kernel.ask("backward", { root: 1 }, 100, (behind) => received.push(behind));
  model.emit("msg:custom", { id: asked.id, queued: { behind: "In[7]" } });
  await vi.advanceTimersByTimeAsync(60_000);
  model.emit("msg:custom", { id: asked.id, ok: true, result: { said: { kind: "status", text: "Done.", next: "" } } });
  await asked;
  expect(received).toEqual(["In[7]"]);
});

test("a change of the picture proves that a kernel thought dead is there", async () => {
  const { model, kernel, links } = connect();
  void kernel.ping();
  await vi.advanceTimersByTimeAsync(10_000);
  model.set("wire", "...");
  expect(links).toEqual(["gone", "alive"]);
});

test("messages for other views and nonsense are ignored", () => {
  const { model, kernel } = connect();
  for (const message of [{ id: 1, ok: true }, {}, { id: "x" }, null]) {
    expect(() => model.emit("msg:custom", message)).not.toThrow();
  }
  expect(kernel.state).toBe("alive");
});

test("closing the view leaves no listener", () => {
  const { model } = connect();
  life.abort();
  expect(model.listening).toBe(0);
});
