/** The provenance of a node, level by level: cell, iteration, module path to any depth, module call, line. */
import { ints } from "../arrays.ts";
import type { CodeLine, Graph } from "../model.ts";
import { lastPart, prefixesOf } from "../path.ts";
import type { Slices } from "../slices.ts";
import * as SLOT from "../slot.ts";

export interface Levels {
  /** Level at which every node is a group of its own. */
  single: number;
  /** Neighbours on the line with equal keys stay together at `level`; -1: unknown. */
  key(level: number, node: number): number;
  /** Short text for the key at a level, a part of group keys; it stays the same when a cell runs again. */
  tag(level: number, node: number): string;
  /** A number that is equal for keys which differ only in a counter: `h[3]` and `h[4]`, iterations, calls. */
  shape(level: number, node: number): number;
  /** Module prefixes of a node's module, outermost first, and their texts. */
  prefixes(node: number): readonly number[];
  prefixText(prefix: number): string;
}

/** Number of nodes between two pauses. */
const SLICE = 4096;
const NO_PREFIXES: readonly number[] = [];

export function makeLevels(graph: Graph): Levels {
  const { places, modules, place, iteration, module } = graph;
  const cell = intern(places, (p) => `${outerSource(p)}|${p.run ?? ""}|${p.cellId ?? ""}`, unknownCell);
  const line = intern(
    places,
    (p) => `${p.file ?? p.cell ?? ""}|${p.line ?? ""}|${p.cellId ?? ""}`,
    (p) => p.line === null,
  );
  const outerLine = intern(
    places,
    (p) => `${outerSource(p)}|${p.outerLine ?? p.line ?? ""}`,
    (p) => (p.outerLine ?? p.line) === null,
  );
  const { prefixes, texts, generic } = modulePrefixes(modules.map((m) => m.path));
  let depth = 0;
  for (const list of prefixes) depth = Math.max(depth, list.length);
  const callLevel = 2 + depth;

  const key = (level: number, node: number): number => {
    const p = place[node];
    if (level === 0) return p < 0 ? -1 : cell[p];
    if (level === 1) return iteration[node];
    const m = module[node];
    if (level < callLevel) return m < 0 ? -1 : (prefixes[m][level - 2] ?? -1);
    if (level === callLevel) return m < 0 ? -1 : modules[m].call;
    if (p < 0) return -1;
    return level === callLevel + 1 ? outerLine[p] : line[p];
  };
  const tag = (level: number, node: number): string => {
    const value = key(level, node);
    if (value < 0) return "";
    const p = places[place[node]];
    if (level === 0) return `c${p.cellId || outerSource(p)}`;
    if (level === 1) return `i${value}`;
    if (level < callLevel) return lastPart(texts[value]);
    if (level === callLevel) return `k${value}`;
    return level === callLevel + 1 ? `L${p.outerLine ?? p.line}` : `l${p.line}`;
  };
  const shape = (level: number, node: number): number => {
    if (level <= 1 || level === callLevel) return level;
    const value = key(level, node);
    return level < callLevel && value >= 0 ? generic[value] : value;
  };
  return {
    single: callLevel + 3,
    key,
    tag,
    shape,
    prefixes: (node) => (module[node] < 0 ? NO_PREFIXES : prefixes[module[node]]),
    prefixText: (prefix) => texts[prefix],
  };
}

/** The cell or file that ran; "" where it is unknown. */
function outerSource(p: CodeLine): string | number {
  return p.outerCell ?? p.outerFile ?? p.cell ?? p.file ?? "";
}

function unknownCell(p: CodeLine): boolean {
  return outerSource(p) === "" && p.cellId === null;
}

/** Returns a function that numbers texts in the order of their first occurrence, from 0. */
function numbering(): (text: string) => number {
  const known = new Map<string, number>();
  return (text) => {
    const number = known.get(text) ?? known.size;
    known.set(text, number);
    return number;
  };
}

/** Numbers places by a text; -1 where `unknown` holds. */
function intern(
  places: readonly CodeLine[],
  text: (p: CodeLine) => string,
  unknown: (p: CodeLine) => boolean,
): Int32Array {
  const number = numbering();
  return Int32Array.from(places, (p) => (unknown(p) ? -1 : number(text(p))));
}

/** `h[5].attn` has the prefixes `h`, `h[5]`, `h[5].attn`. Texts that differ only in digits share a generic number. */
function modulePrefixes(paths: readonly string[]): { prefixes: number[][]; texts: string[]; generic: number[] } {
  const number = numbering();
  const genericNumber = numbering();
  const lists = new Map<string, number[]>();
  const texts: string[] = [];
  const generic: number[] = [];
  const prefixes = paths.map((path) => {
    const known = lists.get(path);
    if (known) return known;
    const list: number[] = [];
    lists.set(path, list);
    for (const text of prefixesOf(path)) {
      const id = number(text);
      texts[id] = text;
      generic[id] = genericNumber(text.replace(/\d+/g, "*"));
      list.push(id);
    }
    return list;
  });
  return { prefixes, texts, generic };
}

/** A function that hashes an interval of the line by operations and states, to find equal runs. */
export function* makeHashes(graph: Graph, order: Int32Array): Slices<(a: number, b: number) => number> {
  const { slotStart, slotState, name, ghost } = graph;
  const n = order.length;
  const h1 = ints(n + 1);
  const h2 = ints(n + 1);
  const p1 = ints(n + 1).fill(1);
  const p2 = ints(n + 1).fill(1);
  for (let i = 0; i < n; i++) {
    if (i % SLICE === 0) yield;
    const v = order[i];
    let state = ghost[v];
    for (let s = slotStart[v]; s < slotStart[v + 1]; s++) {
      if (slotState[s] === SLOT.freed) state |= 2;
      else if (slotState[s] === SLOT.stale) state |= 4;
    }
    const word = Math.imul((name[v] + 1) * 8 + state, 0x9e3779b1) ^ 0x5bd1e995;
    h1[i + 1] = Math.imul(h1[i], 0x01000193) + word;
    h2[i + 1] = Math.imul(h2[i], 0x0001ab67) + (word >>> 7) + word;
    p1[i + 1] = Math.imul(p1[i], 0x01000193);
    p2[i + 1] = Math.imul(p2[i], 0x0001ab67);
  }
  return (a, b) => {
    const x = (h1[b] - Math.imul(h1[a], p1[b - a])) | 0;
    const y = (h2[b] - Math.imul(h2[a], p2[b - a])) | 0;
    return (x >>> 0) * 0x100000 + (y >>> 12);
  };
}
