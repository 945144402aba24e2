/** The signs of a prediction over the picture: what is marked, and after the call how right each mark was. */

import { circle, type Mark, octagonOpen, path, rect, shape, text } from "../marks.ts";
import type { Graph } from "../model.ts";
import type { Item } from "./types.ts";

export type Verdict = "right" | "missed" | "extra" | "open";

export interface Guessing {
  /** uids of the nodes whose slots can be marked. */
  nodes: readonly number[];
  /** Keys `uid:position` of the marked slots. */
  marked: ReadonlySet<string>;
  /** The node at which the call is said to raise. */
  failsAt: number | null;
  /** By key; null: the call has not been made. */
  verdicts: ReadonlyMap<string, Verdict> | null;
  /** Whether the node was the right one. */
  failsRight: boolean | null;
}

const RINGS: Record<Verdict, string> = { right: "ring", missed: "ringmissed", extra: "ringextra", open: "mayring" };

/** One item for each slot that can be marked or has a verdict; its key is `mark uid:position`. */
export function guessSigns(graph: Graph, byKey: ReadonlyMap<string, Item>, guess: Guessing): Item[] {
  const items: Item[] = [];
  for (const uid of guess.nodes) {
    const card = byKey.get(`n${uid}`);
    if (!card) continue;
    const first = graph.slotStart[graph.indexOf(uid)] ?? 0;
    for (const { slot, ...place } of card.slots?.() ?? []) {
      const key = `${uid}:${slot - first}`;
      const verdict = guess.verdicts?.get(key);
      const look = guess.verdicts ? verdict && RINGS[verdict] : guess.marked.has(key) ? "ring" : "mayring";
      if (!look) continue;
      const w = Math.max(24, place.w + 8);
      const area = { x: card.x + place.x - 4, y: card.y + place.y - 4, w, h: place.h + 8 };
      const marks = [rect(0, 0, w, area.h, look, 6), ...(verdict ? badge(w, verdict) : [])];
      items.push({ key: `mark ${key}`, role: "note", ...area, marks });
    }
  }
  const named = guess.failsAt !== null && byKey.get(`n${guess.failsAt}`);
  if (named) items.push(failing(named, guess));
  return items;
}

/** The sign at the corner of a ring: a tick, a cross, a question mark. A slot that was missed has a dashed ring. */
function badge(x: number, verdict: Verdict): Mark[] {
  if (verdict === "missed") return [];
  const disc = circle(x - 1, 0, 5.5, "disc");
  if (verdict === "right") return [disc, shape(path`M${x - 4} ${0}L${x - 1.8} ${2.4}L${x + 2.4} ${-2.6}`, "tick")];
  if (verdict === "open") return [disc, text(x - 1, 0, "?", "order", "middle")];
  return [disc, shape(path`M${x - 3.6} ${-2.6}L${x + 1.6} ${2.6}M${x + 1.6} ${-2.6}L${x - 3.6} ${2.6}`, "cross")];
}

function failing({ x, y, w, h }: Item, { failsRight }: Guessing): Item {
  const marks = [...octagonOpen(0, 0, 8)];
  if (failsRight !== null) marks.push(...badge(10, failsRight ? "right" : "extra"));
  return { key: "mark fails", role: "note", x: x + w, y: y + h, w: 0, h: 0, marks };
}
