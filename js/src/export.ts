/** Taking the picture along: as an SVG file, as text on the clipboard. */

import type { Graph } from "./picture/model.ts";
import { renderSvg } from "./picture/svg.ts";
import type { Drawing } from "./pipeline.ts";
import { tableText } from "./table.ts";

export async function saveSvg(drawing: Drawing): Promise<string> {
  const url = URL.createObjectURL(new Blob([renderSvg(drawing.scene)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "autograd-graph.svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  return "Saved as autograd-graph.svg.";
}

export async function saveText(graph: Graph): Promise<string> {
  try {
    await navigator.clipboard.writeText(tableText(graph));
    return "Copied as text.";
  } catch {
    return "The browser does not allow copying here. Open the table view (t) and copy from it.";
  }
}
