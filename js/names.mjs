// Which property names the build may shorten: those that only our own sources give.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import ts from "typescript";

const SRC = new URL("src/", import.meta.url).pathname;
/** Files that speak with the host or the kernel: every word of theirs may be one of theirs. */
const FOREIGN = ["widget.ts", "kernel.ts", "replies.ts", "picture/wire.ts", "picture/model.ts"];

/**
 * A name is ours if one of our interfaces or classes declares it, and if nothing else could mean it: no declaration of
 * the browser's or the language's, no word that goes to the kernel or comes from there, and no word in a string, by
 * which it might be looked up.
 */
export function ownNames() {
  const own = new Set();
  const others = libraryNames();
  for (const name of readdirSync(SRC, { recursive: true }).filter((name) => name.endsWith(".ts"))) {
    const text = readFileSync(SRC + name, "utf8");
    if (FOREIGN.includes(name)) addWords(text, others);
    const nodes = [ts.createSourceFile(name, text, ts.ScriptTarget.Latest)];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      const declares = ts.isTypeElement(node) || ts.isClassElement(node);
      if (declares && node.name && ts.isIdentifier(node.name)) own.add(node.name.text);
      if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) addWords(node.text, others);
      ts.forEachChild(node, (child) => void nodes.push(child));
    }
  }
  return [...own].filter((name) => !others.has(name));
}

function addWords(text, into) {
  for (const word of text.match(/\w+/g) ?? []) into.add(word);
}

/** What the browser and the language declare: the first word of a line of their declarations. */
function libraryNames() {
  const folder = dirname(createRequire(import.meta.url).resolve("typescript"));
  const files = readdirSync(folder).filter((name) => /^lib\..*\.d\.ts$/.test(name));
  const lines = files.map((name) => readFileSync(`${folder}/${name}`, "utf8")).join("\n");
  return new Set(Array.from(lines.matchAll(/^\s+(?:readonly |get |set )?(\w+)\??[(:<]/gm), ([, name]) => name));
}
