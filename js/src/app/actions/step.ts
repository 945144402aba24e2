/** Stepping through one call: asks the kernel for its steps, and moves the drawing from one to the next. */

import type { Picture } from "../../drawing/picture.ts";
import { Refused } from "../../state/kernel.ts";
import type { Replies } from "../../state/replies.ts";
import { type Context, position, type StepActions } from "../../state/state.ts";
import { keyOf, lastStep, NORMAL, PACES, type StepSubject, subjects, type Walk } from "../../state/steps.ts";
import { readPicture } from "../receive.ts";

const TIMEOUT_MS = 20_000;
/** Sentences are asked for when fewer than this many steps are left that have some. */
const AHEAD = 20;

export function stepActions(context: Context, picture: Picture): StepActions {
  const { state, kernel, set, signal } = context;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** The request that is waiting. */
  let asked: { id: number } | null = null;
  /** Positions of which sentences have been asked for. */
  let wanted = new Set<number>();
  signal.addEventListener("abort", () => clearTimeout(timer));

  /** Changes the walk. The drawing follows at once, not with the next picture. */
  function change(patch: Partial<Walk>): void {
    if (!state.walk) return;
    set({ walk: { ...state.walk, ...patch } });
    picture.showStep();
  }

  /** The call that the picture is about: that of the moment on screen, else one on the selected or last root. */
  function usual(): StepSubject | undefined {
    const all = subjects(state.now);
    const event = state.now?.events[position(state)];
    const call = state.pastEvent !== null && event ? event.call : null;
    const ofMoment = all.find(({ subject }) => "call" in subject && subject.call === call);
    const ahead = all.filter(({ subject }) => "root" in subject);
    const ofRoot = ahead.find(({ subject }) => "root" in subject && `root${subject.root.id}` === state.selected);
    return (ofMoment ?? ofRoot ?? ahead.at(-2) ?? all[0])?.subject;
  }

  function walk(subject: StepSubject | null | undefined = usual()): void {
    clearTimeout(timer);
    if (asked) void kernel.ask("cancel", { request: asked.id }, TIMEOUT_MS).catch(() => {});
    asked = null;
    const wasPast = state.walk?.steps?.wire != null;
    if (!subject) {
      set({ walk: null, ...(wasPast && { past: null, pastEvent: null }) });
      picture.showStep();
      return;
    }
    wanted = new Set([0]);
    const pace = state.walk?.pace ?? NORMAL;
    const fresh: Walk = { subject, steps: null, rows: [], problem: "", waits: "", at: 0, plays: false, pace };
    set({ walk: fresh, guess: null, answer: null, preview: null, ...(wasPast && { past: null, pastEvent: null }) });
    picture.showStep();
    void ask(subject);
  }

  async function ask(subject: StepSubject): Promise<void> {
    const isWanted = () => state.walk !== null && keyOf(state.walk.subject) === keyOf(subject);
    const queued = (waits: string) => isWanted() && change({ waits });
    const request =
      "call" in subject
        ? kernel.ask("steps_of", { call: subject.call }, TIMEOUT_MS)
        : kernel.ask("steps_ahead", { root: subject.root.id, retain_graph: subject.retain }, TIMEOUT_MS, queued);
    asked = request;
    try {
      const steps = await request;
      if (!("nodes" in steps)) return; // cancelled
      const before = steps.wire === null ? null : await readPicture(steps.wire, isWanted);
      if (!isWanted()) return;
      const event = state.now?.events.find(({ call }) => call === steps.n)?.id ?? null;
      const rows = steps.rows.slice();
      if (before) set({ past: before, pastEvent: event });
      change({ steps, rows, waits: "" });
    } catch (error) {
      const text = error instanceof Refused ? `${error.message} ${error.next}` : String(error);
      if (isWanted()) change({ problem: text, waits: "" });
    } finally {
      if (asked === request) asked = null;
    }
  }

  /** Asks for the sentences around a position, if they are not there. */
  async function moreSentences(at: number): Promise<void> {
    const steps = state.walk?.steps;
    const size = steps?.rows.length ?? 0;
    const first = Math.floor(at / size) * size;
    if (!steps || !size || at >= steps.nodes.length || state.walk?.rows[at] || wanted.has(first)) return;
    wanted.add(first);
    const found: Replies["more_steps"] | null = await kernel
      .ask("more_steps", { walk: steps.walk, at }, TIMEOUT_MS)
      .catch(() => null);
    if (state.walk?.steps !== steps) return;
    if (!found) {
      wanted.delete(first);
      return;
    }
    const rows = state.walk.rows.slice();
    found.rows.forEach((row, i) => {
      rows[found.first + i] = row;
    });
    change({ rows });
  }

  function stepTo(to: number): void {
    const now = state.walk;
    if (!now?.steps) return;
    const at = Math.max(0, Math.min(lastStep(now), to));
    if (at === lastStep(now)) clearTimeout(timer);
    change({ at, plays: now.plays && at < lastStep(now) });
    void moreSentences(Math.max(0, at - 1));
    void moreSentences(at + AHEAD);
  }

  function tick(): void {
    clearTimeout(timer);
    if (!state.walk?.plays) return;
    timer = setTimeout(() => {
      stepTo((state.walk?.at ?? 0) + 1);
      tick();
    }, PACES[state.walk.pace]!.ms);
  }

  function play(): void {
    const now = state.walk;
    if (!now?.steps || lastStep(now) === 0) return;
    const plays = !now.plays;
    const again = plays && now.at >= lastStep(now);
    change({ plays });
    if (plays) stepTo(again ? 0 : now.at + 1);
    tick();
  }

  function pace(to: number): void {
    change({ pace: Math.max(0, Math.min(PACES.length - 1, to)) });
    tick();
  }

  return { walk, stepTo, play, pace };
}
