/** Who may import whom: rooms, the rooms inside the picture, and no circle between files. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const SOURCE = join(import.meta.dirname, "../src");

/** Each room and the rooms it may import. The picture knows no DOM; everything else stands on it. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  /** What a graph is, and the marks: no layout, no scene. */
  "picture/ground": [],
  "picture/layout": ["picture/ground"],
  "picture/fold": ["picture/ground", "picture/layout"],
  "picture/scene": ["picture/ground", "picture/layout", "picture/fold"],
  /** The entry of the embedded engine, and what is made of a whole scene. */
  "picture/whole": ["picture/ground", "picture/layout", "picture/fold", "picture/scene"],
  /** Pictures without a browser. */
  raster: ["picture"],
  page: ["picture"],
  state: ["picture", "page"],
  canvas: ["picture", "page"],
  drawing: ["picture", "page", "state", "canvas"],
  panels: ["picture", "page", "state", "canvas"],
  lens: ["picture", "page", "state", "canvas", "drawing", "panels"],
  time: ["picture", "page", "state", "panels"],
  app: ["picture", "page", "state", "canvas", "drawing", "panels", "lens", "time"],
};
const WHOLE = ["picture/picture.ts", "picture/svg.ts", "picture/story.ts", "picture/sheet.ts"];
/** Packages from outside and files of data, and the rooms that may use them. */
const PACKAGES: Record<string, readonly string[]> = {
  preact: ["page", "state", "panels", "lens", "time", "app"],
  "preact/hooks": ["panels", "lens", "time", "app"],
  "raster/glyphs.json": ["raster"],
};

/** The innermost room around a file: a folder that is none belongs to the one around it. */
function roomOf(file: string): string {
  if (WHOLE.includes(file)) return "picture/whole";
  let room = dirname(file);
  while (!(room in MAY_IMPORT) && room.includes("/")) room = dirname(room);
  return room === "picture" ? "picture/ground" : room;
}

/** By file, the modules that it imports, relative to the sources; packages by their name. */
type Imports = Map<string, string[]>;

function readImports(): Imports {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  return new Map(
    files.map((file) => {
      const code = readFileSync(join(SOURCE, file), "utf8");
      const found = [...code.matchAll(/^(?:import|export)\s(?:[^;"=]*\sfrom\s)?"([^"]+)"/gm)].map(([, name]) => name!);
      return [file, found.map((name) => (name.startsWith(".") ? normalize(join(dirname(file), name)) : name))];
    }),
  );
}

function wrongImports(imports: Imports): string[] {
  const wrong: string[] = [];
  for (const [file, targets] of imports) {
    const room = roomOf(file);
    const allowed = MAY_IMPORT[room];
    if (!allowed) wrong.push(`${file} is in no known room`);
    for (const target of targets) {
      const isPackage = !imports.has(target);
      const to = roomOf(target);
      const may = isPackage
        ? PACKAGES[target]?.includes(room)
        : to === room || allowed?.some((each) => to === each || to.startsWith(`${each}/`));
      if (!may) wrong.push(`${file} imports ${target}`);
    }
  }
  return wrong;
}

/** Files that lead back to themselves. */
function inCircles(imports: Imports): string[] {
  const leadsTo = (start: string): Set<string> => {
    const found = new Set<string>();
    const open = [start];
    for (let file = open.pop(); file !== undefined; file = open.pop())
      for (const target of imports.get(file) ?? [])
        if (!found.has(target)) {
          found.add(target);
          open.push(target);
        }
    return found;
  };
  return [...imports.keys()].filter((file) => leadsTo(file).has(file)).sort();
}

/** The real imports, and one more. */
function withImport(file: string, target: string): Imports {
  const imports = readImports();
  return imports.set(file, [...imports.get(file)!, target]);
}

test("every file imports only what its room may", () => {
  const imports = readImports();
  expect(imports.size).toBeGreaterThan(80);
  expect(wrongImports(imports)).toEqual([]);
});

test("no circle leads through any file", () => {
  expect(inCircles(readImports())).toEqual([]);
});

test.each([
  ["picture/marks.ts", "picture/scene/types.ts"],
  ["picture/layout/index.ts", "picture/fold/index.ts"],
  ["picture/layout/order/order.ts", "picture/fold/index.ts"],
  ["canvas/viewport.ts", "panels/header.tsx"],
  ["state/state.ts", "app/view.ts"],
  ["picture/wire.ts", "page/theme.ts"],
  ["picture/model.ts", "preact"],
])("a wrong import is found: %s imports %s", (file, target) => {
  expect(wrongImports(withImport(file, target))).toContain(`${file} imports ${target}`);
});

test("a planted circle is found", () => {
  const imports = withImport("picture/layout/types.ts", "picture/layout/coordinates/coordinates.ts");
  expect(inCircles(imports)).toEqual(
    expect.arrayContaining(["picture/layout/types.ts", "picture/layout/coordinates/coordinates.ts"]),
  );
});
