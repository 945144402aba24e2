/** What somebody says that a call does, before it is made; and how right that was. */

import { type Graph, KIND, type Root } from "../picture/model.ts";
import * as SLOT from "../picture/slot.ts";
import { placeText } from "../picture/words.ts";
import type { Compared } from "./replies.ts";

export interface Guess {
  root: Root;
  retain: boolean;
  /** Whether the call raises; "": not said yet. */
  fails: "" | "yes" | "no";
  /** uid of the node at which it raises; null: none is named. */
  failsAt: number | null;
  /** Keys (`slotKey`) of the slots that it frees. */
  frees: ReadonlySet<string>;
  /** The call is being made. */
  runs: boolean;
  /** How right it was; null: the call has not been made. */
  result: Compared | null;
}

export const slotKey = (uid: number, position: number) => `${uid}:${position}`;

/** A saved tensor that can be marked. */
export interface Choice {
  key: string;
  uid: number;
  position: number;
  /** Name in the node: `self`. */
  name: string;
}

export interface ChoiceNode {
  uid: number;
  name: string;
  /** Its variable, or its line. */
  where: string;
  slots: Choice[];
}

/**
 * The living nodes of the picture in the order in which they were made, without the leaves. Also those that the call
 * does not reach: to leave them out would give a part of the answer away.
 */
export function choices(graph: Graph): ChoiceNode[] {
  const nodes: number[] = [];
  for (let node = 0; node < graph.n; node++)
    if (!graph.ghost[node] && graph.kind[node] !== KIND.accumulate) nodes.push(node);
  const age = (node: number) => (graph.seq[node]! < 0 ? Number.POSITIVE_INFINITY : graph.seq[node]!);
  nodes.sort((a, b) => (age(a) === age(b) ? a - b : age(a) - age(b)));
  return nodes.map((node) => {
    const uid = graph.uid[node]!;
    const label = graph.owners.find((owner) => owner.node === node)?.path;
    const slots: Choice[] = [];
    const first = graph.slotStart[node]!;
    for (let slot = first; slot < graph.slotStart[node + 1]!; slot++) {
      if (graph.slotState[slot] === SLOT.unsaved) continue;
      const position = slot - first;
      slots.push({ key: slotKey(uid, position), uid, position, name: graph.names[graph.slotName[slot]!] ?? "?" });
    }
    const where = label ?? placeText(graph.places[graph.place[node]!]);
    return { uid, name: graph.names[graph.name[node]!] ?? "?", where, slots };
  });
}

/** Whether somebody is predicting: then nothing may give the answer away. */
export const isAsked = (guess: Guess | null) => guess !== null && !guess.result;

/** "4 of 6", and the mistakes. */
export function scoreText({ marks, freed }: Compared): { found: string; mistakes: string } {
  const count = (mark: string) => marks.filter(([, , each]) => each === mark).length;
  const words = [
    [count("missed"), "missed"],
    [count("extra"), "too many"],
    [count("open"), "not known"],
  ] as const;
  const mistakes = words.flatMap(([n, word]) => (n > 0 ? `${n} ${word}` : []));
  return { found: `${count("right")} of ${freed}`, mistakes: mistakes.join(" · ") };
}
