/** The selected node: what it is, who made it, what it saved, and what keeps it alive. */

import { attr, button, type Child, h, list, redraw, row, table } from "../page/dom.ts";
import { type Graph, orderOfCall, placeOf, type Root } from "../picture/model.ts";
import * as SLOT from "../picture/slot.ts";
import type { Kept } from "../state/replies.ts";
import { bytes, count, join, nameOf, opOf, placeText, STATE_WORDS, slotAt, slotsOf } from "../state/say.ts";
import type { Context, KeptOrNot, Part } from "../state/state.ts";
import { callGlyph, rootDot, slotGlyph, tagGlyph } from "./glyphs.ts";

const mute = (...words: Child[]) => h("p.gw-mute", words);
const kicker = (words: string) => h("div.gw-kick", words, " · esc to close");
const shortType = (type: string) => type.replace("float", "f");

function slotRows(graph: Graph, node: number, kept: Kept | undefined): Child[] {
  return slotsOf(graph, node).map(({ slot, name, type, bytes: size, state, by }, k) => {
    const word = STATE_WORDS[state]!;
    const stored = graph.storageOwners.get(graph.slotStorage[slot]!);
    const owners = (state !== SLOT.unsaved && (kept?.storages.find((each) => each.slot === k)?.owners ?? stored)) || [];
    const said = [slotGlyph(state), ` ${word} `, by >= 0 && callGlyph(by, orderOfCall(graph, by))];
    const line = row(name, type && h("code", shortType(type)), size > 0 && bytes(size), said);
    const others = h("code", owners.slice(0, 4).join(", "));
    return [line, owners.length > 0 && h("tr.gw-sub", h("td", { colspan: 4 }, "memory also held by ", others))];
  });
}

function keptRows(kept: KeptOrNot | undefined): Child {
  if (!kept || kept === "asked") return mute("asking the kernel …");
  if (kept === "unknown") return mute("Unknown: no kernel answered.");
  if (!kept.keptBy.length) return mute("No name was found that keeps it.");
  return kept.keptBy
    .slice(0, 6)
    .map(({ path, kind, releases }) =>
      h(
        "div.gw-box",
        tagGlyph(path),
        kind !== "variable" && h("span.gw-mute", ` ${kind}`),
        h("div.gw-mute", h("code", `del ${path}`), ` ${releases}`),
      ),
    );
}

/** The whole section of one node. */
function nodeSection(graph: Graph, node: number, roots: Root[], kept: KeptOrNot | "past" | undefined): Child[] {
  const place = placeOf(graph, node);
  const module = graph.modules[graph.module[node]!];
  const leaf = graph.leaves.get(node);
  const saved = slotRows(graph, node, typeof kept === "object" ? kept : undefined);
  const source = place?.source.trim();
  const facts: [string, Child][] = leaf
    ? [
        ["leaf", [h("code", leaf.paths.join(", ") || "unnamed"), leaf.type && ` ${leaf.type}`]],
        [".grad", leaf.hasGrad ? "is there" : "None"],
      ]
    : [["made by", [placeText(place), module && ` · module ${module.path} (${module.className})`]]];
  const names = roots.map(({ order, path }, i) => [i > 0 && " · ", rootDot(order), " ", h("code", path)]);
  facts.push(["reached by", names.length ? names : "no live root"]);
  return [
    kicker(graph.ghost[node] ? "Selected node · gone" : "Selected node"),
    h("h3", h("code", nameOf(graph, node))),
    list(facts),
    source && h("pre.gw-src", source),
    saved.length > 0
      ? table("", ["saved", "shape, dtype", "bytes", "state"], saved)
      : !leaf && mute("This op saves nothing: backward can run over it any number of times."),
    !graph.ghost[node] && kept !== "past" && [h("h4", "Kept alive by"), keptRows(kept)],
  ];
}

