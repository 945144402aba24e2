/** The text twin: the same graph as a real table, for screen readers and for copying. */
import { attr, flat, h, memo } from "./dom.ts";
import { type Graph, SLOT_WORDS } from "./picture/model.ts";
import { bytes, callNumber, placeText } from "./say.ts";
import { type Context, type Part, shown } from "./state.ts";

const MOST = 2000;
const TITLES = ["node", "name", "made by", "saved tensors", "freed by", "hands gradients to"];

export interface Row {
  uid: number;
  node: string;
  names: string;
  place: string;
  saved: string;
  freedBy: string;
  next: string;
}

/** One row a node, from the losses towards the leaves. */
export function rows(graph: Graph, most = MOST): Row[] {
  const names = new Map<number, string[]>();
  for (const owner of graph.owners) names.set(owner.node, [...(names.get(owner.node) ?? []), owner.path]);
  const out: Row[] = [];
  for (let i = 0; i < graph.n && out.length < most; i++) {
    const saved: string[] = [];
    const freed = new Set<number>();
    for (let slot = graph.slotStart[i]!; slot < graph.slotStart[i + 1]!; slot++) {
      const type = graph.slotType[slot]!;
      const size = graph.slotBytes[slot]!;
      const word = SLOT_WORDS[graph.slotState[slot]!]!;
      saved.push(
        [graph.names[graph.slotName[slot]!], type >= 0 ? graph.names[type] : "", size ? bytes(size) : "", word]
          .filter(Boolean)
          .join(" "),
      );
      if (graph.slotFreedBy[slot]! >= 0) freed.add(graph.slotFreedBy[slot]!);
    }
    const next: string[] = [];
    for (let e = graph.edgeStart[i]!; e < graph.edgeStart[i + 1]!; e++)
      next.push(graph.names[graph.name[graph.edgeTo[e]!]!]!);
    const leaf = graph.leaves.get(i);
    out.push({
      uid: graph.uid[i]!,
      node: `${graph.names[graph.name[i]!]}${graph.ghost[i] ? " (gone)" : ""}`,
      names: (leaf?.paths ?? names.get(i) ?? []).join(", "),
      place: leaf ? "" : placeText(graph.place[i]! >= 0 ? graph.places[graph.place[i]!]! : null),
      saved: saved.join("; ") || (leaf ? (leaf.hasGrad ? ".grad is there" : ".grad is None") : "none needed"),
      freedBy: [...freed].map((n) => `call ${callNumber(n)}`).join(", "),
      next: next.join(", "),
    });
  }
  return out;
}

/** The table as text, columns separated by tabs. */
export function tableText(graph: Graph): string {
  const lines = rows(graph, Number.POSITIVE_INFINITY).map((r) =>
    [r.node, r.names, r.place, r.saved, r.freedBy, r.next].join("\t"),
  );
  return [TITLES.join("\t"), ...lines].join("\n");
}

export function tablePart(context: Context): Part {
  const el = h("div", {
    class: "gw-table",
    tabindex: 0,
    role: "region",
    "aria-label": "The graph as a table",
    hidden: true,
  });
  const paint = memo(() => {
    const graph = shown(context.state);
    if (!graph || !context.state.table) return el.replaceChildren();
    const all = rows(graph);
    const body = all.map((r) =>
      h(
        "tr",
        { "data-uid": r.uid },
        h("th", { scope: "row" }, h("code", {}, r.node)),
        h("td", {}, h("code", {}, r.names)),
        [r.place, r.saved, r.freedBy, r.next].map((t) => h("td", {}, t)),
      ),
    );
    const head = h(
      "tr",
      {},
      TITLES.map((title) => h("th", { scope: "col" }, title)),
    );
    const more =
      graph.n > all.length && h("p", {}, `${graph.n - all.length} more nodes are left out; "Copy as text" has all.`);
    el.replaceChildren(
      ...flat([
        h(
          "table",
          {},
          h("caption", {}, `Autograd graph, ${graph.n} nodes`),
          h("thead", {}, head),
          h("tbody", {}, body),
        ),
        more,
      ]),
    );
  });
  return {
    el,
    update() {
      attr(el, "hidden", !context.state.table);
      const graph = shown(context.state);
      paint(context.state.table ? JSON.stringify([graph?.serial, context.state.pastEvent]) : "");
    },
  };
}
