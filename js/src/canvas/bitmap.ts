/**
 * The picture as a bitmap, for scenes that are too large for the DOM: the same marks, with less detail at small scales.
 *
 * A bitmap is larger than the view, so that panning only moves it. A new one is drawn in slices behind the one that is
 * on screen, when the camera rests or has left that one, and takes its place when it is whole.
 */

import { drive } from "../page/drive.ts";
import { html } from "../page/elements.ts";
import { themeValue } from "../page/theme.ts";
import type { Mark } from "../picture/marks.ts";
import type { Graph } from "../picture/model.ts";
import type { Item } from "../picture/scene/types.ts";
import type { Slices } from "../picture/slices.ts";
import { type Style, styleOf, type Token } from "../picture/tokens.ts";
import { nodeState, slotSummary } from "../picture/words.ts";
import { isFocusable, type Space } from "./space.ts";
import type { Camera, Viewport } from "./viewport.ts";

/** Margin of the bitmap around the view in px; whole pixels, or all of it would be blurred. */
const spare = (length: number) => Math.round(0.4 * length);
const REST_MS = 70;
/** Text smaller than this (px on screen) is left out. */
const LEAST_TEXT = 7;
/** Below this scale a card is a bar that shows its state only. */
const BAR_SCALE = 0.3;
/** Number of bars that are filled as one path. */
const TOGETHER = 200;
/** With more items than this in view, wires are left out: they would only be a blur. */
const MOST_WIRED = 6000;
const STATE_TOKEN: Record<string, Token> = { held: "slot", mixed: "nodeb", stale: "st", packed: "slot" };

const makeCanvas = () => html("canvas", { class: "gw-bitmap", "aria-hidden": "true", hidden: true });

/** The subject of a drawing: scene, graph, size and camera. */
interface Shot extends Camera {
  space: Space;
  graph: Graph;
  width: number;
  height: number;
  /** Number of changes of colours or marks up to this drawing. */
  colours: number;
}

export class Bitmap {
  /** The bitmap on screen. */
  element = makeCanvas();
  /** The next bitmap, drawn behind the one on screen. */
  #back = makeCanvas();
  readonly #root: HTMLElement;
  readonly #viewport: Viewport;
  #shot: Shot | null = null;
  /** The drawing under way. */
  #draws: Shot | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #colours = 0;
  readonly #values = new Map<string, string>();
  readonly #paths = new Map<string, Path2D>();

  constructor(root: HTMLElement, viewport: Viewport) {
    this.#root = root;
    this.#viewport = viewport;
  }

