/** Names of groups: what a person would say, from what all nodes of a group have in common. */
import { type CodeLine, placeOf } from "../model.ts";
import { isMember, lastPart, prefixesOf } from "../path.ts";
import { join, placeText, type Where } from "../words.ts";
import type { Common, Group, Line } from "./tree.ts";
import type { Box } from "./types.ts";

type Name = Pick<Box, "title" | "subtitle">;

/** `within`: the open group around it, whose name is not repeated; `nodes`: number of all nodes in the group. */
export function nameGroup(
  line: Line,
  group: Group,
  within: Group | null,
  nodes: number,
): Pick<Box, "title" | "subtitle" | "line"> {
  return { ...nameOf(line, group, within, nodes), line: lineOf(commonOf(line, group)) };
}

function lineOf({ place, sameLine, sameOuterLine }: Common): CodeLine | undefined {
  if (!place || sameLine) return place ?? undefined;
  const { outerCell: cell, outerFile: file, outerLine: line, outerSource: source } = place;
  const other = line !== place.line || file !== place.file;
  return sameOuterLine && other ? { ...place, cell, file, line, source, fn: null, inner: place.run } : undefined;
}

function nameOf(line: Line, group: Group, within: Group | null, nodes: number): Name {
  const common = commonOf(line, group);
  const { prefix, place, sameLine } = common;
  // A repeat is named after its unit, also inside a group of that name.
  const repeatRange = group.kind === "repeat" && within ? moduleRange(line, group, commonOf(line, within).prefix) : "";
  const outer = within && (group.kind !== "repeat" || repeatRange) ? commonOf(line, within) : null;
  const where = sameLine && place ? placeText(place) : lineRange(common);
  const nth = group.unit && group.parent ? `${group.unit} of ${group.parent.times}` : "";
  const about = (what = "") => join(" · ", nth, where, what);
  if (prefix >= 0 && prefix !== outer?.prefix)
    return { title: line.levels.prefixText(prefix), subtitle: about(className(line, group, prefix)) };
  /** The place, if all nodes share this property of it and the name of the group around them does not include it. */
  const shared = (what: "sameLine" | "sameOuterLine" | "sameIteration" | "sameCell") =>
    common[what] && !outer?.[what] ? place : null;
  const iteration = shared("sameIteration")?.iteration ?? null;
  const cell = shared("sameCell");
  const title =
    shared("sameLine")?.source.trim() ||
    moduleRange(line, group, outer?.prefix ?? -1) ||
    shared("sameOuterLine")?.outerSource.trim() ||
    (iteration === null ? "" : memberOf(line, group, outer?.prefix ?? -1) || `iteration ${iteration}`) ||
    iterationRange(line, group) ||
    placeText(cell && outermost(cell, null)) ||
    partsText(line, group, outer?.prefix ?? -1);
  return title
    ? { title, subtitle: about(`${nodes} nodes`) }
    : { title: opsText(line, group, nodes), subtitle: about() };
}

const MOST_PARTS = 2;

/** Parts of the first unit: modules, and lines outside modules. "" if a part is unknown or there is only one. */
function partsText(line: Line, group: Group, outer: number): string {
  const { graph, order, levels } = line;
  const end = group.kind === "repeat" ? group.a + Math.ceil((group.b - group.a) / group.times) : group.b;
  const parts = new Set<string>();
  for (let i = group.a; i < end && parts.size <= MOST_PARTS; i++) {
    const v = order[i];
    const prefixes = levels.prefixes(v);
    const below = prefixes[prefixes.indexOf(outer) + 1];
    const place = graph.places[graph.place[v]];
    const text = below === undefined ? place?.source.trim() || placeText(place) : levels.prefixText(below);
    if (!text) return "";
    parts.add(text);
  }
  if (parts.size < 2) return "";
  const named = [...parts].slice(0, MOST_PARTS).join(", ");
  return parts.size > MOST_PARTS ? `${named} …` : named;
}

/** `57 nodes: Mul…Add`. */
function opsText(line: Line, group: Group, nodes: number): string {
  const { graph, order } = line;
  const op = (position: number) => shortOp(graph.names[graph.name[order[position]]] ?? "?");
  return `${nodes} nodes: ${op(group.a)}…${op(group.b - 1)}`;
}

/** `Mul` for `MulBackward0`. */
export function shortOp(name: string): string {
  return name.replace(/Backward\d*$/, "") || name;
}

