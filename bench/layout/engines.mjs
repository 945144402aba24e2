// The engines, each as load() -> run(graph) -> { position: [[x, y], ...] centres, lines: [[[x, y], ...], ...] per edge }.
// Peers keep their defaults apart from direction and gaps.
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const js = fileURLToPath(new URL("../../js/", import.meta.url));
const need = createRequire(`${js}package.json`);
export const NODESEP = 20;
export const RANKSEP = 40;

/** Bundles our engine once; returns the path of the module. */
export async function bundleOurs(outfile) {
  const esbuild = need("esbuild");
  await esbuild.build({
    entryPoints: [`${js}src/picture/layout/index.ts`],
    bundle: true,
    format: "esm",
    outfile,
    logLevel: "error",
  });
  return outfile;
}

/** What a layout cannot do without: read the edges into rows and find longest paths. The floor of any layered engine. */
export function floor(n, edges) {
  const m = edges.length / 2;
  const start = new Int32Array(n + 1);
  const waiting = new Int32Array(n);
  for (let e = 0; e < m; e++) {
    start[edges[2 * e + 1] + 1]++;
    waiting[edges[2 * e]]++;
  }
  for (let v = 0; v < n; v++) start[v + 1] += start[v];
  const next = start.slice(0, n);
  const users = new Int32Array(m);
  for (let e = 0; e < m; e++) users[next[edges[2 * e + 1]]++] = edges[2 * e];
  const rank = new Int32Array(n);
  const queue = new Int32Array(n);
  let filled = 0;
  for (let v = 0; v < n; v++) if (!waiting[v]) queue[filled++] = v;
  for (let i = 0; i < filled; i++) {
    const v = queue[i];
    for (let k = start[v]; k < start[v + 1]; k++) {
      const user = users[k];
      if (rank[user] <= rank[v]) rank[user] = rank[v] + 1;
      if (--waiting[user] === 0) queue[filled++] = user;
    }
  }
  return rank;
}

export function typedInput(graph) {
  return {
    n: graph.size.length,
    width: Float32Array.from(graph.size, (s) => s[0]),
    height: Float32Array.from(graph.size, (s) => s[1]),
    edges: Int32Array.from(graph.edges.flat()),
    nodesep: NODESEP,
    ranksep: RANKSEP,
  };
}

export const engines = {
  async ours(graph, bundle) {
    const { layout } = await import(pathToFileURL(bundle).href);
    const input = typedInput(graph);
    return {
      run: () => layout(input),
      read: (out) => ({
        position: graph.size.map((_, v) => [out.x[v], out.y[v]]),
        lines: graph.edges.map((_, e) => {
          const line = [];
          for (let k = out.routeStart[e]; k < out.routeStart[e + 1]; k += 2) line.push([out.route[k], out.route[k + 1]]);
          return line;
        }),
      }),
    };
  },
  async dagre(graph) {
    const loaded = need("@dagrejs/dagre");
    const dagre = loaded.default ?? loaded;
    return {
      run() {
        const g = new dagre.graphlib.Graph({ multigraph: true });
        g.setGraph({ rankdir: "TB", nodesep: NODESEP, ranksep: RANKSEP });
        g.setDefaultEdgeLabel(() => ({}));
        graph.size.forEach(([width, height], v) => g.setNode(String(v), { width, height }));
        graph.edges.forEach(([a, b], e) => g.setEdge(String(a), String(b), {}, String(e)));
        dagre.layout(g);
        return g;
      },
      read: (g) => ({
        position: graph.size.map((_, v) => [g.node(String(v)).x, g.node(String(v)).y]),
        lines: graph.edges.map(([a, b], e) => g.edge(String(a), String(b), String(e)).points.map((p) => [p.x, p.y])),
      }),
    };
  },
  async dot(graph) {
    const { Graphviz } = await import(pathToFileURL(need.resolve("@hpcc-js/wasm-graphviz")).href);
    const graphviz = await Graphviz.load();
    return {
      run() {
        const text = [`digraph{graph[nodesep=${NODESEP / 72},ranksep=${RANKSEP / 72}];`];
        text.push('node[shape=box,fixedsize=true,label=""];edge[arrowhead=none];');
        graph.size.forEach(([w, h], v) => text.push(`${v}[width=${(w / 72).toFixed(4)},height=${(h / 72).toFixed(4)}];`));
        for (const [a, b] of graph.edges) text.push(`${a}->${b};`);
        text.push("}");
        return graphviz.layout(text.join("\n"), "plain", "dot");
      },
      read: (plain) => readPlain(graph, plain),
    };
  },
  async elk(graph) {
    const ELK = need("elkjs/lib/elk.bundled.js");
    const elk = new (ELK.default ?? ELK)();
    return {
      run: () =>
        elk.layout({
          id: "root",
          layoutOptions: {
            "elk.algorithm": "layered",
            "elk.direction": "DOWN",
            "elk.layered.spacing.nodeNodeBetweenLayers": String(RANKSEP),
            "elk.spacing.nodeNode": String(NODESEP),
            "elk.edgeRouting": "POLYLINE",
          },
          children: graph.size.map(([width, height], v) => ({ id: `n${v}`, width, height })),
          edges: graph.edges.map(([a, b], e) => ({ id: `e${e}`, sources: [`n${a}`], targets: [`n${b}`] })),
        }),
      read(out) {
        const position = [];
        for (const c of out.children) position[+c.id.slice(1)] = [c.x + c.width / 2, c.y + c.height / 2];
        const lines = [];
        for (const edge of out.edges) {
          const { startPoint, bendPoints = [], endPoint } = edge.sections[0];
          lines[+edge.id.slice(1)] = [startPoint, ...bendPoints, endPoint].map((p) => [p.x, p.y]);
        }
        return { position, lines };
      },
    };
  },
};

/** Graphviz' plain text. Of its splines every third point lies on the curve. */
function readPlain(graph, plain) {
  const position = [];
  const lines = new Map();
  for (const row of plain.split("\n")) {
    const word = row.split(" ");
    if (word[0] === "node") position[+word[1]] = [word[2] * 72, -word[3] * 72];
    if (word[0] !== "edge") continue;
    const points = [];
    for (let i = 0; i < +word[3]; i += 3) points.push([word[4 + 2 * i] * 72, -word[5 + 2 * i] * 72]);
    const key = `${word[1]}>${word[2]}`;
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push(points);
  }
  return { position, lines: graph.edges.map(([a, b]) => lines.get(`${a}>${b}`)?.pop() ?? [position[a], position[b]]) };
}