  /** Draws a scene as `camera` sees it. Resolves with a function that shows it; null: it is not `wanted` any more. */
  async prepare(space: Space, graph: Graph, camera: Camera, wanted: () => boolean): Promise<(() => void) | null> {
    const { width, height } = this.#viewport;
    const { scale, x, y } = camera;
    const shot: Shot = { space, graph, width, height, scale, x, y, colours: this.#colours };
    this.#draws = shot;
    const drawn = await drive(this.#draw(shot, this.#back), () => this.#draws === shot && wanted());
    if (this.#draws === shot) this.#draws = null;
    if (!drawn) return null;
    return () => {
      const old = this.element;
      old.replaceWith(this.#back);
      this.element = this.#back;
      this.#back = old;
      this.element.hidden = false;
      this.#shot = shot;
    };
  }

  /** Removes the bitmap. */
  clear(): void {
    this.element.hidden = true;
    this.#shot = null;
    this.#draws = null;
    this.#paths.clear();
  }

  hit(x: number, y: number): Item | undefined {
    return this.#shot?.space.at(x, y);
  }

  /** Draws again after a change of colours. */
  forget(): void {
    this.#values.clear();
    this.refresh();
  }

  /** Draws again after a change of some marks. */
  refresh(): void {
    this.#colours++;
    this.paint();
  }

  /** Moves the bitmap with the camera; draws another one if this one does not cover the view or is not sharp. */
  paint(): void {
    clearTimeout(this.#timer);
    const shot = this.#shot;
    if (!shot) return;
    const { scale, x, y, width, height } = this.#viewport;
    const k = scale / shot.scale;
    const left = x - (shot.x + spare(shot.width)) * k;
    const top = y - (shot.y + spare(shot.height)) * k;
    this.element.style.transform = `translate(${left}px,${top}px) scale(${k})`;
    const right = left + (shot.width + 2 * spare(shot.width)) * k;
    const bottom = top + (shot.height + 2 * spare(shot.height)) * k;
    const covers = left <= 0 && top <= 0 && right >= width && bottom >= height;
    const sharp = k === 1 && x === shot.x && y === shot.y && width === shot.width && height === shot.height;
    if (!covers || k < 0.6 || k > 1.7) void this.#again();
    else if (!sharp || shot.colours !== this.#colours) this.#timer = setTimeout(() => this.#again(), REST_MS);
  }

  async #again(): Promise<void> {
    const shot = this.#shot;
    if (this.#draws || !shot) return;
    const swap = await this.prepare(shot.space, shot.graph, this.#viewport, () => this.#shot === shot);
    swap?.();
    if (swap) this.paint();
  }

  *#draw(shot: Shot, element: HTMLCanvasElement): Slices<boolean> {
    const { scale, x, y, width, height, space } = shot;
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    const wide = width + 2 * spare(width);
    const high = height + 2 * spare(height);
    element.width = Math.round(wide * ratio); // also clears it
    element.height = Math.round(high * ratio);
    element.style.width = `${wide}px`;
    element.style.height = `${high}px`;
    const context = element.getContext("2d");
    if (!context) return true;
    const dx = x + spare(width);
    const dy = y + spare(height);
    context.setTransform(scale * ratio, 0, 0, scale * ratio, dx * ratio, dy * ratio);
    const seen = yield* space.within({ x: -dx / scale, y: -dy / scale, w: wide / scale, h: high / scale });
    if (scale < BAR_SCALE) yield* this.#bars(context, seen, shot);
    else
      for (const item of seen) {
        context.translate(item.x, item.y);
        for (const mark of item.marks) this.#mark(context, mark, scale);
        context.translate(-item.x, -item.y);
        yield;
      }
    return true;
  }

  /** A custom property of the theme. */
  #value(name: string): string {
    let value = this.#values.get(name);
    if (value === undefined) {
      value = themeValue(this.#root, name) || "#888";
      this.#values.set(name, value);
    }
    return value;
  }

  /** Draws cards at a small scale: one bar each, filled by its state. */
  *#bars(context: CanvasRenderingContext2D, items: readonly Item[], { scale, graph }: Shot): Slices<void> {
    context.strokeStyle = this.#value("r1");
    context.lineWidth = 1 / scale;
    if (items.length < MOST_WIRED)
      for (const item of items) {
        if (item.role !== "wire") continue;
        context.translate(item.x, item.y);
        for (const mark of item.marks) if (mark.kind === "path") context.stroke(this.#path(mark.d));
        context.translate(-item.x, -item.y);
        yield;
      }
    const room = 1.2 / scale;
    context.strokeStyle = this.#value("ink3");
    const bars = new Map<string, Item[]>();
    for (const item of items) {
      if (!isFocusable(item)) continue;
      const state = stateOf(item, graph);
      const list = bars.get(state) ?? [];
      list.push(item);
      bars.set(state, list);
      if (list.length < TOGETHER) continue;
      this.#fill(context, state, list, room);
      bars.delete(state);
      yield;
    }
    for (const [state, list] of bars) this.#fill(context, state, list, room);
  }

  #fill(context: CanvasRenderingContext2D, state: string, items: readonly Item[], room: number): void {
    const token = STATE_TOKEN[state];
    context.beginPath();
    for (const { x, y, w, h } of items) context.rect(x, y, Math.max(w, room), Math.max(h, room));
    context.fillStyle = this.#value(token ?? "bg");
    context.fill();
    if (!token) context.stroke();
  }

  #path(d: string): Path2D {
    let path = this.#paths.get(d);
    if (!path) {
      if (this.#paths.size > 20000) this.#paths.clear();
      path = new Path2D(d);
      this.#paths.set(d, path);
    }
    return path;
  }

  #mark(context: CanvasRenderingContext2D, mark: Mark, scale: number): void {
    const style = styleOf(mark.classes);
    if (mark.kind === "text") {
      if ((style.size ?? 12) * scale >= LEAST_TEXT) this.#text(context, mark);
      return;
    }
    const path = mark.kind === "path" ? this.#path(mark.d) : new Path2D();
    if (mark.kind === "rect") path.roundRect(mark.x, mark.y, mark.w, mark.h, mark.r ?? 0);
    const { fill, stroke, width, dash, cap } = style;
    if (fill && fill !== "none") {
      context.fillStyle = this.#value(fill);
      context.fill(path);
    }
    if (!stroke || stroke === "none") return;
    context.strokeStyle = this.#value(stroke);
    context.lineWidth = width ?? 1;
    context.setLineDash((dash ?? []) as number[]);
    context.lineCap = cap ?? "butt";
    context.stroke(path);
  }

  #text(context: CanvasRenderingContext2D, { x, y, text, classes, anchor, runs }: Mark & { kind: "text" }): void {
    context.save();
    context.translate(x, y);
    context.textAlign = runs ? "start" : anchor === "middle" ? "center" : (anchor ?? "start");
    let at = 0;
    for (const run of runs ?? [{ text, classes: "" }]) {
      const {
        weight = 400,
        size = 12,
        font = "ui",
        fill,
      }: Style = styleOf(run.classes ? `${classes} ${run.classes}` : classes);
      context.font = `${weight} ${size}px ${this.#value(`font-${font}`)}`;
      context.fillStyle = this.#value(fill && fill !== "none" ? fill : "ink");
      context.fillText(run.text, at, 0);
      if (runs) at += context.measureText(run.text).width;
    }
    context.restore();
  }
}

/** The state of a card, read from the graph: making the marks of each card would take long. */
function stateOf(item: Item, graph: Graph): string {
  if (item.role === "group") return item.data?.state ?? "none";
  return item.role === "node" && item.index !== undefined ? nodeState(slotSummary(graph, [item.index]).counts) : "none";
}
