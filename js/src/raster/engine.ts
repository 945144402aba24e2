/** The entry of the engine that Python embeds: a wire message as SVG text, or as a bitmap. No DOM. */

import { measureByTable } from "../picture/measure.ts";
import { type DrawOptions, sceneOf } from "../picture/picture.ts";
import { sheetOf } from "../picture/sheet.ts";
import { decode } from "../picture/wire.ts";
import { rasterOf } from "./index.ts";

export { draw } from "../picture/picture.ts";

/** Pixels in all: a larger picture has fewer for one px. */
const MOST_PIXELS = 2_400_000;
const CHUNK = 8192;

export interface RasterOptions extends DrawOptions {
  /** Pixels for one px. */
  scale?: number;
}

/**
 * A wire message as a bitmap: JSON with its size, the palette and the scale, then one character for each pixel, its
 * place in the palette.
 */
export function raster(wire: string, options: RasterOptions = {}): string {
  const graph = decode(wire);
  const scene = sheetOf(sceneOf(graph, options), graph, measureByTable, options.title ?? "");
  const scale = Math.min(options.scale ?? 2, Math.sqrt(MOST_PIXELS / (scene.width * scene.height)));
  const { width, height, palette, pixels } = rasterOf(scene, scale, options.theme === "dark" ? "dark" : "light");
  const parts = [JSON.stringify({ width, height, scale, palette: palette.flat() }), "\n"];
  for (let at = 0; at < pixels.length; at += CHUNK)
    parts.push(String.fromCharCode.apply(null, pixels.subarray(at, at + CHUNK) as unknown as number[]));
  return parts.join("");
}
