/** Requests of the view to the kernel, and the texts for the answers. */
import { Prose } from "../../page/glyphs.tsx";
import { Button } from "../../panels/parts.tsx";
import { type Fix, orderOfCall, type Root } from "../../picture/model.ts";
import { isAsked } from "../../state/guess.ts";
import { NoAnswer, Refused } from "../../state/kernel.ts";
import type { Answer, Args, Question } from "../../state/replies.ts";
import { backwardName, cellList } from "../../state/say.ts";
import {
  type Context,
  type KeptOrNot,
  type KernelActions,
  type Mode,
  type Preview,
  position,
} from "../../state/state.ts";
import { saveFile } from "../export.ts";
import { isHere } from "../home.ts";
import { readPicture } from "../receive.ts";

const QUEUED_MS = 700;
const FORECAST_MS = 6000;
/** A pointer that only passes over a button asks for nothing. */
const ENTER_MS = 150;
/** Time for the pointer to get from a button to the panel. */
const LEAVE_MS = 250;
const EXPORT_MS = 30_000;

export const statusAnswer = (text: string, next = ""): Answer => ({ kind: "status", text, next });
const alertAnswer = (text: string, next = ""): Answer => ({ kind: "alert", text, next });

export function problem(error: unknown): Answer {
  if (error instanceof Refused) return alertAnswer(error.message, error.next);
  const text = error instanceof Error ? error.message : String(error);
  return alertAnswer(`The view failed: ${text}`, "The kernel is not affected.");
}

/** Forecasts. One is shown while the pointer or the focus is on its button, on its panel, or until it is let go. */
function forecasting({
  root: view,
  state,
  kernel,
  set,
}: Context): Pick<KernelActions, "preview" | "keepPreview" | "renewPreview"> {
  async function ask(root: Root, mode: Mode, kept: boolean): Promise<void> {
    set({ preview: { root, mode, kept, forecasts: null, problem: "" } });
    const isWanted = () => state.preview?.root === root;
    const change = (patch: Partial<Preview>) => isWanted() && set({ preview: { ...state.preview!, ...patch } });
    try {
      change({ forecasts: await kernel.ask("forecast", { root: root.id }, FORECAST_MS) });
    } catch (error) {
      const { text, next } = problem(error);
      change({ problem: `${text} ${next}` });
    }
  }

  let soon: ReturnType<typeof setTimeout> | undefined;
  function preview(root: Root | null, mode: Mode = "backward"): void {
    const before = state.preview;
    clearTimeout(soon);
    if (before?.kept) return;
    if (root && isAsked(state.guess)) return; // it would give the answer away
    if (root) soon = setTimeout(() => void ask(root, mode, false), ENTER_MS);
    else
      setTimeout(() => {
        const isRead = view.querySelector(".gw-forecast")?.matches(":hover") === true;
        if (state.preview === before && !isRead) set({ preview: null });
      }, LEAVE_MS);
  }

  function keepPreview(mode: Mode | null): void {
    if (mode === null || !state.preview) set({ preview: null });
    else set({ preview: { ...state.preview, mode, kept: true } });
  }

  function renewPreview(): void {
    const { preview: before, now } = state;
    if (!before?.kept) return;
    const root = now?.roots.find(({ id, alive }) => alive && id === before.root.id);
    if (root) void ask(root, before.mode, true);
    else set({ preview: null });
  }

  return { preview, keepPreview, renewPreview };
}

