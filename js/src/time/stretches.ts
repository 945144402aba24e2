/**
 * Stretches of the timeline: the events that are drawn together.
 *
 * While there is room, each event is alone. Else equal passes of a loop become one stretch, as do cells that changed
 * nothing. If even that is too much, older stretches are put together. A stretch that is opened is folded in turn.
 */

import type { TimelineEvent } from "../picture/model.ts";

export interface Stretch {
  /** `run`: equal passes; `several`: different events; `gap`: events that are not stored, before event `from`. */
  kind: "one" | "run" | "several" | "gap";
  /** Indices of the first and the last event; a gap has none. */
  from: number;
  to: number;
  /** Events of a pass. */
  size: number;
  /** Passes of a run; events of a gap. */
  times: number;
}

/** Width of a stretch, relative to that of one event. */
const WEIGHT = { one: 1, run: 2.5, several: 2, gap: 2.5 } as const;

/** Longest pass of a loop that is found to repeat, in events, and the fewest passes that are folded. */
const LONGEST = 8;
const FEWEST = 3;

export const weightOf = ({ kind }: Stretch): number => WEIGHT[kind];
export const countOf = ({ from, to }: Stretch): number => to - from + 1;

const weigh = (all: readonly Stretch[]) => all.reduce((sum, each) => sum + weightOf(each), 0);
const one = (at: number): Stretch => ({ kind: "one", from: at, to: at, size: 1, times: 1 });
const run = (from: number, size: number, times: number): Stretch => ({
  ...{ kind: "run", from, to: from + size * times - 1, size, times },
});

/** The stretches of the events `from` to `to`, for which there is room for `most` events side by side. */
export function stretchesOf(events: readonly TimelineEvent[], from: number, to: number, most: number): Stretch[] {
  const single: Stretch[] = [];
  for (let at = from; at <= to; at++) single.push(one(at));
  const apart = withGaps(events, single);
  if (weigh(apart) <= most) return apart;
  const folded = withGaps(events, foldRuns(events, from, to));
  const [only] = folded;
  if (folded.length === 1 && only!.kind === "run") return parts(only!, most);
  return weigh(folded) <= most ? folded : together(folded, most);
}

/** Number of events between an event and the one before that are not stored. */
function missingBefore(events: readonly TimelineEvent[], at: number): number {
  return events[at]!.id - (events[at - 1]?.id ?? -1) - 1;
}

/** The stretches, with the gaps between them, and the one before the first event of all. */
function withGaps(events: readonly TimelineEvent[], stretches: readonly Stretch[]): Stretch[] {
  return stretches.flatMap((each, i) => {
    const times = i > 0 || each.from === 0 ? missingBefore(events, each.from) : 0;
    return times > 0 ? [{ kind: "gap", from: each.from, to: each.from - 1, size: 1, times }, each] : [each];
  });
}

function foldRuns(events: readonly TimelineEvent[], from: number, to: number): Stretch[] {
  const out: Stretch[] = [];
  const facts: string[] = [];
  for (let at = from; at <= to; at++) facts[at] = factsOf(events, at);
  for (let at = from; at <= to; ) {
    let best = one(at);
    for (let size = 1; size <= (isInside(events, at) ? 1 : LONGEST); size++) {
      const times = passes(events, facts, at, to, size);
      if (times >= FEWEST && size * times > countOf(best)) best = run(at, size, times);
    }
    out.push(best);
    at = best.to + 1;
  }
  return out;
}

/** What must be equal in all passes. What only some passes were measured for, is not. */
function factsOf(events: readonly TimelineEvent[], at: number): string {
  const { cell, kind, label, ok, freed = 0, steps, iteration, held, nodes } = events[at]!;
  const hadCalls = events[at - 1]?.kind === "call" && events[at - 1]!.cell === cell;
  const own = kind === "call" ? [label, freed, iteration === null] : [held, nodes, hadCalls];
  return JSON.stringify([kind, ok, steps, own]);
}

/** Whether an event is in the same iteration as the one before: no pass of several events begins there. */
function isInside(events: readonly TimelineEvent[], at: number): boolean {
  const before = events[at - 1];
  const { cell, iteration } = events[at]!;
  return iteration !== null && before?.cell === cell && before.iteration === iteration;
}

/** How often the `size` events from `at` on happen. */
function passes(
  events: readonly TimelineEvent[],
  facts: readonly string[],
  at: number,
  to: number,
  size: number,
): number {
  let end = at + size;
  while (end <= to && facts[end] === facts[end - size] && missingBefore(events, end) === 0) end++;
  return Math.floor((end - at) / size);
}

/** A run in equal parts of 1, 2, 5, 10, 20, ... passes. */
function parts({ from, size, times }: Stretch, most: number): Stretch[] {
  const room = Math.max(1, Math.floor(most / WEIGHT.run));
  const wanted = Math.max(1, times / room);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const each = [1, 2, 5, 10].map((step) => step * power).find((passes) => passes >= wanted)!;
  const out: Stretch[] = [];
  for (let pass = 0; pass < times; pass += each) out.push(run(from + pass * size, size, Math.min(each, times - pass)));
  return out;
}

/** The newest stretches as they are, and the older ones put together, so that there is room for all. */
function together(stretches: readonly Stretch[], most: number): Stretch[] {
  let first = stretches.length;
  for (let left = most / 2; first > 0; first--) {
    left -= weightOf(stretches[first - 1]!);
    if (left < 0) break;
  }
  const older = stretches.slice(0, first);
  const groups = Math.max(1, Math.floor(most / 2 / WEIGHT.several));
  const size = Math.ceil(older.length / groups);
  const out: Stretch[] = [];
  for (let at = 0; at < older.length; at += size) {
    const group = older.slice(at, at + size);
    out.push(
      group.length === 1
        ? group[0]!
        : { kind: "several", from: group[0]!.from, to: group.at(-1)!.to, size: 1, times: 1 },
    );
  }
  return [...out, ...stretches.slice(first)];
}
