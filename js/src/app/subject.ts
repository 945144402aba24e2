/** The subject of the inspector: the selected item, found in the drawing. */

import type { Canvas } from "../canvas/canvas.ts";
import type { Drawing } from "../drawing/pipeline.ts";
import type { Subject } from "../panels/inspector.tsx";
import type { Box } from "../picture/fold/index.ts";
import { rootsOf } from "../picture/scene/context.ts";

const nodesOf = (boxes: readonly Box[]) => boxes.flatMap((box) => [...box.nodes]);

/** `selected`: key of an item. null: no such item, or none with more facts than the picture shows. */
export function findSubject(selected: string | null, drawing: Drawing | null, canvas: Canvas): Subject | null {
  const item = canvas.byKey.get(selected ?? "");
  if (!item || !drawing) return null;
  const { key, role, root, index } = item;
  const { graph, folded, plan } = drawing;
  const aboutNode = (node: number, inside?: Subject["inside"]): Subject => {
    const roots = rootsOf(plan.context, plan.context.nodeReach[node]!).map((view) => view.root);
    return { key, graph, inside, about: { node, roots } };
  };
  if (role === "root") {
    const node = graph.roots.find((each) => each.id === root)?.node ?? -1;
    return node < 0 ? null : aboutNode(node);
  }
  const box = folded.boxes.find((each) => each.key === key);
  const open = folded.open.find((group) => group.key === key);
  if (open) {
    const inner = folded.boxes.filter((each) => each.parent === key);
    const size = inner.reduce((sum, { count }) => sum + count, 0);
    return { key, graph, inside: open, about: { title: open.title, nodes: nodesOf(inner), size } };
  }
  const inside = folded.open.find((group) => group.key === box?.parent);
  if (!box || box.kind === "node") return index === undefined ? null : aboutNode(index, inside);
  const title = box.times > 1 ? `${box.title} ×${box.times}` : box.title;
  return { key, graph, inside, about: { title, nodes: box.nodes, size: box.count } };
}
