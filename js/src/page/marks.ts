/** Marks of the picture as SVG elements. */
import type { Mark } from "../picture/marks.ts";
import { classAttribute } from "../picture/tokens.ts";
import { s } from "./dom.ts";

function drawMark(mark: Mark): SVGElement {
  const own = { class: classAttribute(mark.c) };
  switch (mark.t) {
    case "rect":
      return s("rect", own, { x: mark.x, y: mark.y, width: mark.w, height: mark.h, rx: mark.r });
    case "path":
      return s("path", own, { d: mark.d });
    case "text": {
      const { x, y, anchor, runs } = mark;
      const parts = runs?.map((run) => s("tspan", { class: classAttribute(run.c) }, run.s)) ?? mark.s;
      return s("text", own, { x, y, "text-anchor": anchor }, parts);
    }
  }
}

export function drawMarks(marks: readonly Mark[]): SVGElement[] {
  return marks.map(drawMark);
}

/** Marks as a small picture of its own; decoration, unless `props` gives it a role. */
export function glyph(marks: readonly Mark[], width: number, height: number, box = "0 0", props = {}): SVGSVGElement {
  const size = { width, height, viewBox: `${box} ${width} ${height}` };
  return s("svg.gw-glyph", { "aria-hidden": "true", ...size, ...props }, drawMarks(marks));
}
