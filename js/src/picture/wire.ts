/**
 * Decodes what the kernel sends: one JSON text with the graph in columns and a table of strings.
 *
 * Nothing in a message is trusted: every index is checked here, so that the rest of the code need not.
 */

import { bytes, ints } from "./arrays.ts";
import type {
  Call,
  CodeLine,
  Finding,
  Fix,
  Graph,
  Leaf,
  ModuleCall,
  Owner,
  Root,
  Status,
  TimelineEvent,
} from "./model.ts";
import { runSlices, type Slices } from "./slices.ts";
import * as SLOT from "./slot.ts";

export const SCHEMA = 2;

/** A message that cannot be drawn; the text says what to do. */
export class WireError extends Error {
  override name = "WireError";
}

type Json = Record<string, unknown>;

/** `what`: the part of the message that is wrong. */
function fail(what: string): never {
  throw new WireError(`The picture's data cannot be read (${what}). Run the cell again.`);
}

function parse(message: string | Json): Json {
  let json: unknown = message;
  if (typeof message === "string") {
    try {
      json = JSON.parse(message);
    } catch {
      fail("JSON");
    }
  }
  const schema = (json as Json | null)?.schema;
  if (Number(schema) > SCHEMA)
    throw new WireError(
      `The kernel's graphwidget is newer than this page (schema ${schema}, not ${SCHEMA}). Reload the page.`,
    );
  if (schema !== SCHEMA) fail("schema");
  return json as Json;
}

// ---- Values -------------------------------------------------------------------------------------------------

function list(json: Json, key: string): unknown[] {
  const value = json[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) fail(key);
  return value;
}

/** What indices into the table of strings stand for; null stays null. */
function texts(table: readonly string[], index: unknown): unknown {
  if (Array.isArray(index)) return index.map((each) => texts(table, each));
  if (index === null) return null;
  const found = typeof index === "number" ? table[index] : undefined;
  return found ?? fail("strings");
}

// ---- Columns ------------------------------------------------------------------------------------------------

/** Base 64 as everywhere, A-Z a-z 0-9 + /, by code of the character; any other one has bit 64. */
const DIGIT = bytes(65536).fill(64);
for (let i = 0; i < 64; i++) DIGIT[i < 26 ? i + 65 : i < 52 ? i + 71 : i < 62 ? i - 4 : i < 63 ? 43 : 47] = i;

/** Beyond any number of a message. */
const FAR = 2 ** 53;

/**
 * `length` numbers from text: five bits in each character, the lowest first, bit 32 says that more follow, the lowest bit
 * of all is the sign. `sum`: each is the difference to the one before. All are at least `least` and below `limit`.
 *
 * The page's time to read a graph is spent here: one pass, no objects, and most numbers are one character.
 */
function column<T extends Int32Array | Float64Array | Uint8Array = Int32Array>(
  json: Json,
  key: string,
  length: number,
  limit: number,
  least = -1,
  Kind: new (length: number) => T = Int32Array as never,
  sum = true,
): T {
  const text = textOf(json, key);
  // Before room is made for them.
  if (text.length < length) fail(key);
  const out = new Kind(length);
  let at = 0;
  let value = 0;
  let seen = 0;
  for (let i = 0; i < length; i++) {
    let digit = DIGIT[text.charCodeAt(at++) & 65535]!;
    seen |= digit;
    if (!sum) value = 0;
    if (digit < 32) value += (digit >> 1) ^ -(digit & 1);
    else {
      const sign = digit & 1;
      let size = (digit & 31) >> 1;
      for (let scale = 16; digit & 32; scale *= 32) {
        digit = DIGIT[text.charCodeAt(at++) & 65535]!;
        size += (digit & 31) * scale;
        seen |= digit;
      }
      value += sign ? -size - 1 : size;
    }
    if (!(value >= least && value < limit)) fail(key);
    out[i] = value;
  }
  if (seen > 63 || at !== text.length) fail(key);
  return out;
}

function textOf(json: Json, key: string): string {
  const text = json[key];
  return typeof text === "string" ? text : fail(key);
}

/** Any numbers. */
function floats(json: Json, key: string, length: number, sum = true): Float64Array {
  return column(json, key, length, FAR, -FAR, Float64Array, sum);
}

/** As many as there are: each ends with a character below 32. */
function all(json: Json, key: string, sum = true): Float64Array {
  return floats(json, key, textOf(json, key).replace(/[g-z0-9+/]/g, "").length, sum);
}

