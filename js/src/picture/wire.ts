/**
 * Decodes what the kernel sends: one JSON text with the graph in columns and a table of strings.
 *
 * Nothing in a message is trusted: every index is checked here, so that the rest of the code need not.
 */

import type {
  Call,
  Finding,
  Fix,
  Graph,
  Leaf,
  ModuleCall,
  Owner,
  Place,
  Root,
  Status,
  TimelineEvent,
} from "./model.ts";
import { SLOT } from "./model.ts";

export const SCHEMA = 1;

/** A message that cannot be drawn; the text says what to do. */
export class WireError extends Error {
  override name = "WireError";
}

type Json = Record<string, unknown>;

function fail(what: string): never {
  throw new WireError(`The picture's data cannot be read: ${what}. Run the cell again.`);
}

function parse(message: string | Json): Json {
  let json: unknown = message;
  if (typeof message === "string") {
    try {
      json = JSON.parse(message);
    } catch {
      fail("it is not JSON");
    }
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) fail("it is not an object");
  const schema = (json as Json).schema;
  if (typeof schema !== "number") fail("it has no schema number");
  if (schema > SCHEMA) {
    throw new WireError(
      `The kernel's graphwidget is newer than this page (schema ${schema}, known: ${SCHEMA}). Reload the page.`,
    );
  }
  if (schema !== SCHEMA) fail(`schema ${schema} is not known`);
  return json as Json;
}

// ---- Values -------------------------------------------------------------------------------------------------

function list(json: Json, key: string): unknown[] {
  const value = json[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) fail(`"${key}" is not a list`);
  return value;
}

function numberOr<T>(value: unknown, otherwise: T): number | T {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

const numberOrNull = (value: unknown) => numberOr(value, null);

/** Indices into the table of strings. */
class Strings {
  readonly table: string[];
  constructor(table: string[]) {
    this.table = table;
  }
  /** The string at an index; "" for -1. */
  at(index: unknown): string {
    if (index === undefined || index === null || index === -1) return "";
    if (typeof index !== "number") fail("a string is not an index");
    const found = this.table[index];
    if (found === undefined) fail(`there is no string ${index}`);
    return found;
  }
  all(indices: unknown): string[] {
    return Array.isArray(indices) ? indices.map((index) => this.at(index)) : [];
  }
}

function numbers(values: unknown): number[] {
  return Array.isArray(values) ? values.filter((value) => typeof value === "number") : [];
}

// ---- Columns ------------------------------------------------------------------------------------------------

function column<T extends Int32Array | Float64Array>(json: Json, key: string, into: T): T {
  const values = list(json, key);
  if (values.length !== into.length) fail(`"${key}" has ${values.length} values instead of ${into.length}`);
  for (let i = 0; i < into.length; i++) {
    const value = values[i];
    if (typeof value !== "number") fail(`"${key}" holds something that is not a number`);
    into[i] = value;
  }
  return into;
}

function running<T extends Int32Array | Float64Array>(values: T): T {
  for (let i = 1; i < values.length; i++) values[i]! += values[i - 1]!;
  return values;
}

function digits(json: Json, key: string, length: number, top: number): Uint8Array {
  const out = new Uint8Array(length);
  const text = json[key] ?? "";
  if (typeof text !== "string") fail(`"${key}" is not text`);
  if (text.length === 0) return out;
  if (text.length !== length) fail(`"${key}" has ${text.length} digits instead of ${length}`);
  for (let i = 0; i < length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > top) fail(`"${key}" holds "${text[i]}"`);
    out[i] = digit;
  }
  return out;
}

/** Offsets from counts. */
function starts(counts: Int32Array, key: string): Int32Array {
  const out = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) {
    if (counts[i]! < 0) fail(`"${key}" holds a negative count`);
    out[i + 1] = out[i]! + counts[i]!;
  }
  return out;
}

/** Every value is `least` or an index below `length`. */
function within(values: Int32Array, length: number, key: string, least = -1): Int32Array {
  for (const value of values) if (value < least || value >= length) fail(`"${key}" points outside the message`);
  return values;
}

