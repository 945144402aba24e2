/** The same graph as a real table, for screen readers and for copying. */

import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { type Graph, nodeCount, placeOf } from "../picture/model.ts";
import { bytes, callNumber, count, join, nameOf, placeText, STATE_WORDS, slotsOf } from "../state/say.ts";
import { type PanelProps, Row, Table } from "./parts.tsx";

const MOST = 2000;
const TITLES = ["id", "node", "name", "made by", "saved tensors", "freed by", "hands gradients to", "kept by"];
/** Names in one cell. */
const MOST_NAMES = 3;
/** Names times nodes: with more, it is not looked up who keeps a node. */
const MOST_STEPS = 2_000_000;

/** The text of a leaf in the column of saved tensors. */
function gradText(leaf: { hasGrad: boolean }): string {
  return leaf.hasGrad ? ".grad is there" : ".grad is None";
}

/** The names that keep each node, in the order of the owners; null: there are too many to look them up. */
function keepersOf(graph: Graph): string[][] | null {
  const { n, owners, edgeStart, edgeTo } = graph;
  if (owners.length * n > MOST_STEPS) return null;
  const keepers: string[][] = Array.from({ length: n }, () => []);
  for (const { node, path } of owners) {
    const seen = new Set([node]);
    // A set hands out what is added while it is read.
    for (const at of seen) {
      keepers[at]!.push(path);
      for (let edge = edgeStart[at]!; edge < edgeStart[at + 1]!; edge++) seen.add(edgeTo[edge]!);
    }
  }
  return keepers;
}

function namesText(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The cells of all rows, one row per node, from the losses towards the leaves. */
function rows(graph: Graph, most: number): string[][] {
  const names = new Map<number, string[]>();
  for (const { node, path } of graph.owners) names.set(node, [...(names.get(node) ?? []), path]);
  const keepers = keepersOf(graph);
  const keptBy = (i: number) => {
    if (graph.ghost[i]) return "nothing";
    return keepers ? namesText([...new Set(keepers[i])]) || "no name was found" : "not looked up";
  };
  const out: string[][] = [];
  for (let i = 0; i < graph.n && i < most; i++) {
    const slots = slotsOf(graph, i);
    const saved = slots.map(({ name, type, bytes: size, state }) =>
      join(" ", name, type, size && bytes(size), STATE_WORDS[state]),
    );
    const freedBy = slots.filter(({ by }) => by >= 0).map(({ by }) => `call ${callNumber(by)}`);
    const next = [...graph.edgeTo.subarray(graph.edgeStart[i], graph.edgeStart[i + 1])];
    const leaf = graph.leaves.get(i);
    out.push([
      `#${graph.uid[i]}`,
      nameOf(graph, i) + (graph.ghost[i] ? " (gone)" : ""),
      (leaf?.paths ?? names.get(i) ?? []).join(", "),
      leaf ? "" : placeText(placeOf(graph, i)),
      saved.join("; ") || (leaf ? gradText(leaf) : "none needed"),
      [...new Set(freedBy)].join(", "),
      next.map((to) => `${nameOf(graph, to)} #${graph.uid[to]}`).join(", "),
      keptBy(i),
    ]);
  }
  return out;
}

/** The table as text, columns separated by tabs. */
export function tableText(graph: Graph): string {
  return [TITLES, ...rows(graph, graph.n)].map((cells) => cells.join("\t")).join("\n");
}

function GraphTable({ graph }: { graph: Graph }): VNode {
  const all = rows(graph, MOST);
  const left = graph.n - all.length;
  const nodes = join(", ", count(nodeCount(graph), "node"), count(graph.leaves.size, "leaf", "leaves"));
  return (
    <>
      <Table titles={TITLES} caption={`Autograd graph: ${nodes}`}>
        {all.map(([id, node, names, ...rest]) => (
          <Row head={id} cells={[node, <code>{names}</code>, ...rest]} />
        ))}
      </Table>
      {left > 0 && <p>{left} more nodes are left out; "Copy as text" has all.</p>}
    </>
  );
}

export function TablePanel({ context: { state }, graph }: PanelProps): VNode {
  const open = state.table;
  // A table may have thousands of rows: it is rendered again only for another graph.
  const table = useMemo(() => (open && graph ? <GraphTable graph={graph} /> : null), [open, graph]);
  return (
    <section class="gw-table" tabindex={0} aria-label="The graph as a table" hidden={!open}>
      {table}
    </section>
  );
}
