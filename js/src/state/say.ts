/** Short texts of the view's own parts. Texts about nodes are in picture/words.ts. */

import type { Graph, Place, Root, TimelineEvent } from "../picture/model.ts";
import * as SLOT from "../picture/slot.ts";
import { bytesText as bytes, callNumber, placeText as cellLine, count, join } from "../picture/words.ts";
import type { Mode, Preview } from "./state.ts";

export { bytesText as bytes, callNumber, count, join, placeText as cellLine, STATE_WORDS } from "../picture/words.ts";

/** "In[2]:3 · iteration 0". */
export function placeText(place: Place | undefined): string {
  if (!place) return "unknown: built before tracking, or outside a cell";
  const { caller, fn, iteration } = place;
  const within = place.file && fn ? ` in ${fn}` : "";
  return join(
    " · ",
    cellLine(place) ? `${cellLine(place)}${within}` : "place unknown",
    iteration !== null && `iteration ${iteration}`,
    caller && `called from ${caller}`,
  );
}

/** "In[1], In[2]". */
export function cellList(cells: readonly number[] | null): string {
  return cells?.map((cell) => `In[${cell}]`).join(", ") ?? "";
}

/** "loss.backward(retain_graph=True)". */
export function backwardName({ path }: Root, mode: Mode): string {
  return `${path}.backward(${mode === "retain" ? "retain_graph=True" : ""})`;
}

/** One sentence that describes a button; screen readers speak it before the click. */
export function forecastSentence({ problem, forecasts, mode }: Preview): string {
  if (problem) return `No forecast: ${problem}`;
  return forecasts ? `Forecast: ${forecasts[mode].sentence}` : "";
}

/** Label of an event. Only a call may have none: its source is unknown. */
export function eventTitle({ label, call }: TimelineEvent): string {
  return label || `after call ${callNumber(call ?? 0)}`;
}

/** The slider's words: "In[2], iteration 1, after opt.step(), after call 2, 0 B held". */
export function eventText({ cell, iteration, call, label, where, ok, held, steps }: TimelineEvent): string {
  return join(
    ", ",
    cell === null ? where || label.trim() || "from the view" : `In[${cell}]`,
    cell !== null && where,
    iteration !== null && `iteration ${iteration}`,
    steps.length > 0 && `after ${[...new Set(steps)].join(" and ")}`,
    call !== null && `after call ${callNumber(call)}`,
    !ok && "which raised",
    held !== null && `${bytes(held)} held`,
  );
}

/** torch's name of a node's op; "" without a node. */
export function nameOf(graph: Graph, node: number): string {
  return graph.names[graph.name[node] ?? -1] ?? "";
}

/** The same as in code: "Mul" for MulBackward0. */
export function opOf(graph: Graph, node: number): string {
  return nameOf(graph, node).replace(/Backward\d*$/, "");
}

export interface Slot {
  slot: number;
  name: string;
  /** "float32[3,4]", "" where it is not known. */
  type: string;
  /** A `SLOT` value. */
  state: number;
  bytes: number;
  /** The call that freed it, -1: none. */
  by: number;
}

/** The saved tensors of a node. */
export function slotsOf(graph: Graph, node: number): Slot[] {
  const slots: Slot[] = [];
  for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) slots.push(slotAt(graph, slot));
  return slots;
}

export function slotAt(graph: Graph, slot: number): Slot {
  return {
    slot,
    name: graph.names[graph.slotName[slot]!] ?? "?",
    type: graph.names[graph.slotType[slot]!] ?? "",
    state: graph.slotState[slot]!,
    bytes: graph.slotBytes[slot]!,
    by: graph.slotFreedBy[slot]!,
  };
}

/**
 * The header's line of facts: bytes held, number of freed saved tensors (a number, as they may have shared bytes), and
 * size of the graph. A narrow header cuts the end of it, so what is asked first stands first.
 */
export function facts(graph: Graph, boxes: number): string {
  let leaves = 0;
  let nodes = 0;
  let freed = 0;
  for (let i = 0; i < graph.n; i++) {
    if (graph.ghost[i]) continue;
    if (graph.leaves.has(i)) leaves++;
    else nodes++;
    for (let slot = graph.slotStart[i]!; slot < graph.slotStart[i + 1]!; slot++)
      if (graph.slotState[slot] === SLOT.freed) freed++;
  }
  const roots = graph.roots.filter((root) => root.alive).length;
  const held = `${bytes(graph.held)} held`;
  return join(
    " · ",
    freed > 0 ? `${held}, ${count(freed, "tensor")} freed` : held,
    `${count(nodes, "node")}${boxes > 0 && boxes < nodes ? ` as ${boxes}` : ""}, ${count(leaves, "leaf", "leaves")}`,
    roots > 1 && `${roots} roots`,
  );
}
