/** Taking the picture along: as an SVG file, as text on the clipboard. */

import { copy } from "../page/clipboard.ts";
import { h, s } from "../page/dom.ts";
import { drawMarks } from "../page/marks.ts";
import { fontsOf, markRules } from "../page/theme.ts";
import { tableText } from "../panels/table.ts";
import type { Graph } from "../picture/model.ts";
import type { Scene } from "../picture/scene/types.ts";

/** The scene as a file of its own: with the rules of the marks, in the theme and the fonts that are on screen. */
function svgText({ left, top, width, height, items }: Scene, root: HTMLElement): string {
  const { ui, mono } = fontsOf(root);
  const { theme } = root.dataset;
  const fonts = `.graphwidget{--g-font-ui:${ui};--g-font-mono:${mono};background:var(--g-bg)}`;
  const svg = s(
    "svg.graphwidget",
    { "data-theme": theme, "data-own-colours": "", viewBox: `${left} ${top} ${width} ${height}`, width, height },
    s("style", markRules() + fonts),
    items.map((item) => s("g", { transform: `translate(${item.x} ${item.y})` }, drawMarks(item.marks))),
  );
  return new XMLSerializer().serializeToString(svg);
}

export function saveSvg(scene: Scene, root: HTMLElement): string {
  const href = URL.createObjectURL(new Blob([svgText(scene, root)], { type: "image/svg+xml" }));
  h("a", { href, download: "autograd-graph.svg" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  return "Saved as autograd-graph.svg.";
}

export async function copyText(graph: Graph): Promise<string> {
  return (await copy(tableText(graph))) ? "Copied as text." : "Not allowed here: copy from the table (t).";
}
