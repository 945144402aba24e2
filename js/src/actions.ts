/** What the view asks of the kernel, and what it says about the answers. */
import { button, type Child, h } from "./dom.ts";
import { drive } from "./drive.ts";
import { NoAnswer, Refused } from "./kernel.ts";
import type { Graph, Root } from "./picture/model.ts";
import { decodeSlices } from "./picture/wire.ts";
import type { Answer, Args, Forecasts } from "./replies.ts";
import { backwardName, cellList, join } from "./say.ts";
import { type Actions, type Context, type KeptOrNot, type Mode, position, type Running, whyOff } from "./state.ts";

const QUEUED_MS = 700;
const FORECAST_MS = 6000;
const STORED = 24;

export const told = (text: string, next = ""): Answer => ({ kind: "status", text, next });
const alert = (text: string, next = ""): Answer => ({ kind: "alert", text, next });

export function problem(error: unknown): Answer {
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof Refused) return alert(text, error.next);
  if (error instanceof NoAnswer) return alert(text, "If it stays silent, restart the kernel and run the notebook.");
  return alert(`The view failed: ${text}`, "The kernel is not affected.");
}

export type KernelActions = Pick<Actions, "preview" | "backward" | "rebuild" | "cancel" | "travel" | "step"> & {
  inspect(uid: number): void;
  cell(by: number): void;
};

export interface Hooks {
  ask(content: Child[]): void;
  closeDialog(): void;
}

/** Asks of the kernel that change nothing: what a call would do, older pictures, what keeps a node alive. */
function questions({ state, kernel, set }: Context): Pick<KernelActions, "preview" | "travel" | "inspect"> {
  const forecasts = new Map<string, Forecasts>();
  const stored = new Map<number, Graph>();

  async function preview(root: Root | null, mode: Mode = "backward"): Promise<void> {
    if (!root) return set({ preview: null });
    const key = `${state.now?.serial} ${root.id}`;
    const known = forecasts.get(key) ?? null;
    set({ preview: { root, mode, forecasts: known, problem: "" } });
    if (known) return;
    const change = (patch: { forecasts: Forecasts } | { problem: string }) =>
      state.preview?.root.id === root.id && set({ preview: { ...state.preview, ...patch } });
    try {
      const answer = await kernel.ask("forecast", { root: root.id }, { timeout: FORECAST_MS });
      if (forecasts.size > 40) forecasts.clear();
      forecasts.set(key, answer);
      change({ forecasts: answer });
    } catch (error) {
      const { text, next } = problem(error);
      change({ problem: join(" ", text, error instanceof Refused && next) });
    }
  }

  async function travel(id: number | null): Promise<void> {
    const now = { past: null, pastEvent: null };
    const events = state.now?.events ?? [];
    const event = events.find((each) => each.id === id);
    if (id === null || event === events.at(-1)) return set({ ...now, preview: null });
    if (!event) return;
    const known = stored.get(id);
    set({ pastEvent: id, preview: null, ...(known && { past: known }) });
    if (known) return;
    try {
      const { wire } = await kernel.ask("snapshot", { event: id }, { timeout: 10000 });
      const past = await drive(decodeSlices(wire), () => state.pastEvent === id);
      if (!past) return; // another step is wanted by now
      if (stored.size >= STORED) stored.delete(stored.keys().next().value!);
      stored.set(id, past);
      if (state.pastEvent === id) set({ past });
    } catch (error) {
      if (state.pastEvent === id) set({ ...now, answer: problem(error) });
    }
  }

  async function inspect(uid: number): Promise<void> {
    if (state.kept.has(uid)) return;
    const say = (value: KeptOrNot) => set({ kept: new Map(state.kept).set(uid, value) });
    if (state.link === "gone" || state.past) return say("unknown");
    say("asked");
    say(await kernel.ask("inspect", { uid }, { timeout: 8000 }).catch(() => "unknown" as const));
  }

  return { preview, travel, inspect };
}

