/** Predicting what a call does: marks, then the call, then how right they were. */

import type { Picture } from "../../drawing/picture.ts";
import type { Root } from "../../picture/model.ts";
import type { Guess } from "../../state/guess.ts";
import { backwardName } from "../../state/say.ts";
import type { Context, GuessActions } from "../../state/state.ts";
import { problem, statusAnswer } from "./kernel.tsx";

export function guessActions(context: Context, picture: Picture): GuessActions {
  const { state, kernel, set } = context;

  /** Changes the prediction; its signs follow at once. */
  function change(patch: Partial<Guess>): void {
    if (!state.guess) return;
    set({ guess: { ...state.guess, ...patch } });
    picture.showGuess();
  }

  function usual(): Root | null {
    const alive = state.now?.roots.filter((root) => root.alive && !root.lost && root.node >= 0) ?? [];
    return alive.find(({ id }) => `root${id}` === state.selected) ?? alive.at(-1) ?? null;
  }

  function guess(root: Root | null = usual(), retain = false): void {
    // Nothing can be called where there is no kernel: then there is nothing to predict.
    if (root && (state.link === "recorded" || state.link === "gone")) return;
    if (state.walk) context.act.walk(null);
    if (state.past) context.act.travel(null);
    const fresh: Guess | null = root && {
      ...{ root, retain, fails: "", failsAt: null, frees: new Set(), runs: false, result: null },
    };
    set({ guess: fresh, preview: null, selected: null, answer: null });
    // What would give the answer away is drawn again afterwards.
    context.redraw();
  }

  const isOpen = () => state.guess !== null && !state.guess.runs && !state.guess.result;

  function say(patch: Partial<Pick<Guess, "fails" | "failsAt">>): void {
    if (!isOpen()) return;
    change(patch.fails === "no" ? { ...patch, failsAt: null } : patch);
  }

  function mark(key: string): void {
    if (!isOpen()) return;
    const frees = new Set(state.guess!.frees);
    if (!frees.delete(key)) frees.add(key);
    change({ frees });
  }

  async function compare(): Promise<void> {
    const said = state.guess;
    if (!said || !isOpen() || !said.fails) return;
    const { root, retain, fails, failsAt, frees } = said;
    if (state.running) {
      set({ answer: statusAnswer(`${state.running.what} is still running.`, "One call at a time.") });
      return;
    }
    // Who says that the call raises and marks no slot has said nothing of slots.
    const isSilent = fails === "yes" && frees.size === 0;
    const pairs = [...frees].map((key) => key.split(":").map(Number) as [number, number]);
    const what = backwardName(root, retain ? "retain" : "backward");
    const queued = (behind: string) => state.running && set({ running: { ...state.running, behind } });
    const asked = kernel.ask(
      "predict",
      {
        ...{ root: root.id, retain_graph: retain, keep_grad: state.keepGrad, fails },
        ...{ fails_at: failsAt ?? -1, frees: isSilent ? null : pairs },
      },
      0,
      queued,
    );
    change({ runs: true });
    set({ running: { request: asked.id, what, behind: "" }, answer: null });
    try {
      const result = await asked;
      set({ answer: result.said, running: null });
      if (!("marks" in result))
        change({ runs: false }); // cancelled
      else {
        change({ runs: false, result });
        context.redraw();
      }
    } catch (error) {
      set({ answer: problem(error), running: null });
      change({ runs: false });
    }
  }

  return { guess, say, mark, compare: () => void compare() };
}