/** Requests that change nothing: stored pictures, the owners of a node, exports. */
function questions({
  state,
  kernel,
  set,
}: Context): Pick<KernelActions, "travel" | "inspect" | "divide" | "compareMoments" | "save"> {
  async function travel(id: number | null): Promise<void> {
    const now = { past: null, pastEvent: null, walk: null };
    const events = state.now?.events ?? [];
    const event = events.find((each) => each.id === id);
    const { comparison } = state;
    const to = id ?? events.at(-1)?.id ?? null;
    if (comparison && to !== null && to !== comparison.from) return compareWith(comparison.from, to);
    if (comparison) set({ comparison: { ...comparison, to: null, difference: null } });
    if (id === null || event === events.at(-1)) return set({ ...now, preview: null });
    if (!event) return;
    set({ pastEvent: id, preview: null, walk: null });
    const isWanted = () => state.pastEvent === id;
    try {
      const { wire } = await kernel.ask("snapshot", { event: id }, 10000);
      const past = await readPicture(wire, isWanted);
      if (past && isWanted()) set({ past });
    } catch (error) {
      if (isWanted()) set({ ...now, answer: problem(error) });
    }
  }

  /** Shows the later of two moments, with what changed between them. */
  async function compareWith(from: number, to: number): Promise<void> {
    const begun = { from, to, difference: null };
    set({ pastEvent: to, preview: null, walk: null, comparison: begun });
    const isWanted = () => state.comparison === begun && state.pastEvent === to;
    try {
      const difference = await kernel.ask("compare", { before: from, after: to }, EXPORT_MS);
      const past = await readPicture(difference.wire, isWanted);
      if (past && isWanted()) set({ past, comparison: { from, to, difference } });
    } catch (error) {
      if (!isWanted()) return;
      set({ comparison: { from, to: null, difference: null }, answer: problem(error) });
    }
  }

  function compareMoments(): void {
    const { comparison, now } = state;
    if (!comparison) {
      const from = state.pastEvent ?? now?.events.at(-1)?.id;
      if (from !== undefined) set({ comparison: { from, to: null, difference: null } });
      return;
    }
    const shown = state.pastEvent;
    set({ comparison: null });
    void travel(shown);
  }

  async function inspect(uid: number): Promise<void> {
    if (state.kept.has(uid)) return;
    const say = (value: KeptOrNot) => set({ kept: new Map(state.kept).set(uid, value) });
    if (state.past) return say("unknown");
    say("asked");
    say(await kernel.ask("inspect", { uid }, 8000).catch(() => "unknown" as const));
  }

  async function divide(): Promise<void> {
    const event = state.now?.event ?? -1;
    if (state.keepers?.event === event) return;
    // Until the answer comes, what is known stays on screen.
    set({ keepers: { names: [], moments: [], ...state.keepers, event } });
    const found = await kernel.ask("keepers", {}, EXPORT_MS).catch(() => null);
    if (found && state.keepers?.event === event) set({ keepers: { ...found, event } });
  }

  async function save(format: string): Promise<void> {
    try {
      const { text, name, type } = await kernel.ask("export", { format }, EXPORT_MS);
      set({ answer: statusAnswer(saveFile(text, name, type)) });
    } catch (error) {
      set({ answer: problem(error) });
    }
  }

  return { travel, inspect, divide, compareMoments, save };
}