/** Rows [position, value] or [first position, value, count]; `only` says which positions of a run are meant. */
function sparse<T extends Int32Array | Uint8Array>(
  json: Json,
  key: string,
  out: T,
  only: (position: number, was?: number) => boolean = () => true,
): T {
  for (const row of list(json, key)) {
    const [at, value, count = 1, was] = numbers(row);
    if (at === undefined || value === undefined || !(at >= 0 && count > 0 && at + count <= out.length))
      fail(`"${key}" is wrong`);
    for (let i = at; i < at + count; i++) if (only(i, was)) out[i] = value;
  }
  return out;
}

/** Which call freed a slot; a run passes over the slots that are not freed. */
function freedBy(json: Json, states: Uint8Array, out: Int32Array): Int32Array {
  return sparse(json, "slotFreedBy", out, (slot) => states[slot] === SLOT.freed);
}

/** All states as digits, or rows [first slot, state, count, state before]. */
function newStates(json: Json, before: Uint8Array): Uint8Array {
  if (typeof json.slotState === "string") return digits(json, "slotState", before.length, 5);
  const out = sparse(json, "slotState", before.slice(), (slot, was) => before[slot] === was);
  if (out.some((state) => state > 5)) fail('"slotState" holds a state that does not exist');
  return out;
}

// ---- Records ------------------------------------------------------------------------------------------------

function record(value: unknown, key: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(`"${key}" holds no object`);
  return value as Json;
}

function row(value: unknown, key: string): unknown[] {
  if (!Array.isArray(value)) fail(`"${key}" holds no row`);
  return value;
}

function nodeIndex(value: unknown, n: number, key: string): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < -1 || value >= n) fail(`"${key}" names no node`);
  return value;
}

function readPlace(value: unknown, s: Strings): Place {
  const [cell, line, source, outerCell, outerLine, outerSource, iteration, cellId, run] = row(value, "places");
  return {
    cell: numberOrNull(cell),
    line: numberOrNull(line),
    source: s.at(source),
    outerCell: numberOrNull(outerCell),
    outerLine: numberOrNull(outerLine),
    outerSource: s.at(outerSource),
    iteration: numberOrNull(iteration),
    cellId: s.at(cellId) || null,
    run: numberOrNull(run),
  };
}

function readModule(value: unknown, s: Strings): ModuleCall {
  const [path, className, call] = row(value, "modules");
  return { path: s.at(path), className: s.at(className), call: numberOr(call, 0) };
}

function readLeaves(json: Json, s: Strings, n: number): Map<number, Leaf> {
  const leaves = new Map<number, Leaf>();
  for (const value of list(json, "leaves")) {
    const [at, paths, type, hasGrad, bytes] = row(value, "leaves");
    const node = nodeIndex(at, n, "leaves");
    leaves.set(node, {
      node,
      paths: s.all(paths),
      type: s.at(type),
      hasGrad: hasGrad === 1 || hasGrad === true,
      bytes: numberOr(bytes, 0),
    });
  }
  return leaves;
}

function readOwner(value: unknown, s: Strings, n: number): Owner {
  const [node, nr, path, kind] = row(value, "owners");
  return { node: nodeIndex(node, n, "owners"), nr: numberOr(nr, 0), path: s.at(path), kind: s.at(kind) };
}

function readRoot(value: unknown, s: Strings, n: number): Root {
  const root = record(value, "roots");
  return {
    id: numberOr(root.id, -1),
    path: s.at(root.path),
    node: nodeIndex(root.node, n, "roots"),
    nr: numberOr(root.nr, 0),
    type: s.at(root.type),
    scalar: root.scalar === true,
    alive: root.alive === true,
    order: Math.max(0, numberOr(root.order, 0)),
    cells: Array.isArray(root.cells) ? numbers(root.cells) : null,
  };
}

