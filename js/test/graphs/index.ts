/** Real graphs of torch (`*.json` here, compact) and generated ones, in the plain form. */
import { readFileSync } from "node:fs";
import type { PlainGraph, PlainNode } from "./plain.ts";

export { type PlainGraph, type PlainNode, toGraph } from "./plain.ts";

/** `nodes` holds six numbers a node: label, leaf or not, sequence number, line, module, call; texts are indices. */
interface Compact {
  labels: string[];
  lines: string[];
  modules: string[];
  nodes: number[];
  edges: number[];
}

export const RECORDED = ["toy8", "mlp3", "resnet50", "gpt2"] as const;

export function recorded(name: (typeof RECORDED)[number]): PlainGraph {
  const compact: Compact = JSON.parse(readFileSync(new URL(`./${name}.json`, import.meta.url), "utf8"));
  const nodes: PlainNode[] = [];
  for (let i = 0; i < compact.nodes.length; i += 6) {
    const [label, leaf, seq, line, mod, call] = compact.nodes.slice(i, i + 6);
    const text = (table: string[], at: number) => (at < 0 ? null : table[at]);
    nodes.push({
      label: compact.labels[label],
      kind: leaf ? "leaf" : "fn",
      seq,
      line: text(compact.lines, line),
      mod: text(compact.modules, mod)?.replace(/\.(\d+)/g, "[$1]") ?? null,
      call: call < 0 ? undefined : call,
    });
  }
  const edges: [number, number][] = [];
  for (let i = 0; i < compact.edges.length; i += 2) edges.push([compact.edges[i], compact.edges[i + 1]]);
  return { nodes, edges };
}

/** The same numbers for the same seed, on every machine. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Makes nodes in forward order, as torch does: the newest has the highest sequence number. */
export class Builder {
  readonly nodes: PlainNode[] = [];
  readonly edges: [number, number][] = [];
  private seq = 0;

  fn(label: string, inputs: number[], where: Partial<PlainNode> = {}): number {
    const id = this.nodes.length;
    const name = `${label}Backward0`;
    this.nodes.push({ label: name, kind: "fn", seq: this.seq++, line: null, mod: null, ...where });
    for (const input of inputs) this.edges.push([id, input]);
    return id;
  }

  leaf(label: string): number {
    this.nodes.push({ label, kind: "leaf", seq: -1, line: null, mod: null });
    return this.nodes.length - 1;
  }

  get graph(): PlainGraph {
    return { nodes: this.nodes, edges: this.edges };
  }
}

/** Residual blocks of random shape, about `size` nodes. */
export function residual(size: number, seed = 1): PlainGraph {
  const next = random(seed);
  const b = new Builder();
  const pick = (list: string[]) => list[Math.floor(next() * list.length)];
  const ops = ["Addmm", "Mul", "Add", "View", "Bmm", "Softmax", "NativeLayerNorm", "Tanh", "NativeDropout"];
  let x = b.fn("Embedding", [b.leaf("wte.weight")]);
  for (let block = 0; b.nodes.length < size; block++) {
    const where = { mod: `h[${block}]`, line: `m.py:${block % 7}` };
    const start = x;
    for (let i = 6 + next() * 8; i > 0; i--) {
      const inputs = [x];
      if (next() < 0.35) inputs.push(b.fn("T", [b.leaf(`h.${block}.w${b.nodes.length}`)], where));
      x = b.fn(pick(ops), inputs, where);
    }
    if (next() < 0.8) {
      const split = b.fn("Split", [x], where);
      const ways = [0, 1, 2].map(() => {
        let z = split;
        for (let i = 2 + next() * 3; i > 0; i--) z = b.fn(pick(ops), [z], where);
        return z;
      });
      x = b.fn("Bmm", ways, where);
    }
    x = b.fn("Add", [start, x], where);
  }
  b.fn("Mean", [x]);
  return b.graph;
}

