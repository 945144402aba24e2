// How long the page is held up while a graph is drawn with every node: the whole way from the graph to the scene, in slices.
//
//   node bench/slices.mjs FILE.json[.gz]... [--repeat N] [--json]
//
// The graph format is that of bench/layout.mjs. The driver is the view's: a slice ends at the first yield after 8 ms.
// Prints per graph and phase milliseconds and the longest stretch between two yields, then the longest slice; medians.
// Goal: no slice over 12 ms. Garbage collection counts, and so do other programs on the machine.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";

const SLICE_MS = 8;
const GOAL_MS = 12;
const PHASES = ["fold", "plan", "layout", "scene"];
const js = fileURLToPath(new URL("../js/", import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { repeat: { type: "string", default: "5" }, json: { type: "boolean", default: false } },
});
if (!positionals.length) {
  console.error("usage: node bench/slices.mjs FILE.json... [--repeat N] [--json]");
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "graphwidget-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const { foldSlices, inputSlices, layoutSlices, measureByTable, planSlices, sceneSlices, settle, toGraph } = await bundle();

async function bundle() {
  const outfile = join(folder, "picture.mjs");
  const contents = `
    export { foldSlices } from "./src/picture/fold/index.ts";
    export { layoutSlices } from "./src/picture/layout/index.ts";
    export { measureByTable } from "./src/picture/measure.ts";
    export { inputSlices, planSlices } from "./src/picture/scene/plan.ts";
    export { settle } from "./src/picture/scene/settle.ts";
    export { sceneSlices } from "./src/picture/scene.ts";
    export { toGraph } from "./test/graphs/plain.ts";`;
  const { build } = createRequire(`${js}package.json`)("esbuild");
  await build({ stdin: { contents, resolveDir: js, loader: "ts" }, bundle: true, format: "esm", outfile, logLevel: "error" });
  return import(pathToFileURL(outfile).href);
}

/** Milliseconds and the longest stretch of each phase, and the longest slice of all. */
function once(raw) {
  const graph = toGraph(raw);
  const row = { slice: 0 };
  let started = performance.now();
  const drive = (phase, slices) => {
    const begun = performance.now();
    let longest = 0;
    for (let last = begun; ; ) {
      const step = slices.next();
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      row.slice = Math.max(row.slice, now - started);
      if (now - started > SLICE_MS) started = now;
      if (!step.done) continue;
      row[phase] = { ms: now - begun, longest };
      return step.value;
    }
  };
  const memory = new Map();
  const measure = (text, classes) => {
    const key = `${classes} ${text}`;
    if (!memory.has(key)) memory.set(key, measureByTable(text, classes));
    return memory.get(key);
  };
  const folded = drive("fold", foldSlices(graph, { expandAll: true }));
  const plan = drive("plan", planSlices(graph, folded, { measure, buttons: true }));
  const layout = function* () {
    const placed = yield* layoutSlices(yield* inputSlices(plan));
    yield* settle(plan.edges, placed);
    return placed;
  };
  const placed = drive("layout", layout());
  const scene = drive("scene", sceneSlices(plan, placed));
  return { ...row, nodes: graph.n, items: scene.items.length };
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

let missed = false;
for (const file of positionals) {
  const bytes = readFileSync(file);
  const raw = JSON.parse(String(file.endsWith(".gz") ? gunzipSync(bytes) : bytes));
  const rows = Array.from({ length: Math.max(1, Number(values.repeat)) }, () => once(raw));
  const result = { graph: basename(file).replace(/\.json(\.gz)?$/, ""), nodes: rows[0].nodes, items: rows[0].items };
  for (const phase of PHASES) {
    result[phase] = {
      ms: median(rows.map((row) => row[phase].ms)),
      longest: median(rows.map((row) => row[phase].longest)),
    };
  }
  result.slice = median(rows.map((row) => row.slice));
  missed ||= result.slice > GOAL_MS;
  if (values.json) console.log(JSON.stringify(result));
  else {
    const phases = PHASES.map((phase) => `${phase} ${result[phase].ms.toFixed(0)} (${result[phase].longest.toFixed(1)})`);
    console.log(`${result.graph.padEnd(14)} ${String(result.nodes).padStart(7)} nodes  ${phases.join("  ")} ms,  longest slice ${result.slice.toFixed(1)} ms`);
  }
}
process.exitCode = missed ? 1 : 0;
