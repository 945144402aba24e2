/** All texts of the picture: short, in torch's terms, the same on screen and for a screen reader. */

import { type CodeLine, type Graph, KIND, type Place, placeOf } from "./model.ts";
import * as SLOT from "./slot.ts";

/** `24 B`, `1.2 kB`, `34 MB`: powers of 1000, as PyTorch's own reports count. */
export function bytesText(count: number): string {
  if (count < 1000) return `${Math.round(count)} B`;
  let size = count;
  for (const unit of ["kB", "MB", "GB"]) {
    size /= 1000;
    if (size < 999.5 || unit === "GB") return `${size < 99.95 ? size.toFixed(1) : size.toFixed(0)} ${unit}`;
  }
  return "";
}

/** The same with fewer digits, where room is short: `8.2 kB`, `16 kB`. */
export function shortBytes(count: number): string {
  return bytesText(count)
    .replace(/^(\d\d)\.\d/, "$1")
    .replace(".0 ", " ");
}

/** `1 node`, `2,000 nodes`. */
export function count(n: number, noun: string, plural = `${noun}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

/** `1st`, `2nd`, `11th`. */
export function ordinal(count: number): string {
  const tail = count % 100;
  const suffix = tail >= 11 && tail <= 13 ? "th" : (["th", "st", "nd", "rd"][count % 10] ?? "th");
  return `${count}${suffix}`;
}

/** People count calls from 1; `n` counts from 0. */
export function callNumber(n: number): number {
  return n + 1;
}

/** The parts of a place that say where a line is. */
export type Where = Pick<Place, "cell" | "line"> & Partial<Pick<Place, "file">>;

/** `In[2]:4`, `proj/model.py:15`; "" where nothing is known. */
export function placeText(place: Where | null | undefined): string {
  if (!place) return "";
  const { cell, line, file } = place;
  if (file) return line === null ? file : `${file}:${line}`;
  if (cell === null) return line === null ? "" : `line ${line}`;
  return line === null ? `In[${cell}]` : `In[${cell}]:${line}`;
}

/** `In[2] line 4`, for a screen reader. */
export function placeAloud(place: Where | null | undefined): string {
  return placeText(place).replace(/:(?=\d+$)/, " line ");
}

/** `iteration 3`, else `In[2]`; "" where neither is known. */
export function whenText(place: Place | undefined): string {
  if (!place) return "";
  if (place.iteration !== null) return `iteration ${place.iteration}`;
  return place.cell === null ? "" : `In[${place.cell}]`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listText(parts: readonly string[], most = 4): string {
  if (parts.length <= 1) return parts[0] ?? "";
  const shown = parts.length > most ? [...parts.slice(0, most - 1), count(parts.length - most + 1, "other")] : parts;
  return `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/** Joins the parts that are not falsy. */
export const join = (separator: string, ...parts: readonly unknown[]) => parts.filter(Boolean).join(separator);

/** Words of slot states as they are shown; indices are `SLOT` values. */
export const STATE_WORDS = ["held", "freed", "stale", "packed", "none needed", "unknown"] as const;

/** The slots of one or several nodes. */
export interface SlotSummary {
  /** Number of slots in each state; indices are `SLOT` values. The last one counts slots that a forecast would free. */
  counts: number[];
  /** n of the calls that freed some, ascending. */
  freedBy: number[];
}

export function slotSummary(graph: Graph, nodes: ArrayLike<number>, states = graph.slotState): SlotSummary {
  const { slotStart, slotFreedBy } = graph;
  const counts = [0, 0, 0, 0, 0, 0, 0];
  const calls = new Set<number>();
  let last = -1;
  for (let i = 0; i < nodes.length; i++) {
    for (let slot = slotStart[nodes[i]!]!; slot < slotStart[nodes[i]! + 1]!; slot++) {
      counts[states[slot]!]!++;
      const call = states[slot] === SLOT.freed ? slotFreedBy[slot]! : -1;
      if (call >= 0 && call !== last) calls.add(call);
      last = call;
    }
  }
  return { counts, freedBy: [...calls].sort((a, b) => a - b) };
}

export type NodeState = "held" | "freed" | "mixed" | "stale" | "packed" | "none";

/**
 * One word for a node's saved tensors: stale if any is stale, mixed if they differ, none if nothing was saved. Also
 * none if all are unknown: the sentences beside it say so.
 */
export function nodeState(counts: readonly number[]): NodeState {
  if (counts[SLOT.stale]) return "stale";
  const present = [SLOT.held, SLOT.freed, SLOT.packed].filter((state) => counts[state]);
  if (present.length === 0) return "none";
  if (present.length > 1 || counts[SLOT.unknown]) return "mixed";
  return STATE_WORDS[present[0]!] as NodeState;
}

/** `2 saved tensors freed by call 1`, `1 saved tensor held` ... for one or several nodes. */
export function slotSentences(graph: Graph, nodes: ArrayLike<number>): string[] {
  const { counts, freedBy } = slotSummary(graph, nodes);
  const out: string[] = [];
  for (const state of [SLOT.held, SLOT.stale, SLOT.packed, SLOT.unknown]) {
    if (counts[state]) out.push(`${count(counts[state]!, "saved tensor")} ${STATE_WORDS[state]}`);
  }
  if (counts[SLOT.freed]) {
    const by = freedBy.map((n) => `call ${callNumber(n)}`);
    const who = by.length ? ` by ${listText(by)}` : ", by which call is unknown";
    out.push(`${count(counts[SLOT.freed]!, "saved tensor")} freed${who}`);
  }
  return out.length ? out : ["no saved tensor needed"];
}

export interface NodeSayings {
  /** Names of the tensors whose grad_fn it is. */
  names: readonly string[];
  /** Names of the roots that reach it. */
  roots: readonly string[];
  raised: boolean;
  wouldRaise: boolean;
}

/** Accessible name of a node: op, label, cell and line, sharing, saved tensors, errors. */
export function nodeLabel(graph: Graph, node: number, say: NodeSayings): string {
  const place = placeOf(graph, node);
  const module = graph.modules[graph.module[node]!]?.path;
  return join(
    ", ",
    graph.names[graph.name[node]!] + (say.names.length ? ` of ${listText(say.names, 3)}` : ""),
    placeAloud(place) || "cell and line unknown",
    place && place.iteration !== null && `iteration ${place.iteration}`,
    module && `module ${module}`,
    graph.ghost[node] && "gone",
    say.roots.length > 1 && `shared by ${listText(say.roots)}`,
    ...slotSentences(graph, [node]),
    graph.kind[node] === KIND.copySlices && "in-place write into a view",
    say.raised && "raised here",
    say.wouldRaise && "would raise here",
  );
}

export interface LeafSayings {
  names: readonly string[];
  type: string;
  hasGrad: boolean;
  gone: boolean;
  /** Names of the roots that reach it. */
  roots: readonly string[];
  place: CodeLine | undefined;
}

/** Accessible name of a leaf: `AccumulateGrad of weight, leaf, float32[3,4], .grad is set, no saved tensor needed`. */
export function leafLabel({ names, type, hasGrad, gone, roots, place }: LeafSayings): string {
  return join(
    ", ",
    `AccumulateGrad of ${names.length ? listText(names, 6) : "a tensor without a name"}`,
    names.length > 1 ? "leaves" : "leaf",
    type,
    placeAloud(place),
    gone && "gone",
    roots.length > 1 && `shared by ${listText(roots)}`,
    `.grad is ${hasGrad ? "set" : "None"}`,
    "no saved tensor needed",
  );
}
