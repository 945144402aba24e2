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

type Read = (value: unknown, s: Strings, n: number, key: string) => unknown;

/** How one field is read. What is missing or of another type gets the field's neutral value. */
const READ: Record<string, Read> = {
  zero: (value) => numberOr(value, 0),
  none: (value) => numberOr(value, -1),
  maybe: (value) => numberOr(value, null),
  order: (value) => Math.max(0, numberOr(value, 0)),
  is: (value) => value === true || value === 1,
  unless: (value) => value !== false,
  text: (value, s) => s.at(value),
  textOrNull: (value, s) => s.at(value) || null,
  texts: (value, s) => s.all(value),
  word: (value, s) => (typeof value === "string" ? value : s.at(value)),
  names: (value, s) => (Array.isArray(value) ? value.map((name) => (name === -1 ? null : s.at(name))) : []),
  numbers,
  numbersOrNull: (value) => (Array.isArray(value) ? numbers(value) : null),
  pair: (value) => (Array.isArray(value) && numbers(value).length === 2 ? value : null),
  node: (value, _s, n, key) => {
    if (typeof value !== "number" || !Number.isInteger(value) || value < -1 || value >= n)
      fail(`"${key}" names no node`);
    return value;
  },
  fixes: (value, s, n) => (Array.isArray(value) ? value.map((fix) => readFix(fix, s, n)) : []),
};

/** One of a few words; the first one where it is none of them. */
function choice(words: string[]): Read {
  return (value) => (words.includes(value as string) ? value : words[0]);
}

/**
 * Reads records whose fields are listed as "name:how", `how` being a name in `READ`, or words joined by "|".
 * A record is an object, or (`rows`) an array with the fields in this order.
 */
function reader<T>(key: string, fields: string, rows = false): (value: unknown, s: Strings, n: number) => T {
  const columns = fields.split(" ").map((field) => {
    const [name, how] = field.split(":") as [string, string];
    return [name, READ[how] ?? choice(how.split("|"))] as const;
  });
  return (value, s, n) => {
    if (typeof value !== "object" || value === null || Array.isArray(value) !== rows)
      fail(`"${key}" holds no ${rows ? "row" : "object"}`);
    // Written for a message with a hundred thousand of them: no array or pair in between.
    const record: Json = {};
    for (let i = 0; i < columns.length; i++) {
      const [name, read] = columns[i]!;
      record[name] = read((value as Json)[rows ? i : name], s, n, key);
    }
    return record as T;
  };
}

const readPlace = reader<Place>(
  "places",
  "cell:maybe line:maybe source:text outerCell:maybe outerLine:maybe outerSource:text iteration:maybe cellId:textOrNull run:maybe",
  true,
);
const readModule = reader<ModuleCall>("modules", "path:text className:text call:zero", true);
const readLeaf = reader<Leaf>("leaves", "node:node paths:texts type:text hasGrad:is bytes:zero", true);
const readFix = reader<Fix>("fixes", "id:text text:text verified:is at:pair price:text edit:texts");
const readStatus = reader<Status>("status", "text:text state:idle|busy|raised|off cell:maybe");

/** Lists of records that are taken over as they are. */
const LISTS = {
  owners: reader<Owner>("owners", "node:node nr:zero path:text kind:text", true),
  roots: reader<Root>(
    "roots",
    "id:none path:text node:node nr:zero type:text scalar:is alive:is order:order cells:numbersOrNull",
  ),
  calls: reader<Call>(
    "calls",
    "n:zero cell:maybe line:maybe outerCell:maybe outerLine:maybe iteration:maybe source:text api:word retain:is create:is roots:names rootUids:numbers result:ok|raised|running error:text failedUid:maybe freedBy:maybe executed:numbersOrNull executedCount:zero freedSlots:zero freedBytes:zero carriers:texts forecast:word sameAs:maybe",
  ),
  events: reader<TimelineEvent>(
    "events",
    "id:none kind:cell|call cell:maybe call:maybe iteration:maybe label:text ok:unless held:zero nodes:zero kept:is",
  ),
  findings: reader<Finding>(
    "findings",
    "kind:word severity:info|error|warning headline:text text:text call:maybe node:text uid:maybe carriers:texts freedBy:maybe path:texts uids:numbers bytes:zero fixes:fixes",
  ),
  boundary: reader<Graph["boundary"][number]>("boundary", "oldUid:none newUid:none path:text", true),
  storages: reader<Graph["storages"][number]>("storages", "bytes:zero owners:texts", true),
};
const SINGLE = { event: "none", held: "zero", nodes: "zero", notes: "texts", torch: "text" };

/** What may change while the graph's structure stays: read from a full message and from a delta alike. */
function readState(json: Json, s: Strings, n: number): Partial<Graph> {
  const state: Json = {};
  for (const [key, read] of Object.entries(LISTS))
    if (key in json) state[key] = list(json, key).map((value) => read(value, s, n));
  for (const [key, how] of Object.entries(SINGLE)) if (key in json) state[key] = READ[how]!(json[key], s, n, key);
  if (json.status) state.status = readStatus(json.status, s, n);
  if ("leaves" in json)
    state.leaves = new Map(
      list(json, "leaves")
        .map((value) => readLeaf(value, s, n))
        .map((leaf) => [leaf.node, leaf]),
    );
  return state as Partial<Graph>;
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
  const places = list(json, "places").map((place) => readPlace(place, s, n));
  const modules = list(json, "modules").map((module) => readModule(module, s, n));
  const state = readState(json, s, n);
  const text = s.table.length;
  const indexOf = new Map<number, number>();
  for (let i = 0; i < n; i++) indexOf.set(uid[i]!, i);
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
    status: { text: "", state: "idle", cell: null },
    notes: [],
    torch: "",
    ...state,
    indexOf,
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
