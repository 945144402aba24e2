/** Folding: from the graph to the boxes of the picture. */
import type { Graph } from "../model.ts";
import { findBadges } from "./badges.ts";
import { boxEdges, Counter } from "./boxes.ts";
import type { Box, Folded, FoldState } from "./types.ts";

export type { Box, Focus, Folded, FoldState, OpenGroup } from "./types.ts";

export function fold(graph: Graph, state: FoldState = {}): Folded {
  const badges = findBadges(graph, new Set(state.visible ?? []));
  const counter = new Counter(graph, badges);
  const boxOf = new Int32Array(graph.n).fill(-1);
  const boxes: Box[] = [];
  let total = 0;
  for (let v = 0; v < graph.n; v++) {
    if (badges.isBadge[v]) continue;
    boxOf[v] = boxes.length;
    const nodes = Int32Array.of(v);
    const contents = counter.contents(nodes);
    total += contents.count;
    boxes.push({
      key: `n${graph.uid[v]}`,
      seat: "",
      kind: "node",
      nodes,
      title: graph.names[graph.name[v]] ?? "",
      subtitle: "",
      open: false,
      parent: null,
      times: 1,
      ...contents,
    });
  }
  return { boxes, ...boxEdges(graph, boxes, boxOf), boxOf, open: [], total };
}
