/** The camera over the picture: pan by drag, zoom with ctrl + wheel, never the page's plain scroll. */

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export const SMALLEST = 0.04;
export const LARGEST = 3;
/** Below this not even names are drawn at 9 px: the first look at a graph never goes below it. */
export const READABLE = 0.551;
/** From here on everything is written out; from `NEARLY` on that is worth cutting something off. */
export const FULL = 0.8;
export const NEARLY = 0.7;
const MARGIN = 12;

export class Viewport {
  scale = 1;
  x = 0;
  y = 0;
  width = 600;
  height = 400;
  /** Whether the user has taken the camera; until then it follows the picture. */
  taken = false;
  private readonly moved: () => void;

  constructor(moved: () => void) {
    this.moved = moved;
  }

  /** Everything on screen, at most at natural size. `smallest` limits how far away that may be. */
  fit(content: Box, smallest = SMALLEST, anchor: Box | null = null): void {
    this.scale = Math.min(1, Math.max(smallest, this.whole(content)));
    this.x = this.centred(content.x, content.w, this.width, anchor?.x, anchor?.w);
    this.y = this.centred(content.y, content.h, this.height, anchor?.y, anchor?.h);
    this.moved();
  }

  /** The scale at which a box just fits. */
  whole(content: Box): number {
    const wide = (this.width - 2 * MARGIN) / Math.max(1, content.w);
    return Math.min(wide, (this.height - 2 * MARGIN) / Math.max(1, content.h));
  }

  /** Offset that centres a stretch, or, where it does not fit, keeps the anchor in and the rest as full as possible. */
  private centred(start: number, length: number, room: number, anchor?: number, anchorLength = 0): number {
    const size = length * this.scale;
    if (size <= room - 2 * MARGIN) return (room - size) / 2 - start * this.scale;
    const first = MARGIN - start * this.scale;
    const last = room - MARGIN - size - start * this.scale;
    if (anchor === undefined) return first;
    const wanted = room / 2 - (anchor + anchorLength / 2) * this.scale;
    return Math.min(first, Math.max(last, wanted));
  }

  /** Moves as little as possible so that `box` is inside. True if it had to. */
  show(box: Box, margin = 16): boolean {
    const [x0, y0] = this.toScreen(box.x, box.y);
    const [x1, y1] = this.toScreen(box.x + box.w, box.y + box.h);
    const dx = nudge(x0, x1, this.width, margin);
    const dy = nudge(y0, y1, this.height, margin);
    if (!dx && !dy) return false;
    this.x += dx;
    this.y += dy;
    this.moved();
    return true;
  }

  zoom(factor: number, atX = this.width / 2, atY = this.height / 2): void {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.scale * factor));
    const real = scale / this.scale;
    this.x = atX - (atX - this.x) * real;
    this.y = atY - (atY - this.y) * real;
    this.scale = scale;
    this.taken = true;
    this.moved();
  }

  pan(dx: number, dy: number): void {
    this.x += dx;
    this.y += dy;
    this.taken = true;
    this.moved();
  }

  toScreen(x: number, y: number): [number, number] {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  toWorld(x: number, y: number): [number, number] {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  /** The part of the picture that is on screen. */
  seen(): Box {
    const [x, y] = this.toWorld(0, 0);
    return { x, y, w: this.width / this.scale, h: this.height / this.scale };
  }
}

function nudge(start: number, end: number, room: number, margin: number): number {
  if (end - start > room - 2 * margin) return margin - start;
  if (start < margin) return margin - start;
  return end > room - margin ? room - margin - end : 0;
}

/** Connects pointer and wheel. A press that moves less than 4 px is a click and is left alone. */
export function gestures(el: HTMLElement, viewport: Viewport, signal: AbortSignal): { dragged(): boolean } {
  let from: { x: number; y: number; id: number } | null = null;
  let dragged = false;
  const options = { signal };
  el.addEventListener(
    "pointerdown",
    (event) => {
      dragged = false;
      if (event.button === 0 && !(event.target as Element).closest("button, input, label, .gw-mini")) {
        from = { x: event.clientX, y: event.clientY, id: event.pointerId };
      }
    },
    options,
  );
  el.addEventListener(
    "pointermove",
    (event) => {
      if (!from || event.pointerId !== from.id) return;
      const dx = event.clientX - from.x;
      const dy = event.clientY - from.y;
      if (!dragged && Math.abs(dx) + Math.abs(dy) < 4) return;
      if (!dragged) el.setPointerCapture?.(event.pointerId);
      dragged = true;
      el.classList.add("gw-drag");
      viewport.pan(dx, dy);
      from = { x: event.clientX, y: event.clientY, id: event.pointerId };
    },
    options,
  );
  for (const end of ["pointerup", "pointercancel"]) {
    el.addEventListener(
      end,
      () => {
        from = null;
        el.classList.remove("gw-drag");
      },
      options,
    );
  }
  el.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // plain wheel belongs to the page
      event.preventDefault();
      const box = el.getBoundingClientRect();
      viewport.zoom(
        Math.exp(-event.deltaY / (event.deltaMode === 1 ? 10 : 300)),
        event.clientX - box.left,
        event.clientY - box.top,
      );
    },
    { signal, passive: false },
  );
  return { dragged: () => dragged };
}
