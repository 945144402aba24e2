/** What the view asks of the kernel, and what it says about the answers. */
import { type Child, h } from "./dom.ts";
import { NoAnswer, Refused, type Verb } from "./kernel.ts";
import type { Graph, Root, TimelineEvent } from "./picture/model.ts";
import { decode } from "./picture/wire.ts";
import { backwardName, bytes, count } from "./say.ts";
import {
  type Actions,
  type Answer,
  type Context,
  type Forecasts,
  type Kept,
  type Mode,
  type Running,
  whyOff,
} from "./state.ts";

const QUEUED_MS = 700;
const FORECAST_MS = 6000;
const STORED = 24;

interface BackwardResult {
  raised: null | { type: string; message: string; uid: number | null };
  /** null: nothing is known of them. */
  call: number | null;
  freedSlots: number | null;
  freedBytes: number | null;
}

export function problem(error: unknown): Answer {
  if (error instanceof Refused) return { kind: "alert", text: error.message, next: error.next };
  if (error instanceof NoAnswer)
    return { kind: "alert", text: error.message, next: "If it stays silent, restart the kernel and run the notebook." };
  return {
    kind: "alert",
    text: `The view failed: ${error instanceof Error ? error.message : String(error)}`,
    next: "The kernel is not affected.",
  };
}

export type KernelActions = Pick<Actions, "preview" | "backward" | "rebuild" | "cancel" | "travel" | "step"> & {
  inspect(uid: number): void;
  cell(by: number): void;
};

export interface Hooks {
  ask(content: Child[]): void;
  closeDialog(): void;
  /** A call raised at this node: show it once. */
  failed(uid: number): void;
}

