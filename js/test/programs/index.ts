/** The pictures of real programs, as the kernel sends them one after the other; made by `make.py`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Graph } from "../../src/picture/model.ts";
import { decode } from "../../src/picture/wire.ts";

export const PROGRAMS = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.replace(".json", ""));

export interface Moment {
  /** "In[2]", the end of a cell; "In[2] (3)", call 3 in it. */
  name: string;
  wire: Record<string, unknown>;
  graph: Graph;
}

export function momentsOf(program: string): Moment[] {
  const text = readFileSync(join(import.meta.dirname, `${program}.json`), "utf8");
  const pictures: [string, Record<string, unknown>][] = JSON.parse(text);
  return pictures.map(([name, wire]) => ({ name, wire, graph: decode(wire) }));
}

export function momentOf(program: string, name: string): Moment {
  const found = momentsOf(program).find((moment) => moment.name === name);
  if (!found) throw new Error(`${program} has no moment ${name}`);
  return found;
}
