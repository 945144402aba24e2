/** A call that is stepped through: its steps, as the kernel describes them, and the position. */

import type { Graph, Root } from "../picture/model.ts";
import { callNumber } from "../picture/words.ts";
import type { StepRow, StepsReply } from "./replies.ts";

/** A recorded call by its number, or a call on a root that has not been made. */
export type StepSubject = { call: number } | { root: Root; retain: boolean };

export interface Walk {
  subject: StepSubject;
  /** null: requested, not received yet. */
  steps: StepsReply | null;
  /** Sentences by position, as far as they have been received. */
  rows: (StepRow | undefined)[];
  problem: string;
  /** What the request waits for; "": nothing. */
  waits: string;
  /** 0: before the call; k: node k is running; one more than there are nodes: after it. */
  at: number;
  plays: boolean;
  /** Position in `PACES`. */
  pace: number;
}

/** Milliseconds for one step, and the words for it. */
export const PACES = [
  { ms: 3000, words: "slow" },
  { ms: 1500, words: "normal" },
  { ms: 600, words: "fast" },
  { ms: 150, words: "very fast" },
] as const;
export const NORMAL = 1;

export const nodesIn = (steps: StepsReply | null) => steps?.nodes.length ?? 0;

/** The last position: after the call. */
export const lastStep = ({ steps }: Walk) => (nodesIn(steps) > 0 ? nodesIn(steps) + 1 : 0);

/** Number of nodes that have run at a position, with the one that runs. */
export const doneAt = (steps: StepsReply, at: number) => Math.min(at, steps.nodes.length);

/** The words for a position. */
export function stepTitle({ steps, at }: Walk): string {
  const n = nodesIn(steps);
  if (at === 0) return "Before the call";
  return at > n ? "After the call" : `Step ${at} of ${n}`;
}

/** Everything about a position in one text, for screen readers. */
export function stepText(walk: Walk): string {
  const { steps, rows, at } = walk;
  if (!steps) return "";
  if (at > steps.nodes.length) return `${stepTitle(walk)}. ${steps.ending}`;
  const row = rows[at - 1];
  if (at === 0) return `${stepTitle(walk)}. ${steps.past ? "This call was recorded." : "Nothing has run."}`;
  if (!row) return stepTitle(walk);
  const of = row.names.length > 0 ? ` of ${row.names[0]}` : "";
  return `${stepTitle(walk)}: ${row.node}${of}${row.place && `, ${row.place}`}. ${row.text}`;
}

/** What can be stepped through: calls on the live roots, then the recorded calls, the newest first. */
export function subjects(now: Graph | null): { key: string; words: string; subject: StepSubject }[] {
  if (!now) return [];
  const ahead = now.roots
    .filter((root) => root.alive && !root.lost && root.node >= 0)
    .flatMap((root) =>
      [false, true].map((retain) => ({
        key: keyOf({ root, retain }),
        words: `${root.path}.backward(${retain ? "retain_graph=True" : ""}), not run`,
        subject: { root, retain },
      })),
    );
  const past = now.calls
    .filter(({ result }) => result !== "running")
    .map(({ n, text }) => ({ key: keyOf({ call: n }), words: `${callNumber(n)} ${text}`, subject: { call: n } }));
  return [...ahead, ...past.reverse()];
}

export const keyOf = (subject: StepSubject) =>
  "call" in subject ? `call ${subject.call}` : `root ${subject.root.id} ${subject.retain}`;
