/** The selected node: what it is, who made it, what it saved, and what keeps it alive. */
import { attr, type Child, flat, h, memo } from "./dom.ts";
import { callGlyph, rootDot, slotGlyph, tagGlyph } from "./glyphs.ts";
import { type Graph, SLOT } from "./picture/model.ts";
import { bytes, count, placeText } from "./say.ts";
import { type Context, type Kept, type Part, shown } from "./state.ts";

const WORDS = ["held", "freed", "stale", "packed", "none needed", "unknown"];

/** Roots from which a node is reached: a walk up from each root. */
export function reachedBy(graph: Graph, node: number): number[] {
  const found: number[] = [];
  graph.roots.forEach((root, r) => {
    const seen = new Uint8Array(graph.n);
    const stack = root.node >= 0 ? [root.node] : [];
    while (stack.length) {
      const i = stack.pop()!;
      if (seen[i]) continue;
      seen[i] = 1;
      if (i === node) {
        found.push(r);
        return;
      }
      for (let e = graph.edgeStart[i]!; e < graph.edgeStart[i + 1]!; e++) stack.push(graph.edgeTo[e]!);
    }
  });
  return found;
}

function slotRows(graph: Graph, node: number, kept: Kept | null): Child[] {
  const rows: Child[] = [];
  for (let slot = graph.slotStart[node]!; slot < graph.slotStart[node + 1]!; slot++) {
    const state = graph.slotState[slot]!;
    const type = graph.slotType[slot]!;
    const by = graph.slotFreedBy[slot]!;
    const k = slot - graph.slotStart[node]!;
    const storage = graph.slotStorage[slot]!;
    const owners = kept?.storages.find((entry) => entry.slot === k)?.owners ?? graph.storages[storage]?.owners ?? [];
    const size = graph.slotBytes[slot]!;
    rows.push(
      h(
        "tr",
        { "data-slot-state": WORDS[state] },
        h("th", { scope: "row" }, h("code", {}, graph.names[graph.slotName[slot]!] ?? "?")),
        h("td", {}, type >= 0 ? h("code", {}, graph.names[type]!.replace("float", "f")) : ""),
        h("td", { class: "gw-num" }, size > 0 ? bytes(size) : ""),
        h("td", {}, slotGlyph(state), ` ${WORDS[state]} `, by >= 0 && callGlyph(by, orderOfCall(graph, by), false)),
      ),
    );
    if (owners.length && state !== SLOT.unsaved) {
      rows.push(
        h(
          "tr",
          { class: "gw-sub" },
          h("td", { colspan: 4 }, "memory also held by ", h("code", {}, owners.slice(0, 4).join(", "))),
        ),
      );
    }
  }
  return rows;
}

/** The hue of a call is that of its first root, where that root still has one. */
export function orderOfCall(graph: Graph, n: number): number {
  const call = graph.calls.find((c) => c.n === n);
  const uid = call?.rootUids[0];
  const root =
    graph.roots.find((r) => r.node >= 0 && graph.uid[r.node] === uid) ??
    graph.roots.find((r) => r.path === call?.roots[0]);
  return root?.order ?? n;
}

function keptRows(kept: Kept | "asked" | "unknown" | undefined): Child[] {
  if (kept === undefined || kept === "asked") return [h("p", { class: "gw-mute" }, "asking the kernel …")];
  if (kept === "unknown") return [h("p", { class: "gw-mute" }, "Unknown: no kernel answered.")];
  if (!kept.keptBy.length) return [h("p", { class: "gw-mute" }, "No name was found that keeps it.")];
  return kept.keptBy
    .slice(0, 6)
    .map((owner) =>
      h(
        "div",
        { class: "gw-own" },
        tagGlyph(owner.path, ""),
        owner.kind !== "variable" && h("span", { class: "gw-mute" }, ` ${owner.kind}`),
        h(
          "i",
          {},
          h("code", {}, `del ${owner.path}`),
          owner.nodes > 0
            ? ` releases ${count(owner.nodes, "node")}, ${bytes(owner.bytes)}`
            : " alone releases nothing",
        ),
      ),
    );
}