export function kernelActions(context: Context, hooks: Hooks): KernelActions {
  const { state, kernel, set } = context;
  const { preview, travel, inspect } = questions(context);
  const say = (answer: Answer) => set({ answer });
  let stop: AbortController | null = null;
  /** The kernel takes a cancelled request back by refusing it. */
  let cancelled = false;

  /** Runs one request that changes something, and says what the kernel says; there is never a second one at the same time. */
  async function run(verb: "backward" | "rebuild", args: Args, what: string): Promise<void> {
    if (state.running)
      return say(told(`${state.running.what} is still running.`, "One call at a time: wait for it, or cancel it."));
    const { signal } = (stop = new AbortController());
    cancelled = false;
    let wait: Running["queued"] = null;
    const queued = (behind: string, seconds: number) => {
      wait = { behind, seconds };
      if (state.running) set({ running: { ...state.running, queued: wait } });
    };
    const asked = kernel.ask(verb, args, { queued, signal });
    set({ running: { request: asked.id, what, queued: wait }, answer: null, preview: null });
    // A kernel whose only thread runs a cell cannot even say that the call is queued.
    const silent = setTimeout(() => {
      const cell = state.now?.status.cell;
      if (kernel.busy() && !wait) queued(cell == null ? "the running cell" : `In[${cell}]`, 0);
    }, QUEUED_MS);
    try {
      say((await asked).said);
    } catch (error) {
      if (cancelled) say(told(`${what} was cancelled.`, "Nothing has changed."));
      else if (!signal.aborted) say(problem(error));
    }
    clearTimeout(silent);
    set({ running: null });
  }

  function backward(root: Root, retain: boolean): void {
    const off = whyOff(state, root);
    if (off) {
      say(alert(off));
      return;
    }
    const args = { root: root.id, retain_graph: retain, keep_grad: state.keepGrad };
    void run("backward", args, backwardName(root, retain));
  }

  async function cancel(): Promise<void> {
    const { running } = state;
    if (!running) return;
    try {
      cancelled = true;
      await kernel.ask("cancel", { request: running.request }, { timeout: 1500 });
    } catch (error) {
      cancelled = false;
      if (error instanceof Refused) return say(problem(error));
      say(told(`${running.what}: no longer waiting for the answer.`, "The kernel may still run it."));
    }
    stop?.abort();
  }

  function rebuild(root: Root): void {
    const cells = cellList(root.cells);
    if (!cells) {
      say(told("Rebuild is off: the cells that made this graph are unknown.", "Run them by hand."));
      return;
    }
    const { id, path } = root;
    const go = () => {
      hooks.closeDialog();
      void run("rebuild", { root: id }, `Rebuild ${path}`);
    };
    const what = ["Freed saved tensors do not come back. To build ", h("code", path)];
    hooks.ask([
      h("p", what, " afresh, these cells run again, in this order:"),
      h("p", h("b", cells)),
      h("p.gw-mute", "Names that they assign are replaced; what they print or write happens again."),
      h(
        "div.gw-row",
        button("gw-btn.gw-pri", go, { autofocus: true }, `Run ${cells} again`),
        button("gw-btn", hooks.closeDialog, "Cancel"),
      ),
    ]);
  }

  /** Goes to the first stored event from `at` on in a direction, if there is one. */
  function walk(at: number, by: number, onlyCells = false): void {
    const all = state.now?.events ?? [];
    for (let i = at; all[i]; i += by) {
      const { id, kept, kind } = all[i]!;
      if ((!kept && i < all.length - 1) || (onlyCells && kind !== "cell")) continue;
      if (i !== position(state)) void travel(id);
      return;
    }
  }

  function step(by: number): void {
    const at = position(state) + by;
    if (at < 0) walk(0, 1);
    else if (by) walk(Math.min((state.now?.events.length ?? 0) - 1, at), Math.sign(by));
  }

  const cell = (by: number) => walk(position(state) + by, by, true);
  return { preview, travel, inspect, backward, cancel, rebuild, step, cell };
}
