/** Exports of the picture from the page: an SVG or a PNG file, text on the clipboard. They need no kernel. */

import type { Drawing } from "../drawing/pipeline.ts";
import { copy } from "../page/clipboard.ts";
import { drive } from "../page/drive.ts";
import { html, svg } from "../page/elements.ts";
import { drawMarks } from "../page/marks.tsx";
import { fontsOf, markRules } from "../page/theme.ts";
import { tableText } from "../panels/table.tsx";
import type { Graph } from "../picture/model.ts";
import { redrawSlices } from "../picture/picture.ts";
import type { Scene } from "../picture/scene/types.ts";
import { sheetOf } from "../picture/sheet.ts";

const NAME = "autograd-graph";
/** Pixels of a PNG for one px of the picture; fewer where the picture is so large that browsers refuse. */
const SHARP = 2;
const MOST_PIXELS = 40_000_000;

/** What is on screen with all details and without a search or a forecast, as a sheet with title, finding and legend. */
async function sheet({ graph, ...picture }: Drawing): Promise<Scene> {
  const { options } = picture.plan.context;
  const plain = {
    ...options,
    level: 3,
    hits: null,
    hit: null,
    forecast: null,
    onlyRoot: null,
    buttons: false,
  } as const;
  const drawn = await drive(redrawSlices({ graph, ...picture }, plain), () => true);
  return sheetOf(drawn!.scene, graph, options.measure, titleOf(graph));
}

function titleOf({ status: { text }, events, event }: Graph): string {
  const past = events.at(-1)?.id === event ? "" : events.find(({ id }) => id === event)?.label;
  const moment = past || (text === "idle" ? "" : text);
  return moment ? `Autograd graph ${/^(after|In)/.test(moment) ? moment : `(${moment})`}` : "Autograd graph";
}

/** A scene as a self-contained SVG file: with the rules of the marks, in the theme and fonts on screen. */
function svgText({ left, top, width, height, items }: Scene, root: HTMLElement): string {
  const { ui, mono } = fontsOf(root);
  const { theme } = root.dataset;
  const fonts = `.graphwidget{--g-font-ui:${ui};--g-font-mono:${mono};background:var(--g-bg)}`;
  const box = { viewBox: `${left} ${top} ${width} ${height}`, width, height };
  const file = svg(
    "svg",
    { class: "graphwidget", "data-theme": theme, "data-own-colours": "", ...box },
    svg("style", {}, markRules() + fonts),
    svg("rect", { x: left, y: top, width, height, style: "fill:var(--g-bg)" }),
    ...items.map((item) => svg("g", { transform: `translate(${item.x} ${item.y})` }, ...drawMarks(item.marks))),
  );
  return new XMLSerializer().serializeToString(file);
}

/** An SVG file as PNG; null: this browser, or the host's policy, does not draw it. */
async function pngOf(file: string, { width, height }: Scene): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(file)}`;
  try {
    await image.decode();
  } catch {
    return null;
  }
  const scale = Math.min(SHARP, Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = html("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Makes the browser save a file; returns the answer to show. */
export function saveFile(content: string | Blob, name: string, type: string): string {
  const href = URL.createObjectURL(new Blob([content], { type }));
  html("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  return `Saved as ${name}.`;
}

/** Saves what is on screen; resolves with the answer to show. */
export async function savePicture(what: "svg" | "png", drawing: Drawing, root: HTMLElement): Promise<string> {
  const scene = await sheet(drawing);
  const file = svgText(scene, root);
  if (what === "svg") return saveFile(file, `${NAME}.svg`, "image/svg+xml");
  const png = await pngOf(file, scene);
  return png ? saveFile(png, `${NAME}.png`, "image/png") : "No PNG can be made here: save the SVG.";
}

export async function copyText(graph: Graph): Promise<string> {
  return (await copy(tableText(graph))) ? "Copied as text." : "Not allowed here: copy from the table (t).";
}
