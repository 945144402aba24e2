// Serves the dev page on loopback and builds it anew on every reload: `node dev/serve.mjs [port]`.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

async function bundle() {
  const result = await build({
    entryPoints: [join(here, "dev.ts")],
    bundle: true,
    format: "esm",
    target: "es2022",
    sourcemap: "inline",
    write: false,
    logLevel: "silent",
  });
  return result.outputFiles[0].text;
}

const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  const name = path === "/" ? "/index.html" : path;
  try {
    if (name === "/dev.js") return response.writeHead(200, { "content-type": TYPES[".js"] }).end(await bundle());
    const file = name === "/theme.css" ? join(here, "../src/theme.css") : join(here, name);
    const inside = file.startsWith(here) || name === "/theme.css";
    if (!inside || !existsSync(file)) return response.writeHead(404).end("not found");
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" });
    createReadStream(file).pipe(response);
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(Number(process.argv[2] ?? 8123), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
