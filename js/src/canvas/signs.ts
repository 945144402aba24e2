/** Signs over the drawing, as SVG at every size of a scene; and dots that run along wires. */

import { setAttributes, svg } from "../page/elements.ts";
import { drawMarks } from "../page/marks.tsx";
import type { Item } from "../picture/scene/types.ts";

/** More wires than these that end at one item get no dot. */
const MOST_DOTS = 12;

export class Signs {
  readonly element: SVGGElement;
  /** The items that the signs are about. */
  keys: readonly string[] = [];
  /** The signs on screen, with what they were made of, by key. */
  #drawn = new Map<string, { made: string; element: SVGElement }>();

  constructor(name: string) {
    this.element = svg("g", { class: `gw-signs ${name}`, "aria-hidden": "true" });
  }

  /** `wired`: items among which the wires are that lead to those of `keys`; a dot runs along each. */
  draw(items: readonly Item[], keys: readonly string[] = [], wired: readonly Item[] = []): void {
    this.keys = keys;
    const ends = keys.map((key) => `>${key}`);
    const wires = wired.filter(({ key, role }) => role === "wire" && ends.some((end) => key.endsWith(end)));
    // From one step to the next hardly anything changes: what is the same stays.
    const before = this.#drawn;
    this.#drawn = new Map();
    let cursor: ChildNode | null = this.element.firstChild;
    for (const item of items) {
      const made = JSON.stringify([item.x, item.y, item.marks]);
      const old = before.get(item.key);
      const element = old?.made === made ? old.element : sign(item);
      this.#drawn.set(item.key, { made, element });
      if (element === cursor) cursor = cursor.nextSibling;
      else this.element.insertBefore(element, cursor);
    }
    while (cursor) {
      const next: ChildNode | null = cursor.nextSibling;
      cursor.remove();
      cursor = next;
    }
    this.element.append(...wires.slice(0, MOST_DOTS).flatMap(dot));
  }
}

function sign({ key, x, y, marks }: Item): SVGElement {
  return svg("g", { "data-sign": key, transform: `translate(${x} ${y})` }, ...drawMarks(marks));
}

/** A dot that runs along a wire once, from the loss towards the leaves. */
function dot({ x, y, marks }: Item): SVGElement[] {
  const course = marks.find((mark) => mark.kind === "path");
  if (course?.kind !== "path") return [];
  const circle = svg("circle", { class: "gw-dot", r: 3.5 });
  circle.style.setProperty("offset-path", `path("${course.d}")`);
  const place = svg("g", {}, circle);
  setAttributes(place, { transform: `translate(${x} ${y})` });
  return [place];
}
