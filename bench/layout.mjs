// Times the layout and measures what it draws, with --peers beside dagre, dot (WASM) and ELK in the same run.
//
//   node bench/layout.mjs FILE.json[.gz]... [--peers[=dagre,dot,elk]] [--repeat N] [--limit SECONDS] [--hubs] [--json] [--positions]
//
// cold: CPU ms of the first layout in a fresh process; hot: median CPU ms of repeated layouts in that process.
// floor: the same for reading the edges and finding longest paths, which every layered engine has to do.
// A parameter with several users counts as one box per use, for all engines alike (--hubs: as one box).
// crossings, edge length (px), edges through boxes, overlapping boxes, width and height (px) come from one measure.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundleOurs, engines } from "./layout/engines.mjs";

const COLUMNS = "graph engine nodes edges cold hot floor crossings length through overlaps width height".split(" ");

function readArguments() {
  try {
    const argv = process.argv.slice(2).map((a) => (a === "--peers" ? "--peers=dagre,dot,elk" : a));
    const { values, positionals } = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        peers: { type: "string", default: "" },
        repeat: { type: "string", default: "15" },
        limit: { type: "string", default: "60" },
        hubs: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        positions: { type: "boolean", default: false },
      },
    });
    const peers = values.peers.split(",").filter(Boolean);
    const unknown = peers.find((p) => !(p in engines));
    if (unknown) throw new Error(`unknown engine ${unknown}; known: ${Object.keys(engines).join(", ")}`);
    if (!positionals.length) throw new Error("no graph given");
    if (!(Number(values.repeat) >= 0 && Number(values.limit) > 0)) throw new Error("--repeat and --limit take numbers");
    return { ...values, repeat: Number(values.repeat), limit: Number(values.limit), peers, files: positionals };
  } catch (error) {
    console.error(`${error.message}\nusage: node bench/layout.mjs FILE.json... [--peers] [--repeat N] [--limit SECONDS] [--hubs] [--json] [--positions]`);
    process.exit(2);
  }
}

/** Last complete line that the process printed before it ended or ran out of time. */
function runOne(request, limit) {
  return new Promise((done) => {
    const script = fileURLToPath(new URL("./layout/one.mjs", import.meta.url));
    const child = spawn(process.execPath, ["--max-old-space-size=6144", "--stack-size=8000", script, JSON.stringify(request)]);
    let out = "";
    let err = "";
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill("SIGKILL");
    }, limit * 1000);
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    child.on("close", (code) => {
      clearTimeout(timer);
      const lines = out.split("\n").slice(0, -1);
      const result = lines.length ? JSON.parse(lines[lines.length - 1]) : { graph: request.file, engine: request.engine };
      if (late) result.error = `not done within ${limit} s`;
      else if (code !== 0) result.error = err.trim().split("\n").findLast((l) => l.includes("Error")) ?? `exit status ${code}`;
      done(result);
    });
  });
}

function format(value, column) {
  if (value === undefined) return "";
  return ["cold", "hot", "floor"].includes(column) ? value.toFixed(value < 10 ? 2 : 1) : String(value);
}

const { files, peers, repeat, limit, hubs, json, positions } = readArguments();
const folder = mkdtempSync(join(tmpdir(), "graphwidget-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const bundle = await bundleOurs(join(folder, "layout.mjs"));
const results = [];
let failed = false;
for (const file of files) {
  for (const engine of ["ours", ...peers]) {
    const request = { engine, file: resolve(file), repeat, budget: limit / 6, hubs, positions, bundle };
    const result = await runOne(request, limit);
    failed ||= engine === "ours" && result.error !== undefined;
    results.push(result);
    if (json) console.log(JSON.stringify(result));
    else {
      if (results.length === 1) console.log(COLUMNS.join("\t"));
      console.log(COLUMNS.map((c) => format(result[c], c)).join("\t") + (result.error ? `\t${result.error}` : ""));
    }
  }
}
process.exitCode = failed ? 1 : 0;
