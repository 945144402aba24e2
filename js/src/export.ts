/** Taking the picture along: as an SVG file, as text on the clipboard. */
import { s } from "./dom.ts";
import { drawMarks } from "./draw.ts";
import type { Graph } from "./picture/model.ts";
import type { Scene } from "./picture/scene.ts";
import { FONTS } from "./picture/tokens.ts";
import { tableText } from "./table.ts";
import { markRules } from "./theme.ts";

/** The scene as a file of its own: with the rules of the marks, in the theme that is on screen. */
export function svgText(scene: Scene, theme: string): string {
  const { left, top, width, height } = scene;
  const fonts = `.graphwidget{--g-font-ui:${FONTS.ui};--g-font-mono:${FONTS.mono};background:var(--g-bg)}`;
  const items = scene.items.map((item) =>
    s("g", { transform: `translate(${item.x} ${item.y})` }, drawMarks(item.marks)),
  );
  const props = {
    class: "graphwidget",
    "data-theme": theme,
    "data-own-colours": "",
    viewBox: `${left} ${top} ${width} ${height}`,
    width,
    height,
  };
  return new XMLSerializer().serializeToString(s("svg", props, s("style", {}, markRules() + fonts), items));
}

export function saveSvg(scene: Scene, theme: string): string {
  const url = URL.createObjectURL(new Blob([svgText(scene, theme)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "autograd-graph.svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  return "Saved as autograd-graph.svg.";
}

export async function copyText(graph: Graph): Promise<string> {
  try {
    await navigator.clipboard.writeText(tableText(graph));
    return "Copied as text.";
  } catch {
    return "The browser does not allow copying here. Open the table view (t) and copy from it.";
  }
}
