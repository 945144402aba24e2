/** Graphs of many kinds for the tests of folding. */
import {
  accumulation,
  anyDag,
  Builder,
  lstm,
  type PlainGraph,
  RECORDED,
  random,
  recorded,
  residual,
} from "../graphs/index.ts";

export const GRAPHS: [string, () => PlainGraph][] = [
  ...RECORDED.map((name): [string, () => PlainGraph] => [name, () => recorded(name)]),
  ["an LSTM of 520 steps", () => lstm(520)],
  ["micro-batches", () => accumulation(16)],
  ["residual blocks", () => residual(5000)],
  ["nothing known", () => bare(2000)],
  ["sequence numbers against the edges", () => renumbered(500, 0)],
  ["sequence numbers that are mostly unknown", () => renumbered(500, 0.8)],
  ["a deep nest of modules", () => nest(40)],
  ["many cells", () => manyCells(300)],
  ["one line only", () => oneLine(1500)],
  ["three thousand parallel samples", () => samples(3000)],
];
for (let seed = 1; seed <= 30; seed++) {
  GRAPHS.push([`random graph ${seed}`, () => anyDag(30 + seed * seed * 2, seed, seed % 3 ? 12 : 200)]);
}

/** Random, without cell, line or module. */
export function bare(size: number): PlainGraph {
  const plain = anyDag(size, 7);
  for (const node of plain.nodes) Object.assign(node, { line: null, mod: null, call: undefined });
  return plain;
}

/** Random numbers that several nodes share; `unknown`: for how many there is none. */
function renumbered(size: number, unknown: number): PlainGraph {
  const plain = anyDag(size, 11);
  const next = random(5);
  for (const node of plain.nodes) node.seq = next() < unknown ? -1 : Math.floor(next() * 50);
  return plain;
}

function oneLine(size: number): PlainGraph {
  const plain = anyDag(size, 8);
  for (const node of plain.nodes) Object.assign(node, { line: "cell:1", cell: 1, mod: null });
  return plain;
}

function nest(depth: number): PlainGraph {
  const b = new Builder();
  let x = b.leaf("w");
  for (let i = 0; i < depth; i++) {
    const mod = Array.from({ length: i + 1 }, (_, k) => `m${k}`).join(".");
    for (let k = 0; k < 3; k++) x = b.fn("Mul", [x, x], { mod, line: `m.py:${k}` });
  }
  return b.graph;
}

function manyCells(cells: number): PlainGraph {
  const b = new Builder();
  let x = b.leaf("w");
  const next = random(5);
  for (let cell = 1; cell <= cells; cell++) {
    for (let i = 1 + next() * 4; i > 0; i--)
      x = b.fn(next() < 0.5 ? "Mul" : "Exp", [x], { cell, line: `c:${Math.ceil(i)}` });
  }
  return b.graph;
}

function samples(count: number): PlainGraph {
  const b = new Builder();
  const w = b.leaf("w");
  let total = -1;
  for (let i = 0; i < count; i++) {
    const loss = b.fn("Mean", [b.fn("Exp", [b.fn("Mul", [w])])]);
    total = b.fn("Add", total < 0 ? [loss] : [total, loss]);
  }
  return b.graph;
}
