/** Short texts of the view's own parts. What is said about nodes comes from picture/words.ts. */
import { type Call, type Graph, type Place, type Root, SLOT, type TimelineEvent } from "./picture/model.ts";
import { bytesText as bytes, callNumber } from "./picture/words.ts";

export { bytesText as bytes } from "./picture/words.ts";

/** 1, "saved tensor" -> "1 saved tensor". */
export function count(n: number, noun: string, plural = `${noun}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;
}

export function cellLine(cell: number | null, line: number | null): string {
  if (cell === null) return line === null ? "place unknown" : `line ${line}`;
  return line === null ? `In[${cell}]` : `In[${cell}]:${line}`;
}

/** "In[2]:3 · iteration 0". */
export function placeText(place: Place | null): string {
  if (!place) return "unknown: built before tracking, or outside a cell";
  const parts = [cellLine(place.cell, place.line)];
  if (place.iteration !== null) parts.push(`iteration ${place.iteration}`);
  if (place.outerCell !== null && (place.outerCell !== place.cell || place.outerLine !== place.line)) {
    parts.push(`called from ${cellLine(place.outerCell, place.outerLine)}`);
  }
  return parts.join(" · ");
}

/** What was called, as Python: "loss.backward(retain_graph=True)". */
export function callText(call: Call): string {
  const name = call.roots.length === 1 ? (call.roots[0] ?? "(unnamed)") : `${call.roots.length} tensors`;
  if (call.api === "autograd.grad") return `torch.autograd.grad(${name}, …)`;
  return call.retain ? `${name}.backward(retain_graph=True)` : `${name}.backward()`;
}

export function callResult(call: Call): string {
  if (call.result === "raised") return "raised";
  return call.result === "running" ? "is running" : `freed ${count(call.freedSlots, "saved tensor")}`;
}

export { callNumber };

export function eventTitle(event: TimelineEvent): string {
  if (event.label) return event.label;
  if (event.call !== null) return `after call ${callNumber(event.call)}`;
  return event.cell === null ? "after a step" : `after In[${event.cell}]`;
}

/** The slider's words: "In[2], iteration 1, after call 2, 0 B held". */
export function eventText(event: TimelineEvent): string {
  const parts = [event.cell === null ? "from the view" : `In[${event.cell}]`];
  if (event.iteration !== null) parts.push(`iteration ${event.iteration}`);
  if (event.call !== null) parts.push(`after call ${callNumber(event.call)}${event.ok ? "" : ", which raised"}`);
  else if (!event.ok) parts.push("which raised");
  parts.push(`${bytes(event.held)} held`);
  return parts.join(", ");
}

/** What is held now, of all that was once saved, as far as the freed part is known. */
function heldText(graph: Graph): string {
  let freed = 0;
  for (let i = 0; i < graph.n; i++) {
    if (graph.ghost[i]) continue;
    for (let slot = graph.slotStart[i]!; slot < graph.slotStart[i + 1]!; slot++) {
      if (graph.slotState[slot] === SLOT.freed) freed += graph.slotBytes[slot]!;
    }
  }
  return freed > 0 ? `${bytes(graph.held)} held, ${bytes(freed)} freed` : `${bytes(graph.held)} held`;
}

/** The header's line of facts. */
export function facts(graph: Graph, boxes: number): string {
  const leaves = graph.leaves.size;
  let ghosts = 0;
  for (let i = 0; i < graph.n; i++) ghosts += graph.ghost[i]!;
  const nodes = graph.n - leaves - ghosts;
  const parts = [
    boxes > 0 && boxes < nodes ? `${count(nodes, "node")} as ${boxes}` : count(nodes, "node"),
    count(leaves, "leaf", "leaves"),
  ];
  const losses = graph.roots.filter((root) => root.alive).length;
  if (losses > 1) parts[1] += ` · ${losses} roots`;
  return `${parts.join(", ")} · ${heldText(graph)}`;
}

export function backwardName(root: Root, retain: boolean): string {
  return `${root.path}.backward(${retain ? "retain_graph=True" : ""})`;
}
