/** Who keeps which bytes over time: bands on top of each other, by name, where it was measured. */

import type { TimelineEvent } from "../picture/model.ts";
import type { Keepers } from "../state/replies.ts";
import { type Placed, placeOf, stretchAt } from "./scale.ts";

/** A rectangle: the bytes of one name from one moment to the next. */
export interface Band {
  name: string;
  /** Position among the names, from the bottom. */
  row: number;
  left: number;
  right: number;
  /** Bytes under it, and its own. */
  under: number;
  bytes: number;
}

/** The bytes of each name after an event; null: not measured. */
export function keptAt({ moments }: Keepers, id: number): readonly number[] | null {
  return moments.find(([event]) => event === id)?.[1] ?? null;
}

/** The bands of the events in sight. One begins half way before its event: by then the lines had made what it counts. */
export function bandsOf(events: readonly TimelineEvent[], stretches: readonly Placed[], keepers: Keepers): Band[] {
  const kept = new Map(keepers.moments);
  const out: Band[] = [];
  const [first, last] = [stretches[0]?.from ?? 0, stretches.at(-1)?.to ?? -1];
  for (let at = first; at <= last; at++) {
    const row = kept.get(events[at]!.id);
    if (!row || !stretchAt(stretches, at)) continue;
    const [before, here, after] = [at - 1, at, at + 1].map((i) => placeOf(stretches, i)) as [number, number, number];
    const isCall = events[at]!.kind === "call";
    // What a call left is there from the call on.
    const left = isCall ? here : (before + here) / 2;
    const right = at === last ? here : (here + after) / 2;
    let under = 0;
    row.forEach((bytes, i) => {
      if (bytes > 0 && right > left) out.push({ name: keepers.names[i]!, row: i, left, right, under, bytes });
      under += bytes;
    });
  }
  return out;
}

export interface Label {
  name: string;
  bytes: number;
  /** Middle of its line of text, in px from the top. */
  y: number;
}

const LINE = 16;

/** Where the names stand beside the bands of a moment: each at its band, moved as little as keeps them apart. */
export function labelsOf(
  { names }: Keepers,
  row: readonly number[],
  y: (bytes: number) => number,
  room: { top: number; base: number },
): Label[] {
  const labels: Label[] = [];
  let under = 0;
  row.forEach((bytes, i) => {
    if (bytes > 0) labels.push({ name: names[i]!, bytes, y: (y(under) + y(under + bytes)) / 2 });
    under += bytes;
  });
  // From the bottom up, then what has no room at the top comes down again.
  labels.forEach((label, i) => {
    label.y = Math.min(label.y, (labels[i - 1]?.y ?? room.base + LINE / 2) - LINE);
  });
  for (let i = labels.length - 1, least = room.top; i >= 0; i--, least = labels[i + 1]!.y + LINE)
    labels[i]!.y = Math.max(labels[i]!.y, least);
  return labels;
}