/** An LSTM by hand, unrolled, with a loss at every step; its parameters are leaves with many users. */
export function lstm(steps: number): PlainGraph {
  const b = new Builder();
  const params = ["xh.weight", "hh.weight", "head.weight"].map((name) => b.leaf(name));
  let h = -1;
  let c = -1;
  let total = -1;
  for (let t = 0; t < steps; t++) {
    const own = { mod: "lstm", call: t, line: "m.py:4" };
    const weight = (i: number, mod: string) => b.fn("T", [params[i]], { mod, call: t, line: "linear.py:1" });
    const xh = b.fn("Addmm", [weight(0, "lstm.xh")], { mod: "lstm.xh", call: t, line: "linear.py:1" });
    const hh = b.fn("Addmm", h < 0 ? [weight(1, "lstm.hh")] : [h, weight(1, "lstm.hh")], { mod: "lstm.hh", call: t });
    const z = b.fn("Split", [b.fn("Add", [xh, hh], own)], own);
    const gate = (op: string) => b.fn(op, [z], own);
    const kept = c < 0 ? [gate("Sigmoid")] : [gate("Sigmoid"), c];
    c = b.fn("Add", [b.fn("Mul", kept, own), b.fn("Mul", [gate("Sigmoid"), gate("Tanh")], own)], own);
    h = b.fn("Mul", [gate("Sigmoid"), b.fn("Tanh", [c], own)], own);
    const step = { line: "cell:9" };
    const loss = b.fn("NllLoss", [b.fn("Addmm", [h, b.fn("T", [params[2]], step)], step)], step);
    total = b.fn("Add", total < 0 ? [loss] : [total, loss], step);
  }
  return b.graph;
}

/** The same model on `batches` micro-batches, losses summed: every parameter has that many users. */
export function accumulation(batches: number, layers = 6): PlainGraph {
  const b = new Builder();
  const weights = Array.from({ length: layers }, (_, i) => b.leaf(`layers.${i}.weight`));
  let total = -1;
  for (let batch = 0; batch < batches; batch++) {
    let x = -1;
    for (let i = 0; i < layers; i++) {
      const where = { mod: `layers[${i}]`, call: batch, line: "m.py:3" };
      const w = b.fn("T", [weights[i]], where);
      x = b.fn("Tanh", [b.fn("Addmm", x < 0 ? [w] : [x, w], where)], where);
    }
    const loss = b.fn("Mean", [x], { line: "cell:5" });
    total = b.fn("Add", total < 0 ? [loss] : [total, loss], { line: "cell:5" });
  }
  return b.graph;
}

/** Any DAG: each node takes one to three of the `reach` newest nodes or a leaf. Places and modules are random. */
export function anyDag(size: number, seed: number, reach = 20): PlainGraph {
  const next = random(seed);
  const int = (below: number) => Math.floor(next() * below);
  const b = new Builder();
  const leaves = Array.from({ length: 1 + int(5) }, (_, i) => b.leaf(`w${i}`));
  const made: number[] = [];
  while (b.nodes.length < size) {
    const inputs: number[] = [];
    for (let i = 1 + int(3); i > 0; i--) {
      const old = made[made.length - 1 - int(Math.min(reach, made.length))];
      inputs.push(made.length && next() < 0.85 ? old : leaves[int(leaves.length)]);
    }
    const where: Partial<PlainNode> = {};
    if (next() < 0.7) Object.assign(where, { line: `c:${int(9)}`, cell: 1 + Math.floor((3 * b.nodes.length) / size) });
    if (next() < 0.6)
      Object.assign(where, { mod: ["a", "a.b", "a.b.c", "a.d", "e[1].f", "e[2].f"][int(6)], call: int(3) });
    if (next() < 0.1) where.freed = true;
    made.push(b.fn(["Mul", "Add", "Mv", "T", "View", "Exp"][int(6)], inputs, where));
  }
  return b.graph;
}
