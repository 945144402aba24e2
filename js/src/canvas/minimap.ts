/**
 * A small map in a corner, there only while the picture does not fit. Decoration for the pointer; keys do all it does.
 *
 * It stands in the corner where it covers the least of the picture. While the user moves the picture it stays where it
 * is; when the picture rests, and the pointer is not on the map, it moves out of the way.
 */
import { setAttribute, setAttributes, svg } from "../page/elements.ts";
import { drag } from "../page/pointer.ts";
import { isCard, type Space } from "./space.ts";
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

const CORNERS = ["bottom right", "bottom left", "top right", "top left"] as const;
type Corner = (typeof CORNERS)[number];

export class Minimap {
  readonly #cards = svg("path", { class: "g-node" });
  readonly #seen = svg("rect", { class: "g-focus" });
  readonly element = svg("svg", { class: "gw-mini", "aria-hidden": "true" }, this.#cards, this.#seen);
  readonly #viewport: Viewport;
  readonly #moved: () => void;
  #content: Box = { x: 0, y: 0, w: 0, h: 0 };
  /** All cards of the picture. */
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
    const cards = scene.items.filter(isCard);
    this.#all = cards;
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
    const before = this.#corner;
    this.#moveAway();
    if (this.#corner !== before) this.#moved();
  }

  /** Moves to the corner where the map covers the least. */
  #moveAway(): void {
    if (this.element.matches(":hover")) return;
    let least = Number.POSITIVE_INFINITY;
    // The present corner wins a tie.
    for (const corner of [this.#corner, ...CORNERS]) {
      const covered = this.#coveredAt(corner);
      if (covered >= least) continue;
      least = covered;
      this.#corner = corner;
    }
    setAttribute(this.element, "data-corner", this.#corner);
  }

  /** Area of the cards that the map would cover in a corner. */
  #coveredAt(corner: Corner): number {
    const box = this.#boxAt(corner);
    const [left, top] = this.#viewport.toWorld(box.x, box.y);
    const [right, bottom] = this.#viewport.toWorld(box.x + box.w, box.y + box.h);
    let covered = 0;
    for (const { x, y, w, h } of this.#all) {
      const wide = Math.min(right, x + w) - Math.max(left, x);
      const high = Math.min(bottom, y + h) - Math.max(top, y);
      if (wide > 0 && high > 0) covered += wide * high;
    }
    return covered;
  }
}
