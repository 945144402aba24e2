/** Graphs for tests of folding and layout: a plain form, its conversion to the picture's `Graph`, and what is measured on drawings. */
import { type CodeLine, type Graph, KIND, type ModuleCall } from "../../src/picture/model.ts";

export interface PlainNode {
  label: string;
  kind: "fn" | "leaf";
  seq: number;
  line: string | null;
  mod: string | null;
  call?: number;
  /** Class of the module. */
  cls?: string;
  /** Freed slots of the node's one saved tensor. */
  freed?: boolean;
  cell?: number;
  iteration?: number;
}

/** Edges run from a node to its next function: from the loss towards the leaves. */
export interface PlainGraph {
  nodes: PlainNode[];
  edges: [number, number][];
}

/** As `wire.ts` would decode it. Node i has uid i + 1, nodes without users are roots, each function node saves 4 bytes. */
export function toGraph(plain: PlainGraph): Graph {
  const { nodes, edges } = plain;
  const n = nodes.length;
  const names = new Table<string>();
  const places = new Table<CodeLine>();
  const modules = new Table<ModuleCall>();
  const edgeStart = new Int32Array(n + 1);
  for (const [from] of edges) edgeStart[from + 1]++;
  for (let v = 0; v < n; v++) edgeStart[v + 1] += edgeStart[v];
  const next = edgeStart.slice(0, n);
  const edgeTo = new Int32Array(edges.length);
  const used = new Uint8Array(n);
  for (const [from, to] of edges) {
    edgeTo[next[from]++] = to;
    used[to] = 1;
  }
  const isLeaf = nodes.map((node) => node.kind === "leaf");
  const graph: Graph = {
    serial: 1,
    n,
    uid: Float64Array.from(nodes, (_, i) => i + 1),
    name: Int32Array.from(nodes, (node, i) => names.at(isLeaf[i] ? "AccumulateGrad" : node.label)),
    names: names.values,
    seq: Float64Array.from(nodes, (node, i) => (isLeaf[i] ? -1 : node.seq)),
    kind: Uint8Array.from(isLeaf, (leaf) => (leaf ? KIND.accumulate : KIND.function)),
    ghost: new Uint8Array(n),
    place: Int32Array.from(nodes, (node) =>
      node.line === null ? -1 : places.at(lineOf(node), `${node.cell ?? 1}:${node.line}`),
    ),
    places: places.values,
    iteration: Int32Array.from(nodes, (node) => node.iteration ?? -1),
    module: Int32Array.from(nodes, (node, i) => {
      if (node.mod === null || isLeaf[i]) return -1;
      const call = node.call ?? 0;
      return modules.at({ path: node.mod, className: node.cls ?? "Module", call }, `${node.mod}#${call}`);
    }),
    modules: modules.values,
    edgeStart,
    edgeTo,
    slotStart: Int32Array.from({ length: n + 1 }, (_, i) => i),
    slotName: new Int32Array(n),
    slotState: Uint8Array.from(nodes, (node) => (node.kind === "leaf" ? 4 : node.freed ? 1 : 0)),
    slotType: new Int32Array(n).fill(-1),
    slotBytes: new Float64Array(n).fill(4),
    slotStorage: new Int32Array(n).fill(-1),
    slotFreedBy: new Int32Array(n).fill(-1),
    storageBytes: new Float64Array(0),
    storageOwners: new Map(),
    leaves: new Map(
      nodes.flatMap((node, i) =>
        isLeaf[i] ? [[i, { node: i, paths: [node.label], type: "", hasGrad: false, bytes: 4 }] as const] : [],
      ),
    ),
    owners: [],
    roots: [],
    calls: [],
    boundary: [],
    events: [],
    event: 0,
    findings: [],
    held: 0,
    status: { text: "", state: "idle", cell: null, why: "" },
    notes: [],
    indexOf: (uid) => ((uid ?? 0) <= nodes.length ? (uid ?? 0) - 1 : -1),
  };
  for (let v = 0; v < n; v++) {
    if (used[v] || isLeaf[v]) continue;
    const order = graph.roots.length;
    const root = { id: order, path: `loss${order}`, node: v, nr: 0, type: "", scalar: true, alive: true, order };
    graph.roots.push({ ...root, cells: null });
  }
  return graph;
}

class Table<T> {
  values: T[] = [];
  private readonly known = new Map<string, number>();

  at(value: T, text = String(value)): number {
    let id = this.known.get(text);
    if (id === undefined) {
      id = this.values.length;
      this.known.set(text, id);
      this.values.push(value);
    }
    return id;
  }
}

function lineOf(node: PlainNode): CodeLine {
  const cell = node.cell ?? 1;
  const line = Number((node.line as string).split(":").pop());
  return {
    cell,
    line,
    source: `line ${line} of the source`,
    outerCell: cell,
    outerLine: line,
    outerSource: "",
    cellId: `id${cell}`,
    run: cell,
    file: null,
    outerFile: null,
    fn: null,
    inner: cell,
    caller: "",
  };
}
