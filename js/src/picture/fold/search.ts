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
  const label = (node: number, text: string) => labels.set(node, `${labels.get(node) ?? ""} ${text.toLowerCase()}`);
  for (const { node, path } of [...graph.owners, ...graph.roots]) label(node, path);
  for (const { node, paths } of graph.leaves.values()) label(node, paths.join(" "));

  // Texts are put into lower case once for all nodes that share them.
  const lower = (...parts: string[]) => parts.join(" ").toLowerCase();
  const names = graph.names.map((name) => lower(name));
  const modules = graph.modules.map(({ path, className }) => lower(path, className));
  const places = graph.places.map((p) => {
    const outer = placeText({ cell: p.outerCell, line: p.outerLine, file: p.outerFile });
    return lower(placeText(p), outer, p.source, p.outerSource);
  });
  const found: number[] = [];
  for (let v = graph.n - 1; v >= 0; v--) {
    const iteration = graph.iteration[v] < 0 ? "" : `iteration ${graph.iteration[v]}`;
    const text = `${names[graph.name[v]]} ${modules[graph.module[v]] ?? ""} ${places[graph.place[v]] ?? ""} ${iteration} ${labels.get(v) ?? ""}`;
    if (words.every((word) => text.includes(word))) found.push(graph.uid[v]);
  }
  return found;
}
