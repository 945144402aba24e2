/** Marks of the picture as SVG elements. */
import { s } from "./dom.ts";
import type { Mark } from "./picture/scene.ts";
import { classAttribute } from "./picture/tokens.ts";

export function drawMark(mark: Mark): SVGElement {
  const c = classAttribute(mark.c);
  switch (mark.t) {
    case "rect":
      return s("rect", { class: c, x: mark.x, y: mark.y, width: mark.w, height: mark.h, rx: mark.r });
    case "path":
      return s("path", { class: c, d: mark.d });
    case "circle":
      return s("circle", { class: c, cx: mark.x, cy: mark.y, r: mark.r });
    case "text": {
      const parts = mark.runs ? mark.runs.map((run) => s("tspan", { class: classAttribute(run.c) }, run.s)) : [mark.s];
      const turn = mark.turned ? `rotate(-90 ${mark.x} ${mark.y})` : null;
      return s("text", { class: c, x: mark.x, y: mark.y, "text-anchor": mark.anchor, transform: turn }, ...parts);
    }
  }
}

export function drawMarks(marks: readonly Mark[]): SVGElement[] {
  return marks.map(drawMark);
}
