// How long the page is held up while a graph is drawn with every node: the whole way from the graph to the scene, in slices.
//
//   node bench/slices.mjs FILE.json[.gz]... [--repeat N] [--json]
//
// The graph format is that of bench/layout.mjs. The driver is the view's: a slice ends at the first yield after 6 ms.
// Prints per graph and phase milliseconds and the longest step between two yields, then the longest slice: of each step
// the median of warm runs, of this thread's clock, as V8 compiles and collects beside it, in a page too. So the machine has
// to be quiet. The median leaves out garbage collection as far as it falls on other steps in every run; the last number has
// it in full. Goal: no slice over 12 ms.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";

const SLICE_MS = 6;
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
const { foldSlices, inputSlices, layoutSlices, measureByTable, planSlices, sceneSlices, toGraph } = await bundle();

async function bundle() {
  const outfile = join(folder, "picture.mjs");
  const contents = `
    export { foldSlices } from "./src/picture/fold/index.ts";
    export { layoutSlices } from "./src/picture/layout/index.ts";
    export { measureByTable } from "./src/picture/measure.ts";
    export { inputSlices, planSlices } from "./src/picture/scene/plan.ts";
    export { sceneSlices } from "./src/picture/scene/index.ts";
    export { toGraph } from "./test/graphs/plain.ts";`;
  const { build } = createRequire(`${js}package.json`)("esbuild");
  await build({ stdin: { contents, resolveDir: js, loader: "ts" }, bundle: true, format: "esm", outfile, logLevel: "error" });
  return import(pathToFileURL(outfile).href);
}

const now = () => performance.now();

/** The milliseconds between the yields of each phase. */
function once(raw) {
  const graph = toGraph(raw);
  const steps = {};
  const drive = (phase, slices) => {
    steps[phase] = [];
    for (let last = now(); ; ) {
      const step = slices.next();
      const time = now();
      steps[phase].push(time - last);
      last = time;
      if (step.done) return step.value;
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
    return yield* layoutSlices(yield* inputSlices(plan));
  };
  const placed = drive("layout", layout());
  const scene = drive("scene", sceneSlices(plan, placed));
  return { steps, nodes: graph.n, items: scene.items.length };
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

/** The longest slice that the view's driver makes of these steps. */
function longestSlice(steps) {
  let longest = 0;
  let slice = 0;
  for (const ms of steps) {
    slice += ms;
    longest = Math.max(longest, slice);
    if (slice > SLICE_MS) slice = 0;
  }
  return longest;
}

let missed = false;
for (const file of positionals) {
  const bytes = readFileSync(file);
  const raw = JSON.parse(String(file.endsWith(".gz") ? gunzipSync(bytes) : bytes));
  once(raw);
  const runs = Array.from({ length: Math.max(1, Number(values.repeat)) }, () => once(raw));
  const result = { graph: basename(file).replace(/\.json(\.gz)?$/, ""), nodes: runs[0].nodes, items: runs[0].items };
  let all = [];
  for (const phase of PHASES) {
    const steps = runs[0].steps[phase].map((_, i) => median(runs.map((run) => run.steps[phase][i])));
    all = all.concat(steps);
    result[phase] = { ms: steps.reduce((sum, ms) => sum + ms, 0), longest: steps.reduce((a, b) => Math.max(a, b), 0) };
  }
  result.slice = longestSlice(all);
  result.collecting = median(runs.map(({ steps }) => longestSlice(PHASES.flatMap((phase) => steps[phase]))));
  missed ||= result.slice > GOAL_MS;
  if (values.json) console.log(JSON.stringify(result));
  else {
    const phases = PHASES.map((phase) => `${phase} ${result[phase].ms.toFixed(0)} (${result[phase].longest.toFixed(1)})`);
    console.log(
      `${result.graph.padEnd(14)} ${String(result.nodes).padStart(7)} nodes  ${phases.join("  ")} ms,  longest slice ` +
        `${result.slice.toFixed(1)} ms, ${result.collecting.toFixed(1)} ms with garbage collection`,
    );
  }
}
process.exitCode = missed ? 1 : 0;
