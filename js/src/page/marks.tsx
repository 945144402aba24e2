/** Marks of the picture as SVG: as elements for the drawing, as components for the panels. */

import { createElement, type VNode } from "preact";
import type { Mark } from "../picture/marks.ts";
import { classAttribute } from "../picture/tokens.ts";
import { type Attributes, svg } from "./elements.ts";

/** A mark as an SVG tag with attributes. `runs`: parts of a text with classes of their own. */
interface Shape {
  tag: "rect" | "path" | "text";
  attributes: Attributes;
  text?: string;
  runs?: { text: string; class: string }[] | undefined;
}

function shapeOf(mark: Mark): Shape {
  const name = classAttribute(mark.classes);
  switch (mark.kind) {
    case "rect":
      return {
        tag: "rect",
        attributes: { class: name, x: mark.x, y: mark.y, width: mark.w, height: mark.h, rx: mark.r },
      };
    case "path":
      return { tag: "path", attributes: { class: name, d: mark.d } };
    case "text":
      return {
        tag: "text",
        attributes: { class: name, x: mark.x, y: mark.y, "text-anchor": mark.anchor },
        text: mark.text,
        runs: mark.runs?.map((run) => ({ text: run.text, class: classAttribute(run.classes) })),
      };
  }
}

export function drawMarks(marks: readonly Mark[]): SVGElement[] {
  return marks.map((mark) => {
    const { tag, attributes, text, runs } = shapeOf(mark);
    if (runs) return svg(tag, attributes, ...runs.map((run) => svg("tspan", { class: run.class }, run.text)));
    return text === undefined ? svg(tag, attributes) : svg(tag, attributes, text);
  });
}

export function MarkShapes({ marks }: { marks: readonly Mark[] }): VNode {
  return (
    <>
      {marks.map((mark) => {
        const { tag, attributes, text, runs } = shapeOf(mark);
        const parts = runs?.map((run) => <tspan class={run.class}>{run.text}</tspan>);
        return createElement(tag, attributes as object, parts ?? text);
      })}
    </>
  );
}

interface GlyphProps {
  marks: readonly Mark[];
  width: number;
  height: number;
  /** Left and top of the visible part. */
  origin?: string;
  class?: string;
  /** Name for screen readers; absent: it is decoration. */
  label?: string | undefined;
}

/** Marks as a small picture of its own. */
export function Glyph({ marks, width, height, origin = "0 0", label, class: more = "" }: GlyphProps): VNode {
  const meaning =
    label === undefined ? { "aria-hidden": "true" as const } : { role: "img" as const, "aria-label": label };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: it is called by its label, or it is decoration
    <svg
      class={more ? `gw-glyph ${more}` : "gw-glyph"}
      width={width}
      height={height}
      viewBox={`${origin} ${width} ${height}`}
      {...meaning}
    >
      <MarkShapes marks={marks} />
    </svg>
  );
}
