/** A small map in the corner, there only while the picture does not fit. Decoration for the pointer; keys do all it does. */
import { h } from "./dom.ts";
import type { Scene } from "./picture/scene.ts";
import type { Box, Viewport } from "./viewport.ts";

const WIDE = 120;
const HIGH = 84;

export class Minimap {
  readonly el = h("canvas", {
    class: "gw-mini",
    "aria-hidden": "true",
    width: WIDE * 2,
    height: HIGH * 2,
    hidden: true,
  });
  private readonly viewport: Viewport;
  private scene: Scene | null = null;
  private content: Box = { x: 0, y: 0, w: 1, h: 1 };
  private map: ImageData | null = null;

  constructor(viewport: Viewport, signal: AbortSignal) {
    this.viewport = viewport;
    let down = false;
    const go = (event: PointerEvent) => {
      const box = this.el.getBoundingClientRect();
      const [k, dx, dy] = this.fit();
      const x = (event.clientX - box.left - dx) / k + this.content.x;
      const y = (event.clientY - box.top - dy) / k + this.content.y;
      const [sx, sy] = viewport.toScreen(x, y);
      viewport.pan(viewport.width / 2 - sx, viewport.height / 2 - sy);
    };
    this.el.addEventListener(
      "pointerdown",
      (event) => {
        down = true;
        this.el.setPointerCapture?.(event.pointerId);
        event.stopPropagation();
        go(event);
      },
      { signal },
    );
    this.el.addEventListener("pointermove", (event) => down && go(event), { signal });
    for (const end of ["pointerup", "pointercancel"]) this.el.addEventListener(end, () => (down = false), { signal });
  }

  load(scene: Scene, content: Box): void {
    this.scene = scene;
    this.content = content;
    this.map = null;
  }

  forget(): void {
    this.map = null;
  }

  private fit(): [number, number, number] {
    const k = Math.min(WIDE / this.content.w, HIGH / this.content.h);
    return [k, (WIDE - this.content.w * k) / 2, (HIGH - this.content.h * k) / 2];
  }

  paint(): void {
    const seen = this.viewport.seen();
    const { x, y, w, h } = this.content;
    const fits = seen.x <= x + 1 && seen.y <= y + 1 && seen.x + seen.w >= x + w - 1 && seen.y + seen.h >= y + h - 1;
    this.el.hidden = fits || !this.scene?.items.length;
    const context = this.el.hidden ? null : this.el.getContext("2d", { willReadFrequently: true });
    if (!context || !this.scene) return;
    const style = getComputedStyle(this.el);
    const [k, dx, dy] = this.fit();
    context.setTransform(2, 0, 0, 2, 0, 0);
    if (this.map) context.putImageData(this.map, 0, 0);
    else {
      context.clearRect(0, 0, WIDE, HIGH);
      context.fillStyle = style.getPropertyValue("--g-nodeb");
      for (const item of this.scene.items) {
        if (item.role !== "node" && item.role !== "group" && item.role !== "root") continue;
        context.fillRect(
          (item.x - x) * k + dx,
          (item.y - y) * k + dy,
          Math.max(0.7, item.w * k),
          Math.max(0.7, item.h * k),
        );
      }
      this.map = context.getImageData(0, 0, WIDE * 2, HIGH * 2);
    }
    context.strokeStyle = style.getPropertyValue("--g-acc");
    context.lineWidth = 1.5;
    context.strokeRect((seen.x - x) * k + dx, (seen.y - y) * k + dy, seen.w * k, seen.h * k);
  }
}