function readCall(value: unknown, s: Strings): Call {
  const call = record(value, "calls");
  const result = call.result;
  return {
    n: numberOr(call.n, 0),
    cell: numberOrNull(call.cell),
    line: numberOrNull(call.line),
    outerCell: numberOrNull(call.outerCell),
    outerLine: numberOrNull(call.outerLine),
    iteration: numberOrNull(call.iteration),
    source: s.at(call.source),
    api: typeof call.api === "string" ? call.api : s.at(call.api),
    retain: call.retain === true,
    create: call.create === true,
    roots: Array.isArray(call.roots) ? call.roots.map((root) => (root === -1 ? null : s.at(root))) : [],
    rootUids: numbers(call.rootUids),
    result: result === "raised" || result === "running" ? result : "ok",
    error: s.at(call.error),
    failedUid: numberOrNull(call.failedUid),
    freedBy: numberOrNull(call.freedBy),
    executed: Array.isArray(call.executed) ? numbers(call.executed) : null,
    executedCount: numberOr(call.executedCount, 0),
    freedSlots: numberOr(call.freedSlots, 0),
    freedBytes: numberOr(call.freedBytes, 0),
    carriers: s.all(call.carriers),
    forecast: typeof call.forecast === "string" ? call.forecast : s.at(call.forecast),
    sameAs: numberOrNull(call.sameAs),
  };
}

function readEvent(value: unknown, s: Strings): TimelineEvent {
  const event = record(value, "events");
  return {
    id: numberOr(event.id, -1),
    kind: event.kind === "call" ? "call" : "cell",
    cell: numberOrNull(event.cell),
    call: numberOrNull(event.call),
    iteration: numberOrNull(event.iteration),
    label: s.at(event.label),
    ok: event.ok !== false,
    held: numberOr(event.held, 0),
    nodes: numberOr(event.nodes, 0),
    kept: event.kept === true,
  };
}

function readFix(value: unknown, s: Strings): Fix {
  const fix = record(value, "fixes");
  const [cell, line] = Array.isArray(fix.at) ? fix.at : [];
  return {
    id: s.at(fix.id),
    text: s.at(fix.text),
    verified: fix.verified === true,
    at: typeof cell === "number" && typeof line === "number" ? [cell, line] : null,
    price: s.at(fix.price),
    edit: s.all(fix.edit),
  };
}

function readFinding(value: unknown, s: Strings): Finding {
  const finding = record(value, "findings");
  const severity = finding.severity;
  return {
    kind: typeof finding.kind === "string" ? finding.kind : s.at(finding.kind),
    severity: severity === "error" || severity === "warning" ? severity : "info",
    headline: s.at(finding.headline),
    text: s.at(finding.text),
    call: numberOrNull(finding.call),
    node: s.at(finding.node),
    uid: numberOrNull(finding.uid),
    carriers: s.all(finding.carriers),
    freedBy: numberOrNull(finding.freedBy),
    path: s.all(finding.path),
    uids: numbers(finding.uids),
    bytes: numberOr(finding.bytes, 0),
    fixes: list(finding, "fixes").map((fix) => readFix(fix, s)),
  };
}

function readStatus(value: unknown, s: Strings): Status {
  const status = typeof value === "object" && value !== null ? (value as Json) : {};
  const state = status.state;
  return {
    text: s.at(status.text),
    state: state === "busy" || state === "raised" || state === "off" ? state : "idle",
    cell: numberOrNull(status.cell),
  };
}

/** What may change while the graph's structure stays: read from a full message and from a delta alike. */
function readState(json: Json, s: Strings, n: number): Partial<Graph> {
  const state: Partial<Graph> = {};
  if ("leaves" in json) state.leaves = readLeaves(json, s, n);
  if ("owners" in json) state.owners = list(json, "owners").map((owner) => readOwner(owner, s, n));
  if ("roots" in json) state.roots = list(json, "roots").map((root) => readRoot(root, s, n));
  if ("calls" in json) state.calls = list(json, "calls").map((call) => readCall(call, s));
  if ("events" in json) state.events = list(json, "events").map((event) => readEvent(event, s));
  if ("event" in json) state.event = numberOr(json.event, -1);
  if ("findings" in json) state.findings = list(json, "findings").map((finding) => readFinding(finding, s));
  if ("boundary" in json) {
    state.boundary = list(json, "boundary").map((value) => {
      const [oldUid, newUid, path] = row(value, "boundary");
      return { oldUid: numberOr(oldUid, -1), newUid: numberOr(newUid, -1), path: s.at(path) };
    });
  }
  if ("status" in json) state.status = readStatus(json.status, s);
  if ("held" in json) state.held = numberOr(json.held, 0);
  if ("nodes" in json) state.nodes = numberOr(json.nodes, 0);
  if ("notes" in json) state.notes = s.all(json.notes);
  if ("torch" in json) state.torch = s.at(json.torch);
  if ("storages" in json) {
    state.storages = list(json, "storages").map((value) => {
      const [bytes, owners] = row(value, "storages");
      return { bytes: numberOr(bytes, 0), owners: s.all(owners) };
    });
  }
  return state;
}

