/** Layout inputs from plain graphs and measures of drawings; a parameter is one box per use, as in the picture. */
import type { LayoutInput, LayoutOutput } from "../../src/picture/layout/index.ts";
import type { PlainGraph } from "../graphs/index.ts";

export const RANKSEP = 40;
export const NODESEP = 20;

export function inputOf(plain: PlainGraph, splitLeaves = true): LayoutInput {
  const widths = plain.nodes.map((node) => Math.round(6.5 * node.label.length + 20));
  const used = new Set<number>();
  const edges = plain.edges.map(([from, to]) => {
    if (!splitLeaves || plain.nodes[to].kind !== "leaf" || !used.has(to)) {
      used.add(to);
      return [from, to];
    }
    widths.push(widths[to]);
    return [from, widths.length - 1];
  });
  return {
    n: widths.length,
    width: Float32Array.from(widths),
    height: new Float32Array(widths.length).fill(28),
    edges: Int32Array.from(edges.flat()),
    ranksep: RANKSEP,
    nodesep: NODESEP,
  };
}

export function overlaps(input: LayoutInput, out: LayoutOutput): number {
  const boxes = [...out.x.keys()].sort((a, b) => out.y[a] - out.y[b]);
  let count = 0;
  for (let i = 0; i < boxes.length; i++) {
    const a = boxes[i];
    for (let k = i + 1; k < boxes.length; k++) {
      const b = boxes[k];
      const dy = (input.height[a] + input.height[b]) / 2 - (out.y[b] - out.y[a]);
      if (out.y[b] - out.y[a] > 200) break;
      if (dy > 0.1 && (input.width[a] + input.width[b]) / 2 - Math.abs(out.x[a] - out.x[b]) > 0.5) count++;
    }
  }
  return count;
}

/** Pairs of an edge and a box that is not its end, where the route runs through the box. */
export function through(input: LayoutInput, out: LayoutOutput): number {
  const byY = [...out.x.keys()].sort((a, b) => out.y[a] - out.y[b]);
  let count = 0;
  for (let e = 0; e < input.edges.length / 2; e++) {
    for (let k = out.routeStart[e]; k + 3 < out.routeStart[e + 1]; k += 2) {
      const [ax, ay, bx, by] = out.route.subarray(k, k + 4);
      let low = 0;
      let high = byY.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (out.y[byY[middle]] < Math.min(ay, by) - 100) low = middle + 1;
        else high = middle;
      }
      for (let i = low; i < byY.length && out.y[byY[i]] < Math.max(ay, by) + 100; i++) {
        const v = byY[i];
        if (v === input.edges[2 * e] || v === input.edges[2 * e + 1]) continue;
        if (cuts(ax, ay, bx, by, out.x[v], out.y[v], input.width[v] / 2 - 1, input.height[v] / 2 - 1)) count++;
      }
    }
  }
  return count;
}

function cuts(ax: number, ay: number, bx: number, by: number, x: number, y: number, w: number, h: number): boolean {
  let from = 0;
  let to = 1;
  for (const [p, q] of [
    [ax - bx, ax - (x - w)],
    [bx - ax, x + w - ax],
    [ay - by, ay - (y - h)],
    [by - ay, y + h - ay],
  ]) {
    if (p === 0) {
      if (q < 0) return false;
    } else if (p < 0) from = Math.max(from, q / p);
    else to = Math.min(to, q / p);
  }
  return to - from > 1e-3;
}

/** Share of old boxes that are more than 40 px away from where they were. */
export function movedShare(x: ArrayLike<number>, y: ArrayLike<number>, out: LayoutOutput, count: number): number {
  let moved = 0;
  for (let v = 0; v < count; v++) if (Math.hypot(out.x[v] - x[v], out.y[v] - y[v]) > 40) moved++;
  return moved / count;
}
