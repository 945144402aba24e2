/** The text twin: the same graph as a real table, for screen readers and for copying. */

import { attr, h, redraw, row, table } from "../page/dom.ts";
import { type Graph, placeOf } from "../picture/model.ts";
import { bytes, callNumber, join, nameOf, placeText, STATE_WORDS, slotsOf } from "../state/say.ts";
import type { Context, Part } from "../state/state.ts";

const MOST = 2000;
const TITLES = ["node", "name", "made by", "saved tensors", "freed by", "hands gradients to"];

/** The cells of one row a node, from the losses towards the leaves. */
function rows(graph: Graph, most: number): string[][] {
  const names = new Map<number, string[]>();
  for (const { node, path } of graph.owners) names.set(node, [...(names.get(node) ?? []), path]);
  const out: string[][] = [];
  for (let i = 0; i < graph.n && i < most; i++) {
    const slots = slotsOf(graph, i);
    const saved = slots.map(({ name, type, bytes: size, state }) =>
      join(" ", name, type, size && bytes(size), STATE_WORDS[state]),
    );
    const freedBy = slots.flatMap(({ by }) => (by < 0 ? [] : `call ${callNumber(by)}`));
    const next = [...graph.edgeTo.subarray(graph.edgeStart[i], graph.edgeStart[i + 1])];
    const leaf = graph.leaves.get(i);
    out.push([
      nameOf(graph, i) + (graph.ghost[i] ? " (gone)" : ""),
      (leaf?.paths ?? names.get(i) ?? []).join(", "),
      leaf ? "" : placeText(placeOf(graph, i)),
      saved.join("; ") || (leaf ? (leaf.hasGrad ? ".grad is there" : ".grad is None") : "none needed"),
      [...new Set(freedBy)].join(", "),
      next.map((to) => nameOf(graph, to)).join(", "),
    ]);
  }
  return out;
}

/** The table as text, columns separated by tabs. */
export function tableText(graph: Graph): string {
  return [TITLES, ...rows(graph, graph.n)].map((cells) => cells.join("\t")).join("\n");
}

export function tablePart({ state }: Context): Part {
  const el = h("div.gw-table", { tabindex: 0, role: "region", "aria-label": "The graph as a table", hidden: true });
  let graph: Graph | null = null;
  const paint = redraw(el, () => {
    if (!graph || !state.table) return null;
    const all = rows(graph, MOST).map(([node, names, ...rest]) => row(node, h("code", names), ...rest));
    const left = graph.n - all.length;
    return [
      table("", TITLES, all, h("caption", `Autograd graph, ${graph.n} nodes`)),
      left > 0 && h("p", `${left} more nodes are left out; "Copy as text" has all.`),
    ];
  });
  return {
    el,
    update(now) {
      graph = now;
      attr(el, "hidden", !state.table);
      paint(state.table, graph?.serial, state.pastEvent);
    },
  };
}