function readStrings(json: Json, known: readonly string[] = []): Strings {
  const table = list(json, "strings");
  for (const text of table) if (typeof text !== "string") fail('"strings" holds something that is not text');
  return new Strings([...known, ...(table as string[])]);
}

/** A full message. */
export function decode(message: string | Json): Graph {
  const json = parse(message);
  const s = readStrings(json);
  const n = json.n;
  if (typeof n !== "number" || !Number.isInteger(n) || n < 0) fail('"n" is no count');
  if (list(json, "uid").length !== n) fail(`"uid" has ${list(json, "uid").length} values instead of ${n}`);

  const uid = running(column(json, "uid", new Float64Array(n)));
  const edgeStart = starts(column(json, "edgeCount", new Int32Array(n)), "edgeCount");
  const edgeTo = column(json, "edgeTo", new Int32Array(list(json, "edgeTo").length));
  if (edgeTo.length !== edgeStart[n]) fail('"edgeTo" does not fit "edgeCount"');
  for (let i = 0; i < n; i++) for (let e = edgeStart[i]!; e < edgeStart[i + 1]!; e++) edgeTo[e]! += i;
  const slotStart = starts(column(json, "slotCount", new Int32Array(n)), "slotCount");
  const slots = slotStart[n]!;
  if (list(json, "slotName").length !== slots) fail('"slotName" does not fit "slotCount"');
  const places = list(json, "places").map((place) => readPlace(place, s));
  const modules = list(json, "modules").map((module) => readModule(module, s));
  const state = readState(json, s, n);
  const text = s.table.length;
  const slotState = digits(json, "slotState", slots, 5);

  return {
    serial: numberOr(json.serial, 0),
    n,
    uid,
    name: within(column(json, "name", new Int32Array(n)), text, "name", 0),
    names: s.table,
    seq: running(column(json, "seq", new Float64Array(n))),
    kind: digits(json, "kind", n, 9),
    ghost: digits(json, "ghost", n, 1),
    place: within(column(json, "place", new Int32Array(n)), places.length, "place"),
    places,
    module: within(column(json, "module", new Int32Array(n)), modules.length, "module"),
    modules,
    edgeStart,
    edgeTo: within(edgeTo, n, "edgeTo", 0),
    edgeNr: sparse(json, "edgeNr", new Int32Array(edgeTo.length)),
    slotStart,
    slotName: within(column(json, "slotName", new Int32Array(slots)), text, "slotName"),
    slotState,
    slotType: within(column(json, "slotType", new Int32Array(slots)), text, "slotType"),
    slotBytes: column(json, "slotBytes", new Float64Array(slots)),
    slotStorage: within(column(json, "slotStorage", new Int32Array(slots)), state.storages?.length ?? 0, "slotStorage"),
    slotFreedBy: freedBy(json, slotState, new Int32Array(slots).fill(-1)),
    storages: [],
    leaves: new Map(),
    owners: [],
    roots: [],
    calls: [],
    boundary: [],
    events: [],
    event: -1,
    findings: [],
    held: 0,
    nodes: n,
    status: readStatus(null, s),
    notes: [],
    torch: "",
    ...state,
    indexOf: new Map(Array.from(uid, (value, index) => [value, index])),
  };
}

/** The graph that a delta makes of `base`, the graph of the full message it was made against. `base` stays as it was. */
export function applyDelta(base: Graph, message: string | Json): Graph {
  const json = parse(message);
  if (json.base !== base.serial) fail(`a change is based on picture ${json.base}, this is picture ${base.serial}`);
  const s = readStrings(json, base.names);
  const slotState = newStates(json, base.slotState);
  return {
    ...base,
    ...readState(json, s, base.n),
    serial: numberOr(json.serial, base.serial),
    names: s.table,
    slotState,
    slotFreedBy: freedBy(json, slotState, base.slotFreedBy.slice()),
  };
}
