/** A small map in the corner, there only while the picture does not fit. Decoration for the pointer; keys do all it does. */
import { attr, attrs, drag, s } from "../page/dom.ts";
import { isCard, type Space } from "./space.ts";
import type { Box, Viewport } from "./viewport.ts";

/** So many cards show the shape of a picture; of more, only every so many-th is on the map. */
const MOST = 4000;
/** Where no more than this share of the picture is beyond a side, the map would hide more than it shows. */
const NEARLY = 0.25;

export class Minimap {
  readonly #cards = s("path.g-node");
  readonly #seen = s("rect.g-focus");
  readonly el = s("svg.gw-mini", { "aria-hidden": "true" }, this.#cards, this.#seen);
  readonly #viewport: Viewport;
  #content: Box = { x: 0, y: 0, w: 0, h: 0 };

  constructor(viewport: Viewport) {
    this.#viewport = viewport;
    const go = ({ clientX, clientY }: PointerEvent) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.el.getScreenCTM()!.inverse());
      viewport.centre(x, y);
      return true;
    };
    drag(this.el, go, (_, __, event) => go(event));
  }

  load({ content, scene }: Space): void {
    const { x, y, w, h } = (this.#content = content);
    attr(this.el, "viewBox", `${x} ${y} ${w} ${h}`);
    const cards = scene.items.filter(isCard);
    const every = Math.ceil(cards.length / MOST);
    const drawn = cards.filter((_, i) => i % every === 0);
    attr(this.#cards, "d", drawn.map(({ x, y, w, h }) => `M${x} ${y}h${w}v${h}h${-w}z`).join(""));
  }

  paint(): void {
    const { x, y, w, h } = this.#viewport.seen();
    const all = this.#content;
    const isIn = (at: number, room: number, start: number, size: number) =>
      at <= start + size * NEARLY && at + room >= start + size * (1 - NEARLY);
    const whole = isIn(x, w, all.x, all.w) && isIn(y, h, all.y, all.h);
    attr(this.el, "hidden", whole);
    attrs(this.#seen, { x, y, width: w, height: h });
  }
}
