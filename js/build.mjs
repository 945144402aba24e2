// Builds the files that the Python package ships: one ESM file and one style sheet for the page,
// and the picture alone as a classic script for the JavaScript engine that Python embeds.
import { build } from "esbuild";

const targets = [
  { entry: "src/widget.ts", file: "widget.js", options: { format: "esm" } },
  { entry: "src/theme.css", file: "widget.css" },
  {
    entry: "src/picture/picture.ts",
    file: "picture.js",
    options: { format: "iife", globalName: "graphwidgetPicture" },
  },
];

for (const { entry, file, options } of targets) {
  await build({
    entryPoints: [entry],
    outfile: `../graphwidget/static/${file}`,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
    target: "es2022",
    ...options,
  });
}
