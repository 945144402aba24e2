/** The numbers of calls on the timeline, and the pencils of optimizers: as many as do not touch each other. */

import type { Graph } from "../picture/model.ts";
import { callNumber } from "../picture/words.ts";
import { type Placed, placeOf } from "./scale.ts";

export interface Chip {
  x: number;
  n: number;
  order: number;
  ok: boolean;
  /** The call as code, where there is room for it. */
  text: string;
}

export interface Pencil {
  x: number;
  /** The steps as code, where there is room for them. */
  text: string;
}

/** Half the width of a number, and the width of the sign behind it. */
const half = (n: number) => 7 + 3 * Math.max(0, String(callNumber(n)).length - 2);
const SIGN = 13;
const GAP = 4;
const PENCIL = 10;
/** Words may end so many px beyond the last moment. */
const BEYOND = 24;
/** Width of a letter of a note, in px. */
const LETTER = 6.2;

/** Only the newest calls, and those that something refers to, are shown in full. */
type Recorded = Pick<Graph, "events" | "calls">;

/** [left, right] of something drawn. */
type Extent = readonly [number, number];

const touches = (a: Extent, b: Extent) => a[0] - b[1] < GAP && b[0] - a[1] < GAP;
const extentOf = ({ x, n }: Chip): Extent => [x - half(n), x + half(n) + SIGN];

/** Calls that may get a number: all that stand alone or raised; of a run the last, of others none. */
function* candidates({ events, calls }: Recorded, stretches: readonly Placed[]): Generator<Chip> {
  const orders = new Map(calls.map(({ n, order }) => [n, order]));
  for (const stretch of stretches) {
    if (stretch.kind === "gap") continue;
    for (let at = stretch.from; at <= stretch.to; at++) {
      const { call, order, ok } = events[at]!;
      const wanted = stretch.kind === "one" || !ok || (stretch.kind === "run" && at > stretch.to - stretch.size);
      if (call === null || !wanted) continue;
      yield { x: placeOf(stretches, at), n: call, order: orders.get(call) ?? order, ok, text: "" };
    }
  }
}

/** First those that raised, then the latest. */
export function chipsOf(recorded: Recorded, stretches: readonly Placed[]): Chip[] {
  const chosen: Chip[] = [];
  const all = [...candidates(recorded, stretches)].sort((a, b) => Number(a.ok) - Number(b.ok) || b.x - a.x);
  for (const chip of all) {
    const extent = extentOf(chip);
    if (chosen.every((other) => !touches(extentOf(other), extent))) chosen.push(chip);
  }
  return chosen;
}

/** The pencils between the numbers, and texts beside both where they fit. */
export function notesOf(
  { events, calls }: Recorded,
  stretches: readonly Placed[],
  chips: readonly Chip[],
): { chips: Chip[]; pencils: Pencil[] } {
  const taken = chips.map(extentOf);
  const isFree = (extent: Extent) => taken.every((other) => !touches(other, extent));
  const pencils: Pencil[] = [];
  for (const { kind, from, to, left } of stretches) {
    const steps =
      kind === "gap" ? undefined : events.slice(from, to + 1).find((event) => event.steps.length > 0)?.steps;
    // Right of the number and the sign of the event before.
    const x = GAP + Math.max(left, ...taken.filter((each) => each[0] < left && each[1] >= left).map((each) => each[1]));
    const extent: Extent = [x, x + PENCIL];
    if (!steps || !isFree(extent)) continue;
    const words = [...new Set(steps)].join(", ");
    const wide: Extent = [x, x + PENCIL + 3 + LETTER * words.length];
    const fits = kind === "one" && isFree(wide) && wide[1] <= (stretches.at(-1)?.right ?? 0) + BEYOND;
    taken.push(fits ? wide : extent);
    pencils.push({ x, text: fits ? words : "" });
  }
  const named = chips.map((chip) => {
    const text = calls.find(({ n }) => n === chip.n)?.text ?? "";
    const end = chip.x - half(chip.n) - GAP;
    const extent: Extent = [end - LETTER * text.length, end - GAP];
    const alone = taken.every((other) => other[0] === extentOf(chip)[0] || !touches(other, extent));
    if (!text || extent[0] < (stretches[0]?.left ?? 0) || !alone) return chip;
    taken.push(extent);
    return { ...chip, text };
  });
  return { chips: named, pencils };
}