export function kernelActions(context: Context): KernelActions {
  const { state, kernel, set } = context;
  const say = (answer: Answer) => set({ answer });

  /** Runs a request that changes something, and shows the kernel's answer. Only one such request runs at a time. */
  async function run(verb: "backward" | "rebuild" | "try_fix", args: Args, what: string): Promise<void> {
    const before = state.running;
    if (state.link === "recorded")
      return say(statusAnswer("This page is a recording: nothing runs here.", "Run the notebook for a live view."));
    if (before) return say(statusAnswer(`${before.what} is still running.`, "One call at a time: wait, or cancel it."));
    const queued = (behind: string) => {
      if (state.running) set({ running: { ...state.running, behind } });
    };
    const asked = kernel.ask(verb, args, 0, queued);
    // A question that closes gives the focus back to the button: that asks for no forecast, which would hide the answer.
    context.act.preview(null);
    set({ running: { request: asked.id, what, behind: "" }, answer: null, preview: null });
    // A kernel whose only thread runs a cell cannot even say that the call is queued.
    const silent = setTimeout(() => {
      if (kernel.busy() && !state.running?.behind) queued("the running cell");
    }, QUEUED_MS);
    await asked.then(
      (result) => ("asks" in result ? confirm(verb, result.asks, args, what) : say(result.said)),
      (error) => say(problem(error)),
    );
    clearTimeout(silent);
    if (state.running?.request === asked.id) set({ running: null });
  }

  /** The kernel asks, because a call would raise or cells run again: a second press runs it, if that still holds. */
  function confirm(verb: "backward" | "rebuild" | "try_fix", question: Question, args: Args, what: string): void {
    const { key, title, lines } = question;
    // The answer may have waited for a cell. If the user types elsewhere by now, no dialog interrupts.
    if (!isHere(context.root)) {
      say(alertAnswer(`${title}. Nothing has run.`, lines.join(" ")));
      return;
    }
    const go = () => {
      context.act.close();
      void run(verb, { ...args, confirmed: key }, what);
    };
    const order = (n: number) => (state.now ? orderOfCall(state.now, n) : -1);
    context.act.ask(
      title,
      <>
        <p>
          <b>Nothing has run.</b>
        </p>
        {lines.map((line) => (
          <p>
            <Prose text={line} orderOf={order} />
          </p>
        ))}
        <div class="gw-row">
          <Button class="gw-btn gw-pri" press={context.act.close} autofocus>
            Cancel
          </Button>
          <Button class="gw-btn" press={go}>
            {verb === "try_fix" ? "Run the cells" : "Run it anyway"}
          </Button>
        </div>
      </>,
    );
  }

  function backward(root: Root, mode: Mode): void {
    const args = { root: root.id, retain_graph: mode === "retain", keep_grad: state.keepGrad };
    void run("backward", args, backwardName(root, mode));
  }

  /** Cancels the running request. Without an answer from the kernel, the view can only stop waiting for the result. */
  async function cancel(): Promise<void> {
    const { request, what } = state.running!;
    try {
      await kernel.ask("cancel", { request }, 1500);
    } catch (error) {
      const answer = statusAnswer(`${what}: no longer waiting for the answer.`, "The kernel may still run it.");
      set(error instanceof NoAnswer ? { answer, running: null } : { answer: problem(error) });
    }
  }

  const tryFix = (fix: Fix) => void run("try_fix", { fix: fix.key! }, "The trial");

  function rebuild(root: Root): void {
    const { id, path } = root;
    const cells = cellList(root.cells);
    const go = () => {
      context.act.close();
      void run("rebuild", { root: id }, `Rebuild ${path}`);
    };
    context.act.ask(
      "Please confirm",
      <>
        <p>
          Freed saved tensors do not come back. For a new <code>{path}</code> these cells run again, in order:
        </p>
        <p>
          <b>{cells}</b>
        </p>
        <p class="gw-mute">What they assign, print or write happens again.</p>
        <div class="gw-row">
          <Button class="gw-btn gw-pri" press={go} autofocus>
            Run {cells} again
          </Button>
          <Button class="gw-btn" press={context.act.close}>
            Cancel
          </Button>
        </div>
      </>,
    );
  }

  /** Goes to the first stored event from `at` in a direction, if there is one. */
  function walk(at: number, by: number, onlyCells = false): void {
    const all = state.now?.events ?? [];
    for (let i = at; all[i]; i += by) {
      const { id, kept, kind } = all[i]!;
      if ((!kept && i < all.length - 1) || (onlyCells && kind !== "cell")) continue;
      if (i !== position(state)) context.act.travel(id);
      return;
    }
  }

  function step(by: number): void {
    const at = position(state) + by;
    if (at < 0) walk(0, 1);
    else if (by) walk(Math.min((state.now?.events.length ?? 0) - 1, at), Math.sign(by));
  }

  const cell = (by: number) => walk(position(state) + by, by, true);
  return { ...forecasting(context), ...questions(context), backward, cancel, rebuild, tryFix, step, cell };
}
