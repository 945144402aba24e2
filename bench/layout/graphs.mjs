// Graphs for the layout benchmark: {"nodes": [{id, label, w, h, kind: "fn" | "leaf"}], "edges": [[node, next function], ...]}
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { gunzipSync } from "node:zlib";

/**
 * Reads a graph; `.gz` too. A leaf with several users is split into one node per use unless `hubs` is set: that is how
 * the picture draws leaves (a badge at each use), and a single node per parameter makes every layered engine slow.
 * All engines are given the same split graph.
 */
export function load(file, hubs = false) {
  const bytes = readFileSync(file);
  const raw = JSON.parse(String(file.endsWith(".gz") ? gunzipSync(bytes) : bytes));
  const { nodes, edges } = check(raw, file);
  const size = nodes.map((node) => [Number(node.w) || 40, Number(node.h) || 28]);
  const graph = { name: basename(file).replace(/\.json(\.gz)?$/, ""), size, edges };
  return hubs ? graph : splitLeaves(graph, nodes);
}

function check(raw, file) {
  if (!Array.isArray(raw?.nodes) || !Array.isArray(raw?.edges)) {
    throw new Error(`${file}: expected {"nodes": [...], "edges": [[from, to], ...]}`);
  }
  const n = raw.nodes.length;
  const indexOf = new Map(raw.nodes.map((node, i) => [node.id ?? i, i]));
  const edges = raw.edges.map(([from, to], e) => {
    const pair = [indexOf.get(from), indexOf.get(to)];
    if (pair.includes(undefined)) throw new Error(`${file}: edge ${e} names a node that is not there (${n} nodes)`);
    return pair;
  });
  return { nodes: raw.nodes, edges };
}

function splitLeaves(graph, nodes) {
  const size = graph.size.slice();
  const used = new Uint8Array(nodes.length);
  const edges = graph.edges.map(([from, to]) => {
    if (nodes[to].kind !== "leaf") return [from, to];
    if (!used[to]) {
      used[to] = 1;
      return [from, to];
    }
    size.push(graph.size[to]);
    return [from, size.length - 1];
  });
  return { ...graph, size, edges };
}