/** A group: its members by name, what they hold. */
function groupSection(graph: Graph, title: string, nodes: ArrayLike<number>): Child[] {
  const parts = new Map<string, { of: number; held: number; freed: number; size: number }>();
  for (const node of Array.from(nodes)) {
    const name = opOf(graph, node);
    const part = parts.get(name) ?? { of: 0, held: 0, freed: 0, size: 0 };
    parts.set(name, part);
    part.of++;
    for (const { state, bytes: size } of slotsOf(graph, node)) {
      if (state === SLOT.freed) part.freed++;
      if (state !== SLOT.held) continue;
      part.held++;
      part.size += size;
    }
  }
  const rows = [...parts]
    .sort(([, a], [, b]) => b.size - a.size || b.of - a.of)
    .slice(0, 8)
    .map(([name, { of, held, freed, size }]) => row(name, `${of}`, held ? bytes(size) : "0", `${freed}`));
  return [
    kicker("Selected group"),
    h("h3", title),
    mute(count(nodes.length, "node")),
    table("", ["op", "nodes", "held", "freed"], rows),
  ];
}

/** The biggest saved tensors that are held. */
function biggest(graph: Graph): Child[] {
  const found: number[] = [];
  for (let slot = 0; slot < graph.slotState.length; slot++) {
    const size = graph.slotBytes[slot]!;
    if (graph.slotState[slot] !== SLOT.held || !size || size <= (graph.slotBytes[found[3]!] ?? 0)) continue;
    found.push(slot);
    found.sort((a, b) => graph.slotBytes[b]! - graph.slotBytes[a]!).splice(4);
  }
  return found.map((slot) => {
    const { name, type, bytes: size } = slotAt(graph, slot);
    const node = graph.slotStart.findIndex((start) => start > slot) - 1;
    return row(name, join(" ", opOf(graph, node), shortType(type)), bytes(size));
  });
}

/** Nothing is selected and nothing is wrong: counts, and the biggest saved tensors. */
function summarySection(graph: Graph): Child[] {
  const counts = [0, 0, 0, 0, 0, 0];
  for (const state of graph.slotState) counts[state]! += 1;
  const states = counts.map(
    (n, state) =>
      n && state !== SLOT.unsaved && h("li", slotGlyph(state), ` ${n.toLocaleString("en")} ${STATE_WORDS[state]}`),
  );
  const big = biggest(graph);
  return [
    h("div.gw-kick", "Whole graph"),
    h("h3", `${bytes(graph.held)} held by saved tensors`),
    h("ul.gw-row", states),
    big.length > 0 && [h("h4", "Largest saved tensors"), table("", [], big)],
    graph.notes.length > 0 && [
      h("h4", "What was not looked at"),
      h(
        "ul",
        graph.notes.map((note) => h("li", note)),
      ),
    ],
    mute("Click a node, or walk with the arrow keys. ? shows all keys."),
  ];
}

/** What the inspector is about, found by the view. `inside`: the open group around it. */
export interface Subject {
  key: string;
  /** The picture in which it was found: a newer one may not be drawn yet. */
  graph: Graph;
  inside?: { key: string; title: string } | undefined;
  node?: number | undefined;
  /** The roots that reach the node. */
  roots?: Root[];
  group?: { title: string; nodes: ArrayLike<number> };
}

export function inspectorPart({ act, state }: Context, subject: () => Subject | null): Part {
  const el = h("section.gw-inspector", { role: "region" });
  const draw = (graph: Graph | null, about: Subject | null): Child => {
    if (!graph) return null;
    if (!about) return !graph.findings.length && graph.n > 0 && summarySection(graph);
    const { node, roots, group, inside, key } = about;
    const toggle = (key: string, words: string) => button("gw-btn", () => act.open(key), words);
    return [
      group
        ? [groupSection(graph, group.title, group.nodes), inside?.key !== key && h("p", toggle(key, "Open this group"))]
        : nodeSection(graph, node!, roots!, state.past ? "past" : state.kept.get(graph.uid[node!]!)),
      inside && toggle(inside.key, `Close ${inside.title}`),
    ];
  };
  let graph: Graph | null = null;
  let about: Subject | null = null;
  const paint = redraw(el, () => draw(graph, about));
  return {
    el,
    update(now) {
      about = subject();
      graph = about?.graph ?? now;
      const { node } = about ?? {};
      const uid = node === undefined ? null : graph!.uid[node]!;
      if (uid !== null && !graph!.ghost[node!] && !state.past) void act.inspect(uid);
      attr(el, "aria-label", about ? "Selected node" : "Summary");
      attr(el, "hidden", state.preview !== null);
      const kept = uid !== null && state.kept.get(uid);
      paint(graph?.serial, state.pastEvent, about?.key, about?.inside?.key, kept, graph?.findings.length);
    },
  };
}