/** Numbers below `limit` that are no differences. */
function small(json: Json, key: string, length: number, limit: number): Uint8Array {
  return column(json, key, length, limit, 0, Uint8Array, false);
}

/** Where the rows of n nodes begin and end, from their ends. */
function starts(json: Json, key: string, n: number): Int32Array {
  const out = ints(n + 1);
  out.set(column(json, key, n, 2 ** 31, 0), 1);
  for (let i = 0; i < n; i++) if (out[i]! > out[i + 1]!) fail(key);
  return out;
}

// ---- States -------------------------------------------------------------------------------------------------

/** Rows [state before, state now, which of the slots in the state before]. */
function newStates(json: Json, before: Uint8Array): Uint8Array {
  const out = before.slice();
  for (const row of list(json, "slotState")) {
    const [was, now, which] = Array.isArray(row) ? row : [];
    if (!(was >= 0 && now >= 0 && now <= SLOT.unknown)) fail("slotState");
    let slot = 0;
    const pass = (count: number, write: boolean) => {
      for (let left = count; left > 0; left--) {
        while (before[slot] !== was) if (slot++ >= out.length) fail("slotState");
        if (write) out[slot] = now;
        slot++;
      }
    };
    // As many passed over and then one, or as many more.
    for (const value of all({ slotState: which }, "slotState", false)) {
      pass(value, false);
      pass(value < 0 ? -value : 1, true);
    }
  }
  return out;
}

/** Which call freed a slot: calls, and how many freed slots in a row each; -1 for slots that are not freed. */
function freedBy(json: Json, states: Uint8Array): Int32Array {
  const calls = all(json, "freedBy");
  const counts = all(json, "freedCount");
  const out = ints(states.length).fill(-1);
  let run = -1;
  let left = 0;
  for (let slot = 0; slot < states.length; slot++) {
    if (states[slot] !== SLOT.freed) continue;
    if (left <= 0) left = counts[++run] ?? 0;
    if (left-- <= 0) fail("freedCount");
    out[slot] = calls[run] ?? -1;
  }
  return out;
}

// ---- Records ------------------------------------------------------------------------------------------------

/** Fields of rows, in their order; of objects those that are not taken over as they are. A text's name ends with $. */
const RECORDS = {
  places: "cell line source$ outerCell outerLine outerSource$ cellId$ run",
  storageOwners: "at owners$",
  leaves: "node paths$ type$ hasGrad bytes",
  owners: "node nr path$ kind$",
  boundary: "oldUid newUid path$",
  roots: "path$ node type$",
  calls: "source$ text$ did$ roots$",
  events: "label$",
  findings: "kicker$ headline$ text$ node$ carriers$ path$",
  fixes: "id$ text$ note$ edit$",
  status: "text$",
};

interface Reading {
  json: Json;
  table: string[];
  /** Number of nodes. */
  n: number;
}

const isObject = (value: unknown) => typeof value === "object" && value !== null;

function records<T>(at: Reading, key: keyof typeof RECORDS, values = list(at.json, key)): T[] {
  const fields = RECORDS[key].split(" ");
  return values.map((value) => {
    if (!isObject(value)) fail(key);
    const record: Json = Array.isArray(value) ? {} : { ...value };
    // An object would be taken for attributes where it is drawn: see `h`.
    if (Object.entries(value).some(([name, part]) => name !== "fixes" && [part].flat(2).some(isObject))) fail(key);
    fields.forEach((field, i) => {
      const name = field.replace("$", "");
      const found = Array.isArray(value) ? value[i] : record[name];
      if (field === "node" && !(found >= -1 && found < at.n)) fail(key);
      record[name] = name === field ? found : texts(at.table, found);
    });
    return record as T;
  });
}

/** What may change while the graph's structure stays: in a full message and in a delta alike. */
function story(at: Reading) {
  const { json, table } = at;
  const findings = records<Finding>(at, "findings");
  for (const finding of findings) finding.fixes = records<Fix>(at, "fixes", list(finding as unknown as Json, "fixes"));
  return {
    serial: json.serial as number,
    names: table,
    leaves: new Map(records<Leaf>(at, "leaves").map((leaf) => [leaf.node, leaf])),
    calls: records<Call>(at, "calls"),
    boundary: records<Graph["boundary"][number]>(at, "boundary"),
    events: records<TimelineEvent>(at, "events"),
    event: json.event as number,
    findings,
    held: json.held as number,
    status: records<Status>(at, "status", [json.status])[0]!,
  };
}

