/** A small map in the corner, there only while the picture does not fit. Decoration for the pointer; keys do all it does. */
import { attr, drag, h } from "./dom.ts";
import { drive } from "./drive.ts";
import type { Slices } from "./picture/slices.ts";
import type { Space } from "./space.ts";
import { themeValue } from "./theme.ts";
import type { Box, Viewport } from "./viewport.ts";

const WIDE = 120;
const HIGH = 84;
const canvas = (props = {}) =>
  h("canvas.gw-mini", { "aria-hidden": "true", width: WIDE * 2, height: HIGH * 2, ...props });

export class Minimap {
  readonly el = canvas({ hidden: true });
  readonly #viewport: Viewport;
  #space: Space | null = null;
  /** The cards, drawn once a scene. */
  #map: HTMLCanvasElement | null = null;

  constructor(viewport: Viewport) {
    this.#viewport = viewport;
    const go = (event: PointerEvent) => {
      const { left, top } = this.el.getBoundingClientRect();
      const [k, dx, dy] = this.#fit();
      const [x, y] = viewport.toScreen((event.clientX - left - dx) / k, (event.clientY - top - dy) / k);
      viewport.pan(viewport.width / 2 - x, viewport.height / 2 - y);
    };
    drag(
      this.el,
      (_, __, event) => go(event),
      (event) => {
        event.stopPropagation();
        go(event);
        return true;
      },
    );
  }

  /** Draws the cards of a scene, in slices; null: those of the last one, in other colours. */
  load(space: Space | null): void {
    this.#map = null;
    const now = (this.#space = space ?? this.#space);
    if (!now) return;
    const map = canvas();
    void drive(this.#draw(now, map), () => this.#space === now && !this.#map).then((drawn) => {
      if (!drawn) return;
      this.#map = map;
      this.paint();
    });
  }

  /** Where it would stand on screen, above or below. */
  #corner(low: boolean): Box {
    const { width, height } = this.#viewport;
    return { x: width - 8 - WIDE, y: low ? height - 8 - HIGH : 8, w: WIDE, h: HIGH };
  }

  /** What of the screen it covers. */
  covers(): Box[] {
    return this.el.hidden ? [] : [this.#corner("low" in this.el.dataset)];
  }

  /** Goes to the corner where it covers less of the picture. */
  #dodge(): void {
    const cards = (low: boolean) => {
      const { x, y, w, h } = this.#corner(low);
      let found = 0;
      for (let dx = 0; dx <= w; dx += 8)
        for (let dy = 0; dy <= h; dy += 6) if (this.#space!.at(...this.#viewport.toWorld(x + dx, y + dy))) found++;
      return found;
    };
    attr(this.el, "data-low", cards(true) < cards(false));
  }

  /** From the picture to the map: scale, then offset. */
  #fit(): [number, number, number] {
    const { x, y, w, h } = this.#space!.content;
    const k = Math.min(WIDE / w, HIGH / h);
    return [k, (WIDE - w * k) / 2 - x * k, (HIGH - h * k) / 2 - y * k];
  }

  #context(of: HTMLCanvasElement): CanvasRenderingContext2D | null {
    const context = of.getContext("2d");
    context?.setTransform(2, 0, 0, 2, 0, 0);
    context?.clearRect(0, 0, WIDE, HIGH);
    return context;
  }

  *#draw({ scene }: Space, map: HTMLCanvasElement): Slices<boolean> {
    const context = this.#context(map);
    if (!context) return false;
    const [k, dx, dy] = this.#fit();
    context.fillStyle = themeValue(this.el, "nodeb");
    for (let i = 0; i < scene.items.length; i++) {
      const { role, x, y, w, h } = scene.items[i]!;
      if (i % 64 === 63) yield;
      if (role === "node" || role === "group" || role === "root")
        context.fillRect(x * k + dx, y * k + dy, Math.max(0.7, w * k), Math.max(0.7, h * k));
    }
    return true;
  }

  paint(): void {
    if (!this.#space || !this.#map) return;
    const seen = this.#viewport.seen();
    const { x, y, w, h } = this.#space.content;
    this.el.hidden = seen.x <= x + 1 && seen.y <= y + 1 && seen.x + seen.w >= x + w - 1 && seen.y + seen.h >= y + h - 1;
    const context = this.el.hidden ? null : this.#context(this.el);
    if (!context) return;
    if (!this.#viewport.taken) this.#dodge(); // and stays there while the user moves about
    const [k, dx, dy] = this.#fit();
    context.drawImage(this.#map, 0, 0, WIDE, HIGH);
    context.strokeStyle = themeValue(this.el, "acc");
    context.lineWidth = 1.5;
    context.strokeRect(seen.x * k + dx, seen.y * k + dy, seen.w * k, seen.h * k);
  }
}