function leafRows(graph: Graph, node: number): Child[] {
  const leaf = graph.leaves.get(node);
  if (!leaf) return [];
  return [
    h("dt", {}, "leaf"),
    h("dd", {}, h("code", {}, leaf.paths.join(", ") || "unnamed"), leaf.type && ` ${leaf.type}`),
    h("dt", {}, ".grad"),
    h("dd", {}, leaf.hasGrad ? "is there" : "None"),
  ];
}

/** The whole section of one node. */
export function nodeSection(
  graph: Graph,
  node: number,
  kept: Kept | "asked" | "unknown" | "past" | undefined,
): Child[] {
  const place = graph.place[node]! >= 0 ? graph.places[graph.place[node]!]! : null;
  const module = graph.module[node]! >= 0 ? graph.modules[graph.module[node]!]! : null;
  const roots = reachedBy(graph, node);
  const saved = slotRows(graph, node, typeof kept === "object" ? kept : null);
  const source = place?.source.trim();
  return [
    h(
      "div",
      { class: "gw-kick" },
      graph.ghost[node] ? "Selected node · gone" : "Selected node",
      h("span", { class: "gw-esc" }, "esc to close"),
    ),
    h("h3", {}, h("code", {}, graph.names[graph.name[node]!]!)),
    h(
      "dl",
      { class: "gw-kv" },
      h("dt", {}, "made by"),
      h("dd", {}, placeText(place), module && ` · module ${module.path} (${module.className})`),
      leafRows(graph, node),
      h("dt", {}, "reached by"),
      h(
        "dd",
        {},
        roots.length
          ? roots.map((r, i) => [
              i > 0 && " · ",
              rootDot(graph.roots[r]!.order),
              " ",
              h("code", {}, graph.roots[r]!.path),
            ])
          : "no live root",
      ),
    ),
    source && h("pre", { class: "gw-src" }, source),
    saved.length > 0
      ? h(
          "table",
          { class: "gw-saved" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["saved", "shape, dtype", "bytes", "state"].map((t) => h("th", { scope: "col" }, t)),
            ),
          ),
          h("tbody", {}, saved),
        )
      : !graph.leaves.has(node) &&
        h("p", { class: "gw-mute" }, "This op saves nothing: backward can run over it any number of times."),
    !graph.ghost[node] && kept !== "past" && [h("h4", {}, "Kept alive by"), keptRows(kept)],
  ];
}

/** A group: its members by name, what they hold. */
export function groupSection(
  graph: Graph,
  title: string,
  nodes: ArrayLike<number>,
  open: (() => void) | null,
): Child[] {
  const parts = new Map<string, { nodes: number; held: number; freed: number; bytes: number }>();
  for (let k = 0; k < nodes.length; k++) {
    const i = nodes[k]!;
    const name = graph.names[graph.name[i]!]!;
    const part = parts.get(name) ?? { nodes: 0, held: 0, freed: 0, bytes: 0 };
    part.nodes += 1;
    for (let slot = graph.slotStart[i]!; slot < graph.slotStart[i + 1]!; slot++) {
      if (graph.slotState[slot] === SLOT.freed) part.freed += 1;
      else if (graph.slotState[slot] === SLOT.held) {
        part.held += 1;
        part.bytes += graph.slotBytes[slot]!;
      }
    }
    parts.set(name, part);
  }
  const rows = [...parts].sort((a, b) => b[1].bytes - a[1].bytes || b[1].nodes - a[1].nodes).slice(0, 8);
  return [
    h("div", { class: "gw-kick" }, "Selected group", h("span", { class: "gw-esc" }, "esc to close")),
    h("h3", {}, title),
    h("p", { class: "gw-mute" }, count(nodes.length, "node")),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["op", "nodes", "held", "freed"].map((t) => h("th", { scope: "col" }, t)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([name, part]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("code", {}, name.replace(/Backward\d*$/, ""))),
            h("td", { class: "gw-num" }, String(part.nodes)),
            h("td", { class: "gw-num" }, part.held ? bytes(part.bytes) : "0"),
            h("td", { class: "gw-num" }, String(part.freed)),
          ),
        ),
      ),
    ),
    open && h("p", {}, h("button", { type: "button", class: "gw-btn", onclick: open }, "Open this group")),
  ];
}

