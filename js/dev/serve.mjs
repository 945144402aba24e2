// Serves the dev page on loopback and builds it again on every reload: `node dev/serve.mjs [port]`.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

async function bundle(entry, format) {
  const options = { bundle: true, format, target: "es2022", sourcemap: "inline", write: false, logLevel: "silent" };
  const result = await build({ entryPoints: [join(here, entry)], ...options });
  return result.outputFiles[0].text;
}

const BUILT = {
  "/dev.js": () => bundle("dev.ts", "esm"),
  "/theme.css": () => bundle("../src/theme.css"),
};

const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  const name = path === "/" ? "/index.html" : path;
  try {
    const type = { "content-type": TYPES[extname(name)] ?? "text/plain" };
    if (name in BUILT) return response.writeHead(200, type).end(await BUILT[name]());
    const file = join(here, name);
    if (!file.startsWith(here) || !existsSync(file)) return response.writeHead(404).end("not found");
    response.writeHead(200, type);
    createReadStream(file).pipe(response);
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(Number(process.argv[2] ?? 8123), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
