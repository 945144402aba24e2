/** Pointers and the wheel move the camera: drag to pan, two fingers or Ctrl + wheel to zoom; not the page's scroll. */

import { SLACK } from "../page/pointer.ts";
import type { Viewport } from "./viewport.ts";

/** Distance of the wheel in px that zooms by a factor of e. */
const WHEEL = 300;

interface Point {
  x: number;
  y: number;
}

const middle = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
const distance = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y);

/** `dragged`: whether the last press moved the picture and so is no click. */
export function followGestures(element: HTMLElement, viewport: Viewport): { dragged(): boolean } {
  /** Positions of the pressed pointers by id, in the order of their presses. */
  const pointers = new Map<number, Point>();
  let dragged = false;

  /** Moves the picture with one pointer, or with two as if they held it. */
  function move(id: number, to: Point): void {
    const from = pointers.get(id)!;
    const other = [...pointers].find(([each]) => each !== id)?.[1];
    pointers.set(id, to);
    if (!other) {
      viewport.pan(to.x - from.x, to.y - from.y);
      return;
    }
    const before = middle(from, other);
    const after = middle(to, other);
    const { left, top } = element.getBoundingClientRect();
    viewport.pan(after.x - before.x, after.y - before.y);
    const factor = distance(to, other) / Math.max(1, distance(from, other));
    if (factor > 0) viewport.zoom(factor, after.x - left, after.y - top);
  }

  element.addEventListener("pointerdown", (event) => {
    if (pointers.size === 0) dragged = false;
    const isElsewhere = (event.target as Element).closest("button, .gw-mini") !== null;
    if (event.button !== 0 || isElsewhere || pointers.size === 2) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  element.addEventListener("pointermove", (event) => {
    const from = pointers.get(event.pointerId);
    if (!from) return;
    const to = { x: event.clientX, y: event.clientY };
    if (!dragged && pointers.size === 1 && Math.abs(to.x - from.x) + Math.abs(to.y - from.y) < SLACK) return;
    if (!dragged) element.setPointerCapture?.(event.pointerId);
    dragged = true;
    move(event.pointerId, to);
  });
  const release = (event: PointerEvent) => void pointers.delete(event.pointerId);
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);

  // Vertical moves of one finger scroll the page; two fingers do not.
  const keepPage = (event: TouchEvent) => {
    if (event.touches.length > 1 && event.cancelable) event.preventDefault();
  };
  element.addEventListener("touchstart", keepPage, { passive: false });
  element.addEventListener("touchmove", keepPage, { passive: false });

  element.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the plain wheel scrolls the page
      event.preventDefault();
      const { left, top } = element.getBoundingClientRect();
      viewport.zoom(Math.exp(-event.deltaY / WHEEL), event.clientX - left, event.clientY - top);
    },
    { passive: false },
  );
  return { dragged: () => dragged };
}
