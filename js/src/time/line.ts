/** The line of bytes held over the events, as path data. What nobody measured is a line of its own, without an area. */

import type { TimelineEvent } from "../picture/model.ts";
import type { Placed } from "./scale.ts";

/** Bytes between two moments. `known`: they were measured. */
export interface Level {
  from: number;
  to: number;
  held: number;
  known: boolean;
}

/** A pass of a run gets this many px: more of them would be a solid area. */
const TOOTH = 5;

/** Bytes held after an event; where nobody measured them, those of the last measurement. */
function heldAfter(events: readonly TimelineEvent[], at: number): { held: number; known: boolean } {
  for (let i = at; i >= 0; i--) {
    const { held } = events[i]!;
    if (held !== null) return { held, known: i === at };
  }
  return { held: 0, known: at < 0 };
}

/** Events of a stretch that are drawn: all, or only as many equal passes as there is room for. */
function* drawn({ kind, from, to, size, times, left, right }: Placed): Generator<number> {
  const passes = kind === "run" ? Math.max(1, Math.floor((right - left) / (TOOTH * size))) : times;
  if (kind !== "run" || passes >= times) {
    for (let at = from; at <= to; at++) yield at;
    return;
  }
  for (let pass = 0; pass < passes; pass++) {
    const first = from + Math.floor((pass * times) / passes) * size;
    for (let at = first; at < first + size; at++) yield at;
  }
}

/** The levels from left to right: what the lines before each event built up, and what was left of it. */
export function levelsOf(events: readonly TimelineEvent[], stretches: readonly Placed[]): Level[] {
  const out: Level[] = [];
  let last = (stretches[0]?.from ?? 0) - 1;
  let x = stretches[0]?.left ?? 0;
  for (const stretch of stretches) {
    if (stretch.kind === "gap") {
      out.push({ from: stretch.left, to: stretch.right, ...heldAfter(events, last), known: false });
      x = stretch.right;
      continue;
    }
    const shown = [...drawn(stretch)];
    shown.forEach((at, i) => {
      // In a run that is shown in part, those shown share its width.
      const place = stretch.left + ((stretch.right - stretch.left) * (i + 1)) / shown.length;
      const middle = (x + place) / 2;
      const { held, known } = heldAfter(events, at);
      out.push({ from: x, to: middle, ...heldAfter(events, last) });
      out.push({ from: middle, to: place, held: held + (events[at]!.freed ?? 0), known });
      x = place;
      last = at;
    });
  }
  return out;
}

/** Highest level; 0: nothing was ever held. */
export const topOf = (levels: readonly Level[]): number => levels.reduce((most, { held }) => Math.max(most, held), 0);

/** Path data of the levels that are known (or not), from `base` up to `top` px. `closed`: as areas. */
export function pathOf(
  levels: readonly Level[],
  known: boolean,
  most: number,
  { base, top }: { base: number; top: number },
  closed = false,
): string {
  const y = (held: number) => (base - ((base - top) * held) / (most || 1)).toFixed(1);
  let d = "";
  let end = Number.NaN;
  const close = () => {
    if (closed && d) d += `V${base}Z`;
  };
  for (const level of levels) {
    if (level.known !== known) continue;
    if (level.from !== end) {
      close();
      d += closed ? `M${level.from.toFixed(1)} ${base}` : `M${level.from.toFixed(1)} ${y(level.held)}`;
    }
    d += `V${y(level.held)}H${level.to.toFixed(1)}`;
    end = level.to;
  }
  close();
  return d;
}