/** Nothing is selected and nothing is wrong: counts, and the biggest saved tensors. */
export function summarySection(graph: Graph): Child[] {
  const counts = [0, 0, 0, 0, 0, 0];
  const biggest: number[] = [];
  for (let slot = 0; slot < graph.slotState.length; slot++) {
    counts[graph.slotState[slot]!]! += 1;
    if (graph.slotState[slot] !== SLOT.held || !graph.slotBytes[slot]) continue;
    const at = biggest.findIndex((other) => graph.slotBytes[slot]! > graph.slotBytes[other]!);
    if (at >= 0) biggest.splice(at, 0, slot);
    else if (biggest.length < 4) biggest.push(slot);
    if (biggest.length > 4) biggest.pop();
  }
  const nodeOf = (slot: number) => {
    let low = 0;
    let high = graph.n;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (graph.slotStart[middle]! <= slot) low = middle;
      else high = middle;
    }
    return graph.names[graph.name[low]!]!;
  };
  const states = counts.flatMap((n, state) =>
    n > 0 && state !== SLOT.unsaved
      ? [h("li", {}, slotGlyph(state), ` ${n.toLocaleString("en")} ${WORDS[state]}`)]
      : [],
  );
  return [
    h("div", { class: "gw-kick" }, "Whole graph"),
    h("h3", {}, `${bytes(graph.held)} held by saved tensors`),
    states.length > 0 && h("ul", { class: "gw-states" }, states),
    biggest.length > 0 && [
      h("h4", {}, "Largest saved tensors"),
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          biggest.map((slot) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, h("code", {}, graph.names[graph.slotName[slot]!]!)),
              h(
                "td",
                {},
                nodeOf(slot).replace(/Backward\d*$/, ""),
                graph.slotType[slot]! >= 0 && ` ${graph.names[graph.slotType[slot]!]!.replace("float", "f")}`,
              ),
              h("td", { class: "gw-num" }, bytes(graph.slotBytes[slot]!)),
            ),
          ),
        ),
      ),
    ],
    graph.notes.length > 0 && [
      h("h4", {}, "What was not looked at"),
      h(
        "ul",
        {},
        graph.notes.map((note) => h("li", {}, note)),
      ),
    ],
    h("p", { class: "gw-mute" }, "Point at a node and click it, or walk with the arrow keys. ? shows all keys."),
  ];
}

/** What the inspector is about, found by the view. `inside`: the open group around it. */
export interface Subject {
  key: string;
  inside: { key: string; title: string } | null;
  node?: number;
  group?: { title: string; nodes: ArrayLike<number> };
}

function sections(context: Context, graph: Graph, about: Subject | null): Child[] {
  if (!about) return graph.findings.length || graph.n === 0 ? [] : summarySection(graph);
  const { node, group, inside, key } = about;
  const { act, state } = context;
  const body = group
    ? groupSection(graph, group.title, group.nodes, inside?.key === key ? null : () => act.open(key))
    : nodeSection(graph, node!, state.past ? "past" : state.kept.get(graph.uid[node!]!));
  const close = () => act.open(inside!.key);
  return [body, inside && h("button", { type: "button", class: "gw-btn", onclick: close }, `Close ${inside.title}`)];
}

export function inspectorPart(context: Context, subject: () => Subject | null): Part {
  const el = h("section", { class: "gw-inspector", role: "region" });
  const { state } = context;
  const paint = memo(() => {
    const graph = shown(state);
    const about = subject();
    attr(el, "aria-label", about ? "Selected node" : "Summary");
    el.replaceChildren(...flat(graph ? sections(context, graph, about) : []));
  });
  return {
    el,
    update() {
      const graph = shown(state);
      const about = subject();
      attr(el, "hidden", state.preview !== null);
      const kept = about?.node === undefined ? null : state.kept.get(graph!.uid[about.node]!);
      paint(
        JSON.stringify([graph?.serial, state.pastEvent, about?.key, about?.inside?.key, kept, graph?.findings.length]),
      );
    },
  };
}
