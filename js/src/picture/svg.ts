/** A scene as SVG text: self-contained, light or dark as the viewer prefers, without scripts and fonts. */

import type { Mark } from "./marks.ts";
import type { Item, Scene } from "./scene/types.ts";
import { classAttribute, FONTS, STYLES, sheet, type Theme, variables } from "./tokens.ts";

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text for markup; characters that XML cannot contain are replaced. */
export function escapeText(text: string): string {
  return text
    .replace(/[&<>"]/g, (character) => ESCAPES[character]!)
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
}

/** One mark as SVG. */
export function markText(mark: Mark): string {
  const look = `class="${classAttribute(mark.classes)}"`;
  switch (mark.kind) {
    case "rect":
      return `<rect x="${mark.x}" y="${mark.y}" width="${mark.w}" height="${mark.h}"${mark.r ? ` rx="${mark.r}"` : ""} ${look}/>`;
    case "path":
      return `<path d="${mark.d}" ${look}/>`;
    case "text": {
      const anchor = mark.anchor && mark.anchor !== "start" ? ` text-anchor="${mark.anchor}"` : "";
      const body = mark.runs
        ? mark.runs
            .map(
              (run) =>
                `<tspan${run.classes ? ` class="${classAttribute(run.classes)}"` : ""}>${escapeText(run.text)}</tspan>`,
            )
            .join("")
        : escapeText(mark.text);
      return `<text x="${mark.x}" y="${mark.y}"${anchor} ${look}>${body}</text>`;
    }
  }
}

function itemText(item: Item): string {
  const place = `transform="translate(${tenth(item.x)} ${tenth(item.y)})"`;
  const data = Object.entries(item.data ?? {})
    .map(([key, value]) => ` data-${key}="${escapeText(value)}"`)
    .join("");
  const title = item.label ? `<title>${escapeText(item.label)}</title>` : "";
  return `<g ${place}${data}>${title}${item.marks.map(markText).join("")}</g>`;
}

const tenth = (value: number) => Math.round(value * 10) / 10;

export interface SvgOptions {
  /** "auto" follows the viewer's setting. */
  theme?: Theme | "auto";
  title?: string;
  description?: string;
  /** false: no background. */
  background?: boolean;
}

/** The whole file. */
export function renderSvg(scene: Scene, options: SvgOptions = {}): string {
  const { left, top, width, height } = scene;
  const theme = options.theme ?? "auto";
  const style =
    `.graphwidget-picture{${variables(theme === "dark" ? "dark" : "light")};--g-font-ui:${FONTS.ui};--g-font-mono:${FONTS.mono}}` +
    (theme === "auto" ? `@media(prefers-color-scheme:dark){.graphwidget-picture{${variables("dark")}}}` : "") +
    sheet(".graphwidget-picture", usedClasses(scene)) +
    ".g-background{fill:var(--g-bg)}";
  const background =
    options.background === false
      ? ""
      : `<rect x="${left}" y="${top}" width="${width}" height="${height}" class="g-background"/>`;
  const box = `viewBox="${left} ${top} ${width} ${height}" width="${width}" height="${height}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" class="graphwidget-picture" ${box} role="img">` +
    `<title>${escapeText(options.title ?? "Autograd graph")}</title>` +
    (options.description ? `<desc>${escapeText(options.description)}</desc>` : "") +
    `<style>${style}</style>${background}${scene.items.map(itemText).join("")}</svg>`
  );
}

function usedClasses(scene: Scene): Set<string> {
  const used = new Set<string>();
  for (const item of scene.items) {
    for (const mark of item.marks) {
      for (const name of mark.classes.split(" ")) used.add(name);
      if (mark.kind === "text")
        for (const run of mark.runs ?? []) for (const name of run.classes.split(" ")) used.add(name);
    }
  }
  return new Set([...used].filter((name) => name in STYLES));
}
