// Builds the files that the Python package ships: one ESM file and one style sheet for the page,
// and the picture alone as a classic script for the JavaScript engine that Python embeds.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";
import { ownNames } from "./names.mjs";
import { checkSize } from "./size.mjs";

// The order of the modules: gzip looks back 32 kB, and 1,500 bytes fewer are left when code stands close to what is
// written alike.
const widget = `
  import "./src/picture/tokens.ts";
  import "./src/picture/layout/sift.ts";
  import "./src/picture/layout/index.ts";
  import "./src/picture/scene.ts";
  import "./src/pipeline.ts";
  import "./src/header.ts";
  import "./src/messages.ts";
  import "./src/empty.ts";
  import "./src/table.ts";
  import "./src/legend.ts";
  import "./src/timeline.ts";
  import "./src/rootbar.ts";
  export { default } from "./src/widget.ts";`;

const targets = [
  {
    file: "widget.js",
    stdin: { contents: widget, resolveDir: "." },
    format: "esm",
    mangleProps: new RegExp(`^(${ownNames().join("|")})$`),
  },
  { file: "widget.css", entryPoints: ["src/theme.css"] },
  { file: "picture.js", entryPoints: ["src/picture/picture.ts"], format: "iife", globalName: "graphwidgetPicture" },
];

for (const { file, ...options } of targets) {
  const outfile = new URL(`../graphwidget/static/${file}`, import.meta.url).pathname;
  await build({
    outfile,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
    target: "es2022",
    ...options,
  });
  if (file === "widget.js") await squeeze(outfile);
}
checkSize();

// A second pass over what every notebook loads: about 5 % less after compression. `unsafe` trusts that nobody has put
// functions of their own in the place of String and the like, `unsafe_comps` that what is compared are plain values.
async function squeeze(file) {
  const { code } = await minify(readFileSync(file, "utf8"), {
    module: true,
    ecma: 2020,
    compress: {
      passes: 2,
      unsafe: true,
      unsafe_comps: true,
      unsafe_math: true,
      unsafe_arrows: true,
      pure_getters: true,
      keep_fargs: false,
      inline: 1,
      lhs_constants: false,
    },
    format: { ecma: 2020, wrap_iife: true, quote_style: 1 },
  });
  writeFileSync(file, `${code}\n`);
}