function commonOf(line: Line, group: Group): Common {
  if (group.common) return group.common;
  const { graph, order, levels } = line;
  const first = order[group.a];
  let prefixes = levels.prefixes(first);
  let depth = prefixes.length;
  const place = placeOf(graph, first) ?? null;
  const known = place !== null;
  const lineAt = (p: CodeLine | null) => p?.outerLine ?? p?.line ?? Number.NaN;
  const common: Common = {
    prefix: -1,
    place,
    sameLine: known && place.line !== null,
    sameOuterLine: known && place.outerLine !== null,
    sameIteration: known,
    sameCell: known,
    least: lineAt(place),
    most: lineAt(place),
  };
  let lastPlace = graph.place[first];
  let lastModule = graph.module[first];
  for (let i = group.a + 1; i < group.b; i++) {
    const v = order[i];
    if (graph.module[v] !== lastModule) {
      lastModule = graph.module[v];
      const other = levels.prefixes(v);
      let same = 0;
      while (same < depth && same < other.length && prefixes[same] === other[same]) same++;
      depth = same;
      if (other.length < prefixes.length) prefixes = other;
    }
    common.sameIteration &&= graph.place[v] >= 0 && graph.iteration[v] === graph.iteration[first];
    if (graph.place[v] === lastPlace) continue;
    lastPlace = graph.place[v];
    const p = graph.places[lastPlace] ?? null;
    // Without a line both become NaN and stay NaN.
    common.least = Math.min(common.least, lineAt(p));
    common.most = Math.max(common.most, lineAt(p));
    common.sameLine &&= p !== null && isSameLine(p, place);
    common.sameOuterLine &&= p !== null && isSameOuterLine(p, place);
    common.sameCell &&= p !== null && sourceOf(p) === sourceOf(place);
  }
  common.prefix = depth ? prefixes[depth - 1] : -1;
  group.common = common;
  return common;
}

/** Class of the module with exactly this path, if it made a node of the group; else "". */
export function className(line: Line, group: Group, prefix = commonOf(line, group).prefix): string {
  const { graph, order } = line;
  const path = line.levels.prefixText(prefix);
  for (let i = group.a, last = -1; i < group.b; i++) {
    const m = graph.module[order[i]];
    if (m !== last && m >= 0 && graph.modules[m].path === path) return graph.modules[m].className;
    last = m;
  }
  return "";
}

/** `h[0] … [9]` for a group that begins in one module and ends in another; else "". */
function moduleRange(line: Line, group: Group, outer: number): string {
  const [first, last] = [group.a, group.b - 1].map((at) => {
    const [list = "", member = ""] = pathsBelow(line, line.order[at], outer);
    return isMember(member) && !isMember(list) ? member : list;
  });
  if (!first || !last || first === last) return "";
  // If both are in one list, or one module, the number or name of the second is enough.
  const [around, other] = [first, last].map((path) => prefixesOf(path).at(-2) ?? "");
  return `${first} … ${around === other ? lastPart(last) : last}`;
}

/** Paths of the modules around a node that are inside `outer`, outermost first. */
function pathsBelow({ levels }: Line, v: number, outer: number): string[] {
  const prefixes = levels.prefixes(v);
  return prefixes.slice(prefixes.indexOf(outer) + 1).map(levels.prefixText);
}

/** `h[3]` for a pass of a loop over a list of modules that ran only this module; else "". */
function memberOf(line: Line, group: Group, outer: number): string {
  const { graph, order } = line;
  let found = "";
  for (let i = group.a, module = -1; i < group.b; i++) {
    if (graph.module[order[i]] === module) continue;
    module = graph.module[order[i]];
    const below = pathsBelow(line, order[i], outer);
    const member = below.find(isMember) ?? below[0];
    if (member && found && member !== found) return "";
    found ||= member;
  }
  return isMember(found) ? found : "";
}

/** `iteration 3–9` for a repeat of passes; else "". */
function iterationRange({ graph, order }: Line, { kind, a, b, times }: Group): string {
  const [first, last] = [graph.iteration[order[a]], graph.iteration[order[b - 1]]];
  const passes = last - first + 1;
  return kind === "repeat" && first >= 0 && passes > 1 && passes % times === 0 ? `iteration ${first}–${last}` : "";
}

const isSameLine = (a: CodeLine, b: CodeLine | null) => a.cell === b?.cell && a.file === b.file && a.line === b.line;

const isSameOuterLine = (a: CodeLine, b: CodeLine | null) =>
  a.outerCell === b?.outerCell && a.outerFile === b.outerFile && a.outerLine === b.outerLine;

/** The cell or file that ran. */
const sourceOf = (p: CodeLine | null) => p && (p.outerCell ?? p.outerFile ?? p.cell ?? p.file);

function outermost(place: CodeLine, line: number | null): Where {
  const own = place.outerCell === null && place.outerFile === null;
  return { cell: own ? place.cell : place.outerCell, file: own ? place.file : place.outerFile, line };
}

/** `In[2]:3-7`, if all nodes come from one cell; else "". */
function lineRange({ place, sameCell, least, most }: Common): string {
  if (!sameCell || !place || Number.isNaN(most)) return "";
  const range = least === most ? `${least}` : `${least}-${most}`;
  const where = placeText(outermost(place, null));
  return where ? `${where}:${range}` : `lines ${range}`;
}