function readModules(json: Json, table: string[]): ModuleCall[] {
  const path = all(json, "modulePath");
  const className = column(json, "moduleClass", path.length, table.length, 0);
  const call = column(json, "moduleCall", path.length, 2 ** 31);
  return Array.from(path, (text, i) => ({ path: table[text] ?? "", className: table[className[i]!]!, call: call[i]! }));
}

function readStrings(json: Json, known: readonly string[] = []): string[] {
  const table = list(json, "strings");
  for (const text of table) if (typeof text !== "string") fail("strings");
  return [...known, ...(table as string[])];
}

/** uid -> index, by hashing into typed arrays when it is first asked for: a `Map` costs as much as all the rest. */
function indexer(uids: Float64Array): Graph["indexOf"] {
  let table: Int32Array | undefined;
  /** Where a uid stands in the table, or could. */
  const place = (uid: number | null, slots: Int32Array) => {
    const last = slots.length - 1;
    let at = (Math.imul(uid ?? 0, 0x9e3779b1) >>> 7) & last;
    while (slots[at] && uids[slots[at]! - 1] !== uid) at = (at + 1) & last;
    return at;
  };
  return (uid) => {
    if (!table) {
      let size = 2;
      while (size < 2 * uids.length) size *= 2;
      table = ints(size);
      for (let i = 0; i < uids.length; i++) table[place(uids[i]!, table)] = i + 1;
    }
    return table[place(uid, table)]! - 1;
  };
}

/** A full message. */
export function decode(message: string | Json): Graph {
  return runSlices(decodeSlices(message));
}

/** The same in slices: no column takes long. */
export function* decodeSlices(message: string | Json): Slices<Graph> {
  const json = parse(message);
  yield;
  const table = readStrings(json);
  const text = table.length;
  const n = json.n;
  if (typeof n !== "number" || !Number.isInteger(n) || n < 0) fail("n");
  const uid = floats(json, "uid", n);
  yield;
  const name = column(json, "name", n, text, 0);
  yield;
  const seq = floats(json, "seq", n);
  yield;
  const kind = small(json, "kind", n, 10);
  const ghost = json.ghost ? small(json, "ghost", n, 2) : bytes(n);
  yield;
  const at = { json, table, n };
  const places = records<CodeLine>(at, "places");
  const place = column(json, "place", n, places.length);
  yield;
  const iteration = column(json, "iteration", n, 2 ** 31);
  yield;
  const modules = readModules(json, table);
  const module = column(json, "module", n, modules.length);
  yield;
  const edgeStart = starts(json, "edgeEnd", n);
  yield;
  const edges = edgeStart[n]!;
  const edgeTo = column(json, "edgeTo", edges, n, 0);
  yield;
  const slotStart = starts(json, "slotEnd", n);
  yield;
  const slots = slotStart[n]!;
  const slotName = column(json, "slotName", slots, text);
  yield;
  const slotState = small(json, "slotState", slots, SLOT.unknown + 1);
  const slotFreedBy = freedBy(json, slotState);
  yield;
  const slotType = column(json, "slotType", slots, text);
  yield;
  const slotBytes = floats(json, "slotBytes", slots);
  yield;
  const storageBytes = all(json, "storageBytes");
  const slotStorage = column(json, "slotStorage", slots, storageBytes.length);
  yield;
  const shared = records<{ at: number; owners: string[] }>(at, "storageOwners");
  return {
    ...{ n, uid, indexOf: indexer(uid), name, seq, kind, ghost, place, places, iteration, module, modules },
    ...{ edgeStart, edgeTo, slotStart, slotName, slotState, slotType, slotBytes, slotStorage, slotFreedBy },
    storageBytes,
    storageOwners: new Map(shared.map(({ at, owners }) => [at, owners])),
    owners: records<Owner>(at, "owners"),
    roots: records<Root>(at, "roots"),
    notes: texts(table, json.notes) as string[],
    ...story(at),
  };
}

/** The graph that a delta makes of `base`, the graph of the full message it was made against. `base` stays as it was. */
export function applyDelta(base: Graph, message: string | Json): Graph {
  const json = parse(message);
  if (json.base !== base.serial) fail("base");
  const slotState = newStates(json, base.slotState);
  return {
    ...base,
    ...story({ json, table: readStrings(json, base.names), n: base.n }),
    slotState,
    slotFreedBy: "freedBy" in json ? freedBy(json, slotState) : base.slotFreedBy,
  };
}
