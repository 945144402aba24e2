/**
 * Decodes what the kernel sends: one JSON text with the graph in columns and a table of strings.
 *
 * Nothing in a message is trusted: every index is checked here, so that no other code has to.
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

/** Error for a message that cannot be drawn; its text says what to do. */
export class WireError extends Error {
  override name = "WireError";
}

type Json = Record<string, unknown>;

/** Throws a `WireError`; `what` names the wrong part of the message. */
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

/** The strings at these indices into the table; null stays null. */
function texts(table: readonly string[], index: unknown): unknown {
  if (Array.isArray(index)) return index.map((each) => texts(table, each));
  if (index === null) return null;
  const found = typeof index === "number" ? table[index] : undefined;
  return found ?? fail("strings");
}

// ---- Columns ------------------------------------------------------------------------------------------------

/** Value of each base 64 digit (A-Z a-z 0-9 + /) by character code; 64 for all other characters. */
const DIGIT = bytes(65536).fill(64);
for (let i = 0; i < 64; i++) DIGIT[i < 26 ? i + 65 : i < 52 ? i + 71 : i < 62 ? i - 4 : i < 63 ? 43 : 47] = i;

/** No number of a message is this large. */
const FAR = 2 ** 53;

/**
 * Decodes `length` numbers from text. Each character holds five bits, the lowest first; the bit of value 32 says that
 * more characters follow; the lowest bit of a number is its sign. `sum`: the text holds the difference between each
 * number and the one before. Fails unless all numbers are at least `least` and below `limit`.
 *
 * Most of the time to read a graph is spent here: so there is one pass and no objects. Most numbers are one character.
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
  // Checked before an array of this length is allocated.
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

/** A column of any numbers. */
function floats(json: Json, key: string, length: number, sum = true): Float64Array {
  return column(json, key, length, FAR, -FAR, Float64Array, sum);
}

/** A column of unknown length. It counts the last characters of numbers, which have a value below 32. */
function all(json: Json, key: string, sum = true): Float64Array {
  return floats(json, key, textOf(json, key).replace(/[g-z0-9+/]/g, "").length, sum);
}

/** A column of numbers from 0 to `limit - 1`, written as they are instead of as differences. */
function small(json: Json, key: string, length: number, limit: number): Uint8Array {
  return column(json, key, length, limit, 0, Uint8Array, false);
}

/** Row starts of n nodes, n + 1 numbers, decoded from the row ends. */
function starts(json: Json, key: string, n: number): Int32Array {
  const out = ints(n + 1);
  out.set(column(json, key, n, 2 ** 31, 0), 1);
  for (let i = 0; i < n; i++) if (out[i]! > out[i + 1]!) fail(key);
  return out;
}

// ---- States -------------------------------------------------------------------------------------------------

/** The states after a delta: rows [state before, state now, which of the slots that were in the state before]. */
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
    // 0 or more: skip as many slots, then change one. Negative: change as many more slots.
    for (const value of all({ slotState: which }, "slotState", false)) {
      pass(value, false);
      pass(value < 0 ? -value : 1, true);
    }
  }
  return out;
}

/** The call that freed each slot, -1 for other slots; decoded from runs: a call, and its number of freed slots. */
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

/**
 * For records sent as rows: their fields in order. For records sent as objects: the fields that are checked or looked
 * up in the table of strings; all others stay as they are. The name of a text field ends with $, or with $? if pictures
 * that were saved earlier may not have it.
 */
const RECORDS = {
  places: "cell line source$ outerCell outerLine outerSource$ cellId$ run file$ outerFile$ fn$ inner caller$",
  storageOwners: "at owners$",
  leaves: "node paths$ type$ hasGrad bytes",
  owners: "node nr path$ kind$",
  boundary: "oldUid newUid path$",
  roots: "path$ node type$",
  calls: "run file$ fn$ source$ text$ did$ roots$",
  events: "label$ where$? steps$",
  findings: "kicker$ headline$ text$ node$ tensor$? wrote$? wroteAt$? carriers$ path$",
  fixes: "id$ text$ note$ edit$ tried$?",
  status: "text$ why$?",
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
    // The code that draws a record would take an object for attributes: see `h`.
    if (Object.entries(value).some(([name, part]) => name !== "fixes" && [part].flat(2).some(isObject))) fail(key);
    fields.forEach((field, i) => {
      const name = field.replace(/\$\??/, "");
      // A picture that was saved by an earlier version lacks the fields that have come since.
      const found = (Array.isArray(value) ? value[i] : record[name]) ?? null;
      if (field === "node" && !(found >= -1 && found < at.n)) fail(key);
      const isMissing = found === null && field.endsWith("?");
      record[name] = name === field ? found : isMissing ? "" : texts(at.table, found);
    });
    return record as T;
  });
}

/** No loop is sent with more passes together than this. */
const MOST_EVENTS = 200_000;

/** The events, also those of further passes of a loop: of each pass only the numbers differ. */
function readEvents(at: Reading): TimelineEvent[] {
  // A picture that was saved by an earlier version has no steps.
  const rows = list(at.json, "events").map((row) => (isObject(row) ? { steps: [], order: -1, ...row } : row));
  const out: TimelineEvent[] = [];
  for (const { again, ...event } of records<TimelineEvent & { again?: unknown }>(at, "events", rows)) {
    out.push(event);
    const [size, times] = Array.isArray(again) ? again : [1, 0];
    if (!(size >= 1 && size <= out.length && times >= 0 && out.length + size * times <= MOST_EVENTS)) fail("events");
    const pass = out.slice(-size);
    const calls = pass.filter(({ call }) => call !== null).length;
    for (let i = 1; i <= times; i++)
      for (const { id, call, iteration, ...rest } of pass)
        out.push({
          ...rest,
          id: id + i * size,
          call: call === null ? null : call + i * calls,
          iteration: iteration === null ? null : iteration + i,
        });
  }
  return out;
}

/** The parts that may change while the graph's structure stays; full messages and deltas both have them. */
function story(at: Reading) {
  const { json, table } = at;
  const findings = records<Finding>(at, "findings");
  for (const finding of findings) {
    finding.fixes = records<Fix>(at, "fixes", list(finding as unknown as Json, "fixes"));
    finding.cell ??= null;
  }
  return {
    serial: json.serial as number,
    names: table,
    leaves: new Map(records<Leaf>(at, "leaves").map((leaf) => [leaf.node, leaf])),
    calls: records<Call>(at, "calls"),
    boundary: records<Graph["boundary"][number]>(at, "boundary"),
    events: readEvents(at),
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

/** uid -> index. A hash table of typed arrays, built at the first call: a `Map` costs as much as all the rest. */
function indexer(uids: Float64Array): Graph["indexOf"] {
  let table: Int32Array | undefined;
  /** Position of a uid in the table, or the empty one where it belongs. */
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

/** Decodes a full message. */
export function decode(message: string | Json): Graph {
  return runSlices(decodeSlices(message));
}

/** The same in slices, of one column each. */
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

/** The graph after a delta. `base`: the graph of the full message that the delta refers to; it is not changed. */
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
