/** Search by operation, label, line and module. */
import type { Graph } from "../model.ts";
import { placeText } from "../words.ts";

/**
 * uids of the nodes that match every word of the query, in forward order of discovery.
 *
 * A word matches without regard to case in torch's name, the names of tensors and leaves, the source line, the place
 * (`In[2]:4`), the iteration and the module path and class.
 */
export function search(graph: Graph, query: string): number[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const labels = new Map<number, string>();
  for (const owner of graph.owners) labels.set(owner.node, `${labels.get(owner.node) ?? ""} ${owner.path}`);
  for (const root of graph.roots) labels.set(root.node, `${labels.get(root.node) ?? ""} ${root.path}`);
  for (const [node, leaf] of graph.leaves) labels.set(node, `${labels.get(node) ?? ""} ${leaf.paths.join(" ")}`);

  const bits = (text: string) => {
    const lower = text.toLowerCase();
    let mask = 0;
    for (let w = 0; w < words.length && w < 30; w++) if (lower.includes(words[w])) mask |= 1 << w;
    return mask;
  };
  const byName = graph.names.map(bits);
  const byModule = graph.modules.map((m) => bits(`${m.path} ${m.className}`));
  const byPlace = graph.places.map((p) => {
    const outer = placeText({ cell: p.outerCell, line: p.outerLine });
    return bits(`${placeText(p)} ${outer} ${p.source} ${p.outerSource}`);
  });
  const byIteration = new Map<number, number>([[-1, 0]]);
  const all = 2 ** Math.min(words.length, 30) - 1;
  const found: number[] = [];
  for (let v = graph.n - 1; v >= 0; v--) {
    let mask = byName[graph.name[v]] ?? 0;
    if (graph.module[v] >= 0) mask |= byModule[graph.module[v]];
    if (graph.place[v] >= 0) mask |= byPlace[graph.place[v]];
    const iteration = graph.iteration[v];
    if (!byIteration.has(iteration)) byIteration.set(iteration, bits(`iteration ${iteration}`));
    mask |= byIteration.get(iteration) as number;
    const label = labels.get(v);
    if (label) mask |= bits(label);
    if (mask === all) found.push(graph.uid[v]);
  }
  return found;
}
