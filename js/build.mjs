// Builds the files that the Python package ships: one ESM file and one style sheet for the page, and the picture alone
// as a classic script for the JavaScript engine that Python embeds. A source map stands beside each script.
import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { checkSize } from "./size.mjs";

const STATIC = new URL("../graphwidget/static/", import.meta.url).pathname;
/** The licence of what is bundled with our own code: it wants to go with every copy. */
const LICENCE = `/*! preact\n${readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8")}*/`;
/** And that of the outlines of letters. */
const FONT_LICENCE = `/*!\n${readFileSync(new URL("src/raster/LICENSE_DEJAVU", import.meta.url), "utf8")}*/`;
const targets = [
  {
    file: "widget.js",
    entryPoints: ["src/app/widget.ts"],
    // One function, and an export of it as the last line: a page of its own (exports/page.py) leaves that line out.
    format: "iife",
    globalName: "graphwidgetFrontEnd",
    footer: { js: "export default graphwidgetFrontEnd.default;" },
    sourcemap: "external",
    banner: { js: LICENCE },
  },
  { file: "widget.css", entryPoints: ["src/theme.css"] },
  {
    file: "picture.js",
    entryPoints: ["src/raster/engine.ts"],
    format: "iife",
    globalName: "graphwidgetPicture",
    sourcemap: "external",
    banner: { js: FONT_LICENCE },
  },
];

for (const { file, ...options } of targets) {
  await build({
    outfile: STATIC + file,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    sourcesContent: false,
    logLevel: "warning",
    target: "es2022",
    ...options,
  });
}
checkSize();
