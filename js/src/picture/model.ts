/** The decoded wire message: the autograd graph in columns, one position per node, edge or slot. No DOM, no classes. */

/** Digits of the wire's `kind`, in the order of Python's `Kind`. */
export const KIND = { function: 0, accumulate: 1, custom: 2, copySlices: 3, error: 4, compiled: 5 } as const;

/** A line of the user's code, and the outermost line that led to it. */
export interface CodeLine {
  cell: number | null;
  line: number | null;
  source: string;
  outerCell: number | null;
  outerLine: number | null;
  outerSource: string;
  cellId: string | null;
  run: number | null;
  /** The path of a file, for code that is in no cell; then `cell` is null. */
  file: string | null;
  outerFile: string | null;
  /** The qualified name of the function around the line. */
  fn: string | null;
  /** The run of the cell, or of the file, that the line itself is in: another number for each. */
  inner: number | null;
  /** "proj/train.py:26 ← In[3]:1"; "" where the line is the outermost. */
  caller: string;
}

export interface Place extends CodeLine {
  iteration: number | null;
}

export interface ModuleCall {
  path: string;
  className: string;
  call: number;
}

export interface Leaf {
  node: number;
  paths: string[];
  type: string;
  hasGrad: boolean;
  bytes: number;
}

export interface Owner {
  node: number;
  nr: number;
  path: string;
  kind: string;
}

export interface Root {
  id: number;
  path: string;
  node: number;
  nr: number;
  type: string;
  scalar: boolean;
  alive: boolean;
  /** Whether no name of the program leads to it any more, only the last error: then nothing can be called on it. */
  lost?: boolean;
  /** Slot in the list of hues and stroke styles; stable while the root lives. */
  order: number;
  /** Cells that Rebuild would run again, null: unknown. */
  cells: number[] | null;
}

export interface Call {
  n: number;
  cell: number | null;
  /** The run of its cell, from 0; null: unknown. */
  run: number | null;
  file: string | null;
  fn: string | null;
  inner: number | null;
  line: number | null;
  iteration: number | null;
  source: string;
  /** "loss.backward(retain_graph=True)". */
  text: string;
  /** "freed 6 saved tensors". */
  did: string;
  roots: (string | null)[];
  rootUids: number[];
  /** `order` of its first root, which picks hue and style: the same in all pictures. -1: unknown. */
  order: number;
  result: "ok" | "raised" | "running";
  failedUid: number | null;
  /** n of the call that freed what this one needed; null: none, or unknown. */
  freedBy: number | null;
  executed: number[] | null;
  executedCount: number;
}

export interface TimelineEvent {
  id: number;
  kind: "cell" | "call";
  cell: number | null;
  call: number | null;
  iteration: number | null;
  label: string;
  /** "proj/train.py:26 in fit", of a call that a file makes; else "". */
  where: string;
  ok: boolean;
  /** Bytes held after the event; null: unknown. */
  held: number | null;
  /** Bytes that the call freed. */
  freed?: number;
  /** Nodes alive after the event; null: unknown. */
  nodes: number | null;
  /** `order` of the call's root, which picks its hue; -1: unknown, or no call. */
  order: number;
  /** Steps of optimizers since the event before: "opt.step()". */
  steps: string[];
  /** Whether the kernel has stored a picture of it. */
  kept: boolean;
}

export interface Fix {
  id: string;
  text: string;
  verified: boolean;
  /** The place of the fix, and its price. */
  note: string;
  edit: string[];
  /** Names it in a request to try it; 0, or missing in a picture that was saved earlier: no program can make the change. */
  key?: number;
  /** What came of a trial, as a sentence; empty: there was none. */
  tried: string;
  /** Whether it passed; null: the trial decided nothing. */
  passed?: boolean | null;
}

export interface Finding {
  kind: string;
  severity: "error" | "warning" | "info";
  /** Text above the headline: kind of the finding, and its call. */
  kicker: string;
  headline: string;
  text: string;
  /** n of the call that it explains; null: none. */
  call: number | null;
  /** The cell in which it happened; null: it is about the present state. */
  cell: number | null;
  node: string;
  uid: number | null;
  /** The tensor that was modified in place, the statement that did it, and its place; "": unknown, or none. */
  tensor: string;
  wrote: string;
  wroteAt: string;
  carriers: string[];
  path: string[];
  uids: number[];
  bytes: number;
  fixes: Fix[];
}

export interface Status {
  text: string;
  state: "idle" | "busy" | "raised" | "off";
  cell: number | null;
  /** Reason why nothing can be run; "": there is none. */
  why: string;
}

export interface Graph {
  serial: number;
  n: number;
  uid: Float64Array;
  /** Index into `names`. */
  name: Int32Array;
  names: string[];
  /** Sequence numbers, -1 for AccumulateGrad. */
  seq: Float64Array;
  kind: Uint8Array;
  ghost: Uint8Array;
  /** Index into `places`, -1: unknown. */
  place: Int32Array;
  places: CodeLine[];
  /** Pass of the loop around the node, -1: none. */
  iteration: Int32Array;
  module: Int32Array;
  modules: ModuleCall[];
  /** Edges of node i: positions edgeStart[i] to edgeStart[i + 1]; from loss to leaves, as in `next_functions`. */
  edgeStart: Int32Array;
  edgeTo: Int32Array;
  slotStart: Int32Array;
  slotName: Int32Array;
  slotState: Uint8Array;
  /** Index into `names`, -1: unknown. Text such as "float32[3,4]". */
  slotType: Int32Array;
  slotBytes: Float64Array;
  slotStorage: Int32Array;
  /** n of the call that freed each slot, -1: none. */
  slotFreedBy: Int32Array;
  storageBytes: Float64Array;
  /** Python paths of tensors that share a storage; only for storages with such paths. */
  storageOwners: Map<number, string[]>;
  leaves: Map<number, Leaf>;
  owners: Owner[];
  roots: Root[];
  calls: Call[];
  /** Border between old and new part: uids on both sides, and the path of the carrier. */
  boundary: { oldUid: number; newUid: number; path: string }[];
  events: TimelineEvent[];
  event: number;
  findings: Finding[];
  held: number;
  status: Status;
  notes: string[];
  /** Index of the node of a uid; -1: it is not in this graph. */
  indexOf(uid: number | null): number;
}

/** Number of nodes without the leaves. */
export function nodeCount(graph: Graph): number {
  return graph.n - graph.leaves.size;
}

/** Whether a finding says that a call would raise; nothing has yet. */
export function isForecast({ kind, severity, uid }: Finding): boolean {
  return severity !== "error" && uid !== null && (kind === "second_backward" || kind === "inplace");
}

/** Place in the code that made a node; undefined: unknown. */
export function placeOf(graph: Graph, node: number): Place | undefined {
  const line = graph.places[graph.place[node] ?? -1];
  const iteration = graph.iteration[node]!;
  return line && { ...line, iteration: iteration < 0 ? null : iteration };
}

/** `order` of call n, which picks hue and style; -1: unknown. */
export function orderOfCall({ calls }: Graph, n: number): number {
  return calls.find((call) => call.n === n)?.order ?? -1;
}
