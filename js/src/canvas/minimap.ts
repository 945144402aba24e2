/**
 * A small map in a corner, there only while the picture does not fit. Decoration for the pointer; keys do all it does.
 *
 * It stands in a corner where it covers nothing. While the user moves the picture it stays where it is; when the picture
 * rests, and the pointer is not on the map, it moves out of the way, or goes if there is no free corner.
 */
import { setAttribute, setAttributes, svg } from "../page/elements.ts";
import { drag } from "../page/pointer.ts";
import { unite } from "../picture/scene/rects.ts";
import type { Item, Role } from "../picture/scene/types.ts";
import { isFocusable, type Space } from "./space.ts";
import type { Box, Viewport } from "./viewport.ts";

/** Largest number of cards on the map: they show the shape of a picture. Of more cards only every k-th is drawn. */
const MOST = 4000;
/** If at most this share of the picture is out of view, there is no map: it would hide more than it shows. */
const NEARLY = 0.25;
/** Its size and its distance from the edges; the same numbers as in canvas.css. */
const WIDTH = 120;
const HEIGHT = 84;
const MARGIN = 8;
/** Milliseconds after the last move until the picture counts as resting. */
const REST_MS = 400;

/** What the map must not cover: everything but lines and areas. */
export const COVERABLE: ReadonlySet<Role> = new Set([
  "node",
  "group",
  "leaf",
  "root",
  "note",
  "tag",
  "octagon",
  "rail",
]);

/** An item with the buttons under it. */
const withButtons = (item: Item): Box => (item.buttons ? unite([item, shifted(item.buttons, item)]) : item);
const shifted = ({ x, y, w, h }: Box, by: Box): Box => ({ x: x + by.x, y: y + by.y, w, h });

const CORNERS = ["bottom right", "bottom left", "top right", "top left"] as const;
type Corner = (typeof CORNERS)[number];

export class Minimap {
  readonly #cards = svg("path", { class: "g-node" });
  readonly #seen = svg("rect", { class: "g-focus" });
  readonly element = svg(
    "svg",
    { class: "gw-mini", "aria-hidden": "true", "data-role": "map" },
    this.#cards,
    this.#seen,
  );
  readonly #viewport: Viewport;
  readonly #moved: () => void;
  #content: Box = { x: 0, y: 0, w: 0, h: 0 };
  /** All that it must not cover. */
  #all: readonly Box[] = [];
  #corner: Corner = "bottom right";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `moved`: called when the map has changed its corner, so that the buttons can keep off it. */
  constructor(viewport: Viewport, moved: () => void = () => {}) {
    this.#viewport = viewport;
    this.#moved = moved;
    const go = ({ clientX, clientY }: PointerEvent) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.element.getScreenCTM()!.inverse());
      viewport.centre(x, y);
      return true;
    };
    drag(this.element, go, (_dx, _dy, event) => go(event));
  }

  load({ content, scene }: Space): void {
    this.#content = content;
    const { x, y, w, h } = content;
    setAttribute(this.element, "viewBox", `${x} ${y} ${w} ${h}`);
    const cards = scene.items.filter(isFocusable);
    this.#all = scene.items.filter(({ role }) => COVERABLE.has(role)).map(withButtons);
    const every = Math.ceil(cards.length / MOST);
    const drawn = cards.filter((_, i) => i % every === 0);
    setAttribute(this.#cards, "d", drawn.map(({ x, y, w, h }) => `M${x} ${y}h${w}v${h}h${-w}z`).join(""));
  }

  /** Stops the timer; after this the map does not move any more. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  paint(): void {
    clearTimeout(this.#timer);
    const { x, y, w, h } = this.#viewport.seen();
    const all = this.#content;
    const isIn = (at: number, room: number, start: number, size: number) =>
      at <= start + size * NEARLY && at + room >= start + size * (1 - NEARLY);
    const whole = isIn(x, w, all.x, all.w) && isIn(y, h, all.y, all.h);
    setAttribute(this.element, "hidden", whole);
    if (whole) return;
    setAttributes(this.#seen, { x, y, width: w, height: h });
    if (this.#viewport.taken) this.#timer = setTimeout(() => this.#atRest(), REST_MS);
    else this.#moveAway();
  }

  /** The part of the screen that the map covers; null: there is no map. */
  covers(): Box | null {
    return this.element.hasAttribute("hidden") ? null : this.#boxAt(this.#corner);
  }

  #boxAt(corner: Corner): Box {
    const { width, height } = this.#viewport;
    const [vertical, horizontal] = corner.split(" ");
    return {
      x: horizontal === "right" ? width - MARGIN - WIDTH : MARGIN,
      y: vertical === "bottom" ? height - MARGIN - HEIGHT : MARGIN,
      w: WIDTH,
      h: HEIGHT,
    };
  }

  #atRest(): void {
    const before = this.covers();
    this.#moveAway();
    if (JSON.stringify(this.covers()) !== JSON.stringify(before)) this.#moved();
  }

  /** Moves to a corner where the map covers nothing; without one the map goes. */
  #moveAway(): void {
    if (this.element.matches(":hover")) return;
    // The present corner is tried first, so that the map moves only if it has to.
    const free = [this.#corner, ...CORNERS].find((corner) => this.#isFree(corner));
    setAttribute(this.element, "hidden", free === undefined);
    if (free === undefined) return;
    this.#corner = free;
    setAttribute(this.element, "data-corner", free);
  }

  /** Whether the map would cover nothing in a corner. */
  #isFree(corner: Corner): boolean {
    const box = this.#boxAt(corner);
    const [left, top] = this.#viewport.toWorld(box.x, box.y);
    const [right, bottom] = this.#viewport.toWorld(box.x + box.w, box.y + box.h);
    return !this.#all.some(({ x, y, w, h }) => x < right && x + w > left && y < bottom && y + h > top);
  }
}
