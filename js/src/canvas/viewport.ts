/** The camera over the picture. */

import { FULL_SCALE } from "../picture/scene/context.ts";

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** A point of the picture is on screen at `scale` times its coordinates, plus x, y. */
export interface Camera {
  scale: number;
  x: number;
  y: number;
}

/** One step of the buttons and keys that zoom. */
export const ZOOM_STEP = 1.25;
const SMALLEST = 0.04;
const LARGEST = 3;
/** Below this scale not even names reach 9 px: the first view of a graph is never smaller. */
const READABLE = 0.551;
/**
 * From this scale on everything is written out. From `NEARLY` on that is worth cutting off a part; and below `FAR`, where
 * the first view shows only a part anyway.
 */
const FULL = FULL_SCALE;
const NEARLY = 0.7;
const FAR = 0.3;
/** A small picture is shown at most so large. */
export const LARGEST_FIT = 1.5;
/** The same for an audience. */
const PRESENTED = 2.2;
/** A camera stays while its scale is at most this many times smaller than the best one. */
const WORSE = 1.25;

export class Viewport implements Camera {
  scale = 1;
  x = 0;
  y = 0;
  width = 600;
  height = 400;
  /** Whether the user has moved the camera; until then it follows the picture. */
  taken = false;
  /** Whether the camera shows everything while it follows, however small. */
  fits = false;
  /** The largest scale that the camera chooses by itself. */
  most = LARGEST_FIT;
  /** Whether the camera stays: marks of a forecast must not move the button under the pointer. */
  rests = false;
  readonly #moved: () => void;

  constructor(moved: () => void) {
    this.#moved = moved;
  }

  go(camera: Camera): void {
    ({ scale: this.scale, x: this.x, y: this.y } = camera);
    this.#moved();
  }

  /** The first camera: everything, as large as fits, if readable or asked for; else the part with the anchor. */
  aim(content: Box, anchor: Box | undefined): Camera {
    const whole = this.whole(content);
    // To cut off a little is better than to lose all names of leaves and lines.
    const isCut = whole >= NEARLY || whole < FAR;
    const smallest = this.fits ? SMALLEST : isCut && content.w * FULL <= this.width ? FULL : READABLE;
    const scale = Math.min(this.most, Math.max(smallest, whole));
    const along = (start: number, length: number, room: number, from?: number, size = 0) =>
      centred(start * scale, length * scale, room, from === undefined ? from : (from + size / 2) * scale);
    return {
      scale,
      x: along(content.x, content.w, this.width, anchor?.x, anchor?.w),
      y: along(content.y, content.h, this.height, anchor?.y, anchor?.h),
    };
  }

  /** The camera that shows a column as far left as it has to be, and as large as it is or as there is room for it. */
  beside({ x, y, w, h }: Box): Camera {
    const scale = Math.max(READABLE, Math.min(this.scale, this.width / w));
    const middle = this.y + (y + h / 2) * this.scale;
    const left = this.x + (x + w) * this.scale > this.width ? this.width - (x + w) * scale : this.x;
    return { scale, x: left, y: middle - (y + h / 2) * scale };
  }

  /** For an audience the picture is as large as the room. */
  present(presents: boolean): void {
    this.most = presents ? PRESENTED : LARGEST_FIT;
    this.taken = false;
  }

  /** Whether the present camera still shows all of the content, and hardly smaller than the best one would. */
  suits({ x, y, w, h }: Box, best: Camera): boolean {
    const [left, top] = this.toScreen(x, y);
    const inside = left >= 0 && top >= 0 && left + w * this.scale <= this.width && top + h * this.scale <= this.height;
    return inside && best.scale <= this.scale * WORSE;
  }

  /** The largest scale at which a box fits. */
  whole({ w, h }: Box): number {
    return Math.min(this.width / w, this.height / h);
  }

  /** Moves the camera as little as possible so that `box` is inside. True if it moved. */
  show(box: Box, margin = 16): boolean {
    const { scale, x, y } = this;
    const dx = nudge(box.x * scale + x, box.w * scale, this.width, margin);
    const dy = nudge(box.y * scale + y, box.h * scale, this.height, margin);
    if (dx || dy) this.go({ scale, x: x + dx, y: y + dy });
    return Boolean(dx || dy);
  }

  zoom(factor: number, atX = this.width / 2, atY = this.height / 2): void {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.scale * factor));
    const real = scale / this.scale;
    this.taken = true;
    this.go({ scale, x: atX - (atX - this.x) * real, y: atY - (atY - this.y) * real });
  }

  pan(dx: number, dy: number): void {
    this.taken = true;
    this.go({ scale: this.scale, x: this.x + dx, y: this.y + dy });
  }

  /** Brings a point of the picture to the middle. */
  centre(x: number, y: number): void {
    const [left, top] = this.toScreen(x, y);
    this.pan(this.width / 2 - left, this.height / 2 - top);
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

/** Offset that centres a stretch; if it does not fit, one that shows the anchor and leaves no empty room. */
function centred(start: number, size: number, room: number, anchor: number | undefined): number {
  if (size <= room) return (room - size) / 2 - start;
  return anchor === undefined ? -start : Math.min(-start, Math.max(room - size - start, room / 2 - anchor));
}

function nudge(start: number, size: number, room: number, margin: number): number {
  if (start < margin || size > room - 2 * margin) return margin - start;
  return Math.min(0, room - margin - start - size);
}