export function kernelActions(context: Context, hooks: Hooks): KernelActions {
  const { state, kernel } = context;
  const forecasts = new Map<string, Forecasts>();
  const stored = new Map<number, Graph>();
  let stop: AbortController | null = null;
  /** The kernel takes a cancelled request back by refusing it. */
  let cancelled = false;

  async function preview(root: Root | null, mode: Mode = "backward"): Promise<void> {
    if (!root) return context.set({ preview: null });
    const key = `${state.now?.serial} ${root.id}`;
    const known = forecasts.get(key) ?? null;
    context.set({ preview: { root, mode, forecasts: known, problem: "" } });
    if (known) return;
    const current = () => state.preview !== null && state.preview.root.id === root.id;
    try {
      const answer = await kernel.ask<Forecasts>("forecast", { root: root.id }, { timeout: FORECAST_MS });
      if (forecasts.size > 40) forecasts.clear();
      forecasts.set(key, answer);
      if (current()) context.set({ preview: { ...state.preview!, forecasts: answer } });
    } catch (error) {
      if (current())
        context.set({
          preview: {
            ...state.preview!,
            problem: [problem(error).text, error instanceof Refused ? error.next : ""].filter(Boolean).join(" "),
          },
        });
    }
  }

  /** Runs one request that changes something; there is never a second one at the same time. */
  async function run<T>(
    verb: Verb,
    args: Record<string, unknown>,
    what: string,
    said: (result: T) => Answer,
  ): Promise<void> {
    if (state.running) {
      const next = "One call at a time: wait for it, or cancel it.";
      context.set({ answer: { kind: "status", text: `${state.running.what} is still running.`, next } });
      return;
    }
    const { signal } = (stop = new AbortController());
    cancelled = false;
    let wait: Running["queued"] = null;
    const queued = (behind: string, seconds: number) => {
      wait = { behind, seconds };
      if (state.running) context.set({ running: { ...state.running, queued: wait } });
    };
    const asked = kernel.ask<T>(verb, args, { queued, signal });
    context.set({ running: { request: asked.id, what, queued: wait }, answer: null, preview: null });
    // A kernel whose only thread runs a cell cannot even say that the call is queued.
    const silent = setTimeout(() => {
      const cell = state.now?.status.cell;
      if (kernel.busy() && !wait) queued(cell == null ? "the running cell" : `In[${cell}]`, 0);
    }, QUEUED_MS);
    try {
      context.set({ answer: said(await asked), running: null });
    } catch (error) {
      if (cancelled)
        context.set({
          running: null,
          answer: { kind: "status", text: `${what} was cancelled.`, next: "Nothing has changed." },
        });
      else context.set({ running: null, answer: signal.aborted ? state.answer : problem(error) });
    } finally {
      clearTimeout(silent);
    }
  }

  function backward(root: Root, retain: boolean): void {
    const off = whyOff(state, root);
    if (off) {
      context.set({ answer: { kind: "alert", text: off, next: "" } });
      return;
    }
    const what = backwardName(root, retain);
    const { keepGrad } = state;
    void run<BackwardResult>(
      "backward",
      { root: root.id, retain_graph: retain, keep_grad: keepGrad },
      what,
      (result) => {
        if (result.raised?.uid != null) hooks.failed(result.raised.uid);
        return saidAfter(what, result, keepGrad);
      },
    );
  }

  async function cancel(): Promise<void> {
    const { running } = state;
    if (!running) return;
    try {
      cancelled = true;
      await kernel.ask("cancel", { request: running.request }, { timeout: 1500 });
    } catch (error) {
      cancelled = false;
      if (error instanceof Refused) return context.set({ answer: problem(error) });
      const next = "The kernel may still run it.";
      context.set({ answer: { kind: "status", text: `${running.what}: no longer waiting for the answer.`, next } });
    }
    stop?.abort();
  }

  function rebuild(root: Root, confirmed: boolean): void {
    const cells = root.cells?.map((cell) => `In[${cell}]`).join(", ");
    if (!cells) {
      const text = "Rebuild is off: the cells that made this graph are unknown.";
      context.set({ answer: { kind: "status", text, next: "Run them by hand." } });
      return;
    }
    if (confirmed) {
      runRebuild(root, cells);
      return;
    }
    const go = () => {
      hooks.closeDialog();
      context.act.rebuild(root, true);
    };
    hooks.ask([
      h(
        "p",
        {},
        "Freed saved tensors do not come back. To build ",
        h("code", {}, root.path),
        " afresh, these cells run again, in this order:",
      ),
      h("p", {}, h("b", {}, cells)),
      h("p", { class: "gw-mute" }, "Names that they assign are replaced; what they print or write happens again."),
      h(
        "div",
        { class: "gw-row" },
        h(
          "button",
          {
            type: "button",
            class: "gw-btn gw-pri",
            onclick: go,
          },
          `Run ${cells} again`,
        ),
        h("button", { type: "button", class: "gw-btn", onclick: () => hooks.closeDialog() }, "Cancel"),
      ),
    ]);
  }

  function runRebuild(root: Root, cells: string): void {
    void run<{ error: string | null }>("rebuild", { root: root.id }, `Rebuild ${root.path}`, ({ error }) =>
      error
        ? { kind: "alert", text: `Rebuilding ${root.path} stopped: ${error}`, next: "" }
        : { kind: "status", text: `${root.path} was built afresh by running ${cells} again.`, next: "" },
    );
  }

  const events = () => state.now?.events ?? [];
  const position = () => {
    const at = events().findIndex((event) => event.id === (state.pastEvent ?? state.now?.event));
    return at < 0 ? events().length - 1 : at;
  };

  async function travel(id: number | null): Promise<void> {
    const last = events()[events().length - 1];
    if (id === null || !last || id === last.id) return context.set({ past: null, pastEvent: null, preview: null });
    const event = events().find((each) => each.id === id);
    if (!event) return;
    context.set({ pastEvent: id, preview: null, ...(stored.has(id) ? { past: stored.get(id)! } : {}) });
    if (stored.has(id)) return;
    try {
      if (!event.kept) throw new Refused("The picture of this step is no longer stored.", "Steps near the end are.");
      const { wire } = await kernel.ask<{ wire: string }>("snapshot", { event: id }, { timeout: 10000 });
      const graph = decode(wire);
      if (stored.size >= STORED) stored.delete(stored.keys().next().value!);
      stored.set(id, graph);
      if (state.pastEvent === id) context.set({ past: graph });
    } catch (error) {
      if (state.pastEvent === id) context.set({ past: null, pastEvent: null, answer: problem(error) });
    }
  }

  /** The next stored event in a direction, or null. */
  function storedAt(from: number, by: number, wanted: (event: TimelineEvent) => boolean): number | null {
    const all = events();
    for (let i = from; i >= 0 && i < all.length; i += by)
      if ((all[i]!.kept || i === all.length - 1) && wanted(all[i]!)) return i;
    return null;
  }

  function step(by: number): void {
    const all = events();
    if (!all.length || by === 0) return;
    const target = by === Number.NEGATIVE_INFINITY ? 0 : Math.max(0, Math.min(all.length - 1, position() + by));
    const at = storedAt(target, by > 0 ? 1 : by === Number.NEGATIVE_INFINITY ? 1 : -1, () => true);
    if (at !== null && at !== position()) void travel(all[at]!.id);
  }

  function cell(by: number): void {
    const at = storedAt(position() + by, by, (event) => event.kind === "cell");
    if (at !== null) void travel(events()[at]!.id);
  }

  async function inspect(uid: number): Promise<void> {
    if (state.kept.has(uid)) return;
    const say = (value: Kept | "asked" | "unknown") => context.set({ kept: new Map(state.kept).set(uid, value) });
    if (state.link === "gone" || state.past) return say("unknown");
    say("asked");
    try {
      say(await kernel.ask<Kept>("inspect", { uid }, { timeout: 8000 }));
    } catch {
      say("unknown");
    }
  }

  return {
    preview: (root, mode) => void preview(root, mode),
    backward,
    cancel: () => void cancel(),
    travel: (id) => void travel(id),
    inspect: (uid) => void inspect(uid),
    rebuild,
    step,
    cell,
  };
}

/** The rest of torch's message is advice, which the finding gives better. */
function firstSentence(message: string): string {
  return /^[\s\S]{20,}?\.(?=\s)/.exec(message)?.[0] ?? message;
}

function saidAfter(what: string, result: BackwardResult, keptGrad: boolean): Answer {
  const slots = result.freedSlots ?? 0;
  if (result.raised) {
    const freed = slots > 0 ? `It had freed ${count(slots, "saved tensor")} before.` : "";
    const { type, message } = result.raised;
    return { kind: "alert", text: `${what} raised ${type}: ${firstSentence(message)}`, next: freed };
  }
  const freed = slots > 0 ? `freed ${count(slots, "saved tensor")}, ${bytes(result.freedBytes ?? 0)}` : "freed nothing";
  return { kind: "status", text: `${what} ran and ${freed}.`, next: keptGrad ? ".grad is as it was." : "" };
}
