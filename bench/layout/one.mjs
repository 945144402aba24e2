// One engine on one graph in a fresh process: prints one line of JSON when timed, one more when measured.
import { engines, floor, typedInput } from "./engines.mjs";
import { load } from "./graphs.mjs";
import { quality } from "./quality.mjs";

const { engine, file, repeat, budget, hubs, positions, bundle } = JSON.parse(process.argv[2]);
const graph = load(file, hubs);
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Median CPU milliseconds of up to `repeat` runs, as many as fit into `budget` seconds, short ones in batches. */
async function median(run, first) {
  const batch = Math.max(1, Math.ceil(5 / Math.max(first, 0.01)));
  const times = [];
  const end = performance.now() + budget * 1000;
  while (times.length < repeat && (times.length === 0 || performance.now() < end)) {
    const t = cpu();
    for (let i = 0; i < batch; i++) await run();
    times.push((cpu() - t) / batch);
  }
  times.sort((a, b) => a - b);
  return times[times.length >> 1];
}

const { run, read } = await engines[engine](graph, bundle);
const t = cpu();
const out = await run();
const result = { graph: graph.name, engine, nodes: graph.size.length, edges: graph.edges.length, cold: cpu() - t };
console.log(JSON.stringify(result));
if (repeat > 0) {
  let warm = await median(run, result.cold);
  // What takes little time is compiled late: an engine is hot after two seconds of work.
  for (const end = performance.now() + 2000; performance.now() < end; ) warm = await median(run, warm);
  result.hot = await median(run, warm);
}
if (engine === "ours" && repeat > 0) {
  const { n, edges } = typedInput(graph);
  await median(() => floor(n, edges), 0.1);
  result.floor = await median(() => floor(n, edges), 0.1);
}
console.log(JSON.stringify(result));
const drawn = read(out);
Object.assign(result, quality(graph, drawn));
if (positions) result.positions = drawn.position;
console.log(JSON.stringify(result));
