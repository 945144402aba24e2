/** Exports of the picture from the page: an SVG file, text on the clipboard. */

import { copy } from "../page/clipboard.ts";
import { html, svg } from "../page/elements.ts";
import { drawMarks } from "../page/marks.tsx";
import { fontsOf, markRules } from "../page/theme.ts";
import { tableText } from "../panels/table.tsx";
import type { Graph } from "../picture/model.ts";
import type { Scene } from "../picture/scene/types.ts";

/** The scene as a self-contained SVG file: with the rules of the marks, in the theme and fonts on screen. */
function svgText({ left, top, width, height, items }: Scene, root: HTMLElement): string {
  const { ui, mono } = fontsOf(root);
  const { theme } = root.dataset;
  const fonts = `.graphwidget{--g-font-ui:${ui};--g-font-mono:${mono};background:var(--g-bg)}`;
  const box = { viewBox: `${left} ${top} ${width} ${height}`, width, height };
  const file = svg(
    "svg",
    { class: "graphwidget", "data-theme": theme, "data-own-colours": "", ...box },
    svg("style", {}, markRules() + fonts),
    ...items.map((item) => svg("g", { transform: `translate(${item.x} ${item.y})` }, ...drawMarks(item.marks))),
  );
  return new XMLSerializer().serializeToString(file);
}

/** Makes the browser save a file; returns the answer to show. */
export function saveFile(text: string, name: string, type: string): string {
  const href = URL.createObjectURL(new Blob([text], { type }));
  html("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  return `Saved as ${name}.`;
}

export function saveSvg(scene: Scene, root: HTMLElement): string {
  return saveFile(svgText(scene, root), "autograd-graph.svg", "image/svg+xml");
}

export async function copyText(graph: Graph): Promise<string> {
  return (await copy(tableText(graph))) ? "Copied as text." : "Not allowed here: copy from the table (t).";
}
