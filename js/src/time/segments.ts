/** The words over the timeline: cells, iterations, and what was folded. None is cut, none touches another. */

import type { TimelineEvent } from "../picture/model.ts";
import { count } from "../state/say.ts";
import type { Placed } from "./scale.ts";

export interface Segment {
  /** Indices of the first and the last event. */
  from: number;
  to: number;
  left: number;
  right: number;
  /** The longest text that fits; "": none does. */
  label: string;
  /** All that there is to say. */
  title: string;
  bad: boolean;
  /** Whether events are folded in it, so that it can be opened. */
  opens: boolean;
}

/** Width of a letter, and of the space around a text, in px. */
const LETTER = 6.4;
const PADDING = 7;

/** `at`: what a label may say, the longest first. */
export function fitting(room: number, texts: readonly string[]): string {
  return texts.find((text) => text.length * LETTER + PADDING <= room) ?? "";
}

export function segmentsOf(events: readonly TimelineEvent[], stretches: readonly Placed[]): Segment[] {
  const out: (Segment & { texts: readonly string[]; part: string })[] = [];
  for (const stretch of stretches) {
    const { kind, from, to, left, right } = stretch;
    const bad = kind !== "gap" && events.slice(from, to + 1).some(({ ok }) => !ok);
    const last = out.at(-1);
    const part = kind === "one" ? partOf(events, from) : "";
    if (last && part && part === last.part) Object.assign(last, { to, right, bad: last.bad || bad });
    else {
      const texts = textsOf(events, stretch);
      const opens = kind === "run" || kind === "several";
      out.push({ from, to, left, right, label: "", title: texts[0]!, bad, opens, texts, part });
    }
  }
  return out.map(({ texts, part: _, ...segment }) => ({
    ...segment,
    label: fitting(segment.right - segment.left, texts),
  }));
}

/** The cell and the iteration that an event is a part of. The end of a cell belongs to the iteration before it. */
function partOf(events: readonly TimelineEvent[], at: number): string {
  let call = at;
  while (events[call]!.kind === "cell" && events[call - 1]?.cell === events[at]!.cell) call--;
  return `${events[at]!.cell} ${events[call]!.iteration}`;
}

/** What can be said of a stretch, the longest text first. */
function textsOf(events: readonly TimelineEvent[], stretch: Placed): readonly string[] {
  const { kind, from, to, size, times } = stretch;
  const first = events[from]!;
  const cells = cellsText(first, events[Math.max(from, to)]!);
  switch (kind) {
    case "gap":
      return [`${count(times, "step")} not stored`, `${times.toLocaleString("en")} not stored`, "…"];
    case "one": {
      const { iteration } = first;
      const cell = cellsText(first, first);
      if (iteration === null || first.kind === "cell") return cell;
      return [`it ${iteration} · ${cell[0]}`, `it ${iteration}`, `${iteration}`];
    }
    case "several": {
      const steps = count(to - from + 1, "step");
      return [`${cells[0]} · ${steps}`, ...cells, steps, "…"];
    }
    case "run": {
      if (first.kind === "cell" && size === 1) return [...cells, `×${times}`];
      const folded = `×${times.toLocaleString("en")}`;
      const [a, b] = [first.iteration, events[to]!.iteration ?? events[to - 1]?.iteration];
      const passes = a !== null && b !== null && b !== undefined ? `it ${a}–${b}` : "";
      return [`${folded} · ${passes && `${passes} · `}${cells[0]}`, `${folded} · ${passes || cells[0]}`, folded];
    }
  }
}

/** "In[3]", or "In[3]–[8]"; then the same in short. What no cell ran is called by its line; only buttons have none. */
function cellsText(first: TimelineEvent, last: TimelineEvent): [string, ...string[]] {
  const [a, b] = [first.cell, last.cell];
  if (a === null) return first.label ? [first.label.trim()] : ["this view", "view"];
  if (b === null || b === a) return [`In[${a}]`, `[${a}]`];
  return [`In[${a}]–[${b}]`, `[${a}]–[${b}]`];
}
