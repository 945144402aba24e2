// Which property names the build may shorten: those that only our own sources give.
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("./", import.meta.url));
const SRC = `${ROOT}src/`;
/** Files that speak with the host or the kernel: every name in them may be one of theirs. */
const FOREIGN = ["widget.ts", "kernel.ts", "replies.ts", "picture/wire.ts", "picture/model.ts"].map(
  (name) => SRC + name,
);

/**
 * A name is ours if one of our interfaces or classes declares it, and if nothing else could mean it wherever it
 * stands: no property of the browser's or the language's, none of the host's or the kernel's, no key of a record, and
 * no word in a string, by which it might be looked up.
 */
export function ownNames() {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile);
  const program = ts.createProgram([`${SRC}widget.ts`], ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options);
  const checker = program.getTypeChecker();
  const own = new Set();
  const others = new Set();
  for (const file of program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(SRC))) {
    const nodes = [file];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      const name = propertyName(node);
      if (name && isOurs(meaning(checker, node, name))) own.add(name);
      else if (name) others.add(name);
      if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) addKeys(node, others);
      ts.forEachChild(node, (child) => void nodes.push(child));
    }
  }
  return [...own].filter((name) => !others.has(name));
}

/** The name that a node gives to a property, or by which it reads one. */
function propertyName(node) {
  if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && !node.dotDotDotToken)
    return (node.propertyName ?? node.name).text;
  const has =
    ts.isPropertyAccessExpression(node) ||
    ts.isTypeElement(node) ||
    ts.isClassElement(node) ||
    ts.isObjectLiteralElement(node);
  return has && node.name && !ts.isPrivateIdentifier(node.name) ? node.name.text : undefined;
}

/** The property's symbol; none for a key of a record, or of an object whose type nobody has declared. */
function meaning(checker, node, name) {
  if (ts.isBindingElement(node)) return checker.getTypeAtLocation(node.parent).getProperty(name);
  if (ts.isObjectLiteralExpression(node.parent))
    return checker.getContextualType(node.parent)?.getNonNullableType().getProperty(name);
  return checker.getSymbolAtLocation(node.name);
}

function isOurs(symbol) {
  return symbol?.declarations?.every((declaration) => {
    const { fileName } = declaration.getSourceFile();
    return (
      fileName.startsWith(SRC) &&
      !FOREIGN.includes(fileName) &&
      (ts.isTypeElement(declaration) || ts.isClassElement(declaration))
    );
  });
}

/** Words by which a property might be looked up. */
function addKeys({ text, parent }, into) {
  if (ts.isLiteralTypeNode(parent) || ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)) return;
  const words = ts.isTemplateSpan(parent) || ts.isTemplateExpression(parent) ? text.match(/\w+/g) : [text];
  for (const word of words ?? []) into.add(word);
}
