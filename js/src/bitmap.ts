/**
 * The picture as a bitmap, for scenes that are too large for the DOM: the same marks, culled by a
 * grid, with less detail the farther away. Panning only moves the last bitmap, which is larger than
 * the view; it is drawn anew when the camera rests, or has left it.
 */
import { h } from "./dom.ts";
import { type Graph, SLOT } from "./picture/model.ts";
import type { Item, Mark, Scene } from "./picture/scene.ts";
import { styleOf, type Token } from "./picture/tokens.ts";
import type { Viewport } from "./viewport.ts";

const CELL = 512;
/** Part of the view that the bitmap is larger on each side. */
const SPARE = 0.4;
const REST_MS = 70;
/** Smaller text than this many px is left out. */
const LEAST_TEXT = 7;
/** Below this scale a card is a bar that shows its state only. */
const BAR_SCALE = 0.3;
const STATE_TOKEN: Record<string, Token> = {
  held: "slot",
  mixed: "mem",
  stale: "st",
  packed: "slot",
  freed: "bg",
  none: "bg",
};

interface Camera {
  scale: number;
  x: number;
  y: number;
}

function isCard(item: Item): boolean {
  return item.role === "node" || item.role === "group" || item.role === "leaf" || item.role === "root";
}

export class Bitmap {
  readonly el = h("canvas", { class: "gw-bitmap", "aria-hidden": "true", hidden: true });
  private readonly root: HTMLElement;
  private readonly viewport: Viewport;
  private scene: Scene | null = null;
  private graph: Graph | null = null;
  private grid = new Map<number, number[]>();
  private columns = 1;
  private camera: Camera | null = null;
  private cost = 0;
  private drawnAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly colours = new Map<string, string>();
  private readonly paths = new Map<string, Path2D>();

  constructor(root: HTMLElement, viewport: Viewport) {
    this.root = root;
    this.viewport = viewport;
  }

  load(scene: Scene | null, graph: Graph | null): void {
    this.scene = scene;
    this.graph = graph;
    this.camera = null;
    this.grid.clear();
    if (this.paths.size > 20000) this.paths.clear();
    this.el.hidden = scene === null;
    if (scene) this.index(scene);
  }

  private index(scene: Scene): void {
    this.columns = Math.ceil(scene.width / CELL) + 2;
    scene.items.forEach((item, i) => {
      for (const key of this.cells(item.x, item.y, item.w, item.h)) {
        const list = this.grid.get(key);
        if (list) list.push(i);
        else this.grid.set(key, [i]);
      }
    });
  }

  private *cells(x: number, y: number, w: number, h: number): Generator<number> {
    for (let row = Math.floor(y / CELL); row <= Math.floor((y + h) / CELL); row++) {
      for (let column = Math.floor(x / CELL); column <= Math.floor((x + w) / CELL); column++)
        yield row * this.columns + column;
    }
  }

  /** Items that touch a part of the picture, in drawing order. */
  private within(x: number, y: number, w: number, h: number): Item[] {
    const { items } = this.scene!;
    const found = new Set<number>();
    for (const key of this.cells(x, y, w, h)) for (const i of this.grid.get(key) ?? []) found.add(i);
    return [...found].sort((a, b) => a - b).map((i) => items[i]!);
  }

  hit(x: number, y: number): Item | null {
    if (!this.scene) return null;
    const under = this.within(x, y, 0, 0).filter(
      (item) => isCard(item) && x >= item.x && x <= item.x + item.w && y >= item.y && y <= item.y + item.h,
    );
    return under[under.length - 1] ?? null;
  }

  resize(): void {
    this.camera = null;
  }

  forget(): void {
    this.colours.clear();
    this.camera = null;
  }

  /** Brings the bitmap where the camera looks; draws it anew at once only if that is cheap or cannot wait. */
  paint(): void {
    if (!this.scene) return;
    const covered = this.camera !== null && this.covers(this.camera);
    if (!this.camera || (!covered && (this.cost < 8 || performance.now() - this.drawnAt > 150))) {
      this.render();
      return;
    }
    this.slide(this.camera);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.scene && this.render(), REST_MS);
  }

  private covers(camera: Camera): boolean {
    const { scale, x, y, width, height } = this.viewport;
    const k = scale / camera.scale;
    const left = x - camera.x * k;
    const top = y - camera.y * k;
    const spareX = width * SPARE * k;
    const spareY = height * SPARE * k;
    const inside =
      left - spareX <= 0 &&
      top - spareY <= 0 &&
      left + (width + width * SPARE) * k >= width &&
      top + (height + height * SPARE) * k >= height;
    return inside && k > 0.6 && k < 1.7;
  }

  private slide(camera: Camera): void {
    const { scale, x, y, width, height } = this.viewport;
    const k = scale / camera.scale;
    const left = x - (camera.x + width * SPARE) * k;
    const top = y - (camera.y + height * SPARE) * k;
    this.el.style.transform = `translate(${left}px,${top}px) scale(${k})`;
  }

  private render(): void {
    clearTimeout(this.timer);
    const started = performance.now();
    const { width, height, scale, x, y } = this.viewport;
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    const wide = width * (1 + 2 * SPARE);
    const high = height * (1 + 2 * SPARE);
    if (this.el.width !== Math.round(wide * ratio) || this.el.height !== Math.round(high * ratio)) {
      this.el.width = Math.round(wide * ratio);
      this.el.height = Math.round(high * ratio);
      this.el.style.width = `${wide}px`;
      this.el.style.height = `${high}px`;
    }
    this.camera = { scale, x, y };
    const context = this.el.getContext("2d");
    if (context) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.el.width, this.el.height);
      const dx = x + width * SPARE;
      const dy = y + height * SPARE;
      context.setTransform(scale * ratio, 0, 0, scale * ratio, dx * ratio, dy * ratio);
      const seen = this.within(-dx / scale, -dy / scale, wide / scale, high / scale);
      if (scale < BAR_SCALE) this.bars(context, seen, scale);
      else for (const item of seen) this.marks(context, item);
    }
    this.slide(this.camera);
    this.drawnAt = performance.now();
    this.cost = this.drawnAt - started;
  }

  private colour(token: string): string {
    let value = this.colours.get(token);
    if (value === undefined) {
      value = getComputedStyle(this.root).getPropertyValue(`--g-${token}`).trim() || "#888";
      this.colours.set(token, value);
    }
    return value;
  }

  /** Far away: one bar a card, filled by what it holds, all cards of one state in one path. */
  private bars(context: CanvasRenderingContext2D, items: readonly Item[], scale: number): void {
    const fills = new Map<string, Item[]>();
    const wires = new Path2D();
    const room = 1.2 / scale;
    for (const item of items) {
      if (item.role === "wire" && items.length < 6000) {
        for (const mark of item.marks)
          if (mark.t === "path") wires.addPath(this.path(mark.d), new DOMMatrix([1, 0, 0, 1, item.x, item.y]));
      } else if (isCard(item)) {
        const state = this.state(item);
        const list = fills.get(state);
        if (list) list.push(item);
        else fills.set(state, [item]);
      }
    }
    context.strokeStyle = this.colour("r1");
    context.lineWidth = 1 / scale;
    context.stroke(wires);
    for (const [state, list] of fills) {
      context.fillStyle = this.colour(STATE_TOKEN[state] ?? "bg");
      context.strokeStyle = this.colour("ink3");
      context.beginPath();
      for (const item of list) context.rect(item.x, item.y, Math.max(item.w, room), Math.max(item.h, room));
      context.fill();
      if (state === "freed" || state === "none" || state === "unknown") context.stroke();
    }
  }

  /** The state of a card without making its marks: a scene makes them only when they are looked at. */
  private state(item: Item): string {
    const { graph } = this;
    if (item.role !== "node" || item.index === undefined || !graph)
      return item.role === "group" ? (item.data?.state ?? "none") : "none";
    const from = graph.slotStart[item.index]!;
    const to = graph.slotStart[item.index + 1]!;
    const states = graph.slotState.subarray(from, to);
    if (states.includes(SLOT.stale)) return "stale";
    return states.includes(SLOT.held) || states.includes(SLOT.packed) ? "held" : "none";
  }

  private path(d: string): Path2D {
    let path = this.paths.get(d);
    if (!path) this.paths.set(d, (path = new Path2D(d)));
    return path;
  }

  private marks(context: CanvasRenderingContext2D, item: Item): void {
    context.translate(item.x, item.y);
    for (const mark of item.marks) this.mark(context, mark);
    context.translate(-item.x, -item.y);
  }

  private mark(context: CanvasRenderingContext2D, mark: Mark): void {
    if (mark.t === "text") {
      this.text(context, mark);
      return;
    }
    const style = styleOf(mark.c);
    let path: Path2D;
    if (mark.t === "path") path = this.path(mark.d);
    else {
      path = new Path2D();
      if (mark.t === "circle") path.arc(mark.x, mark.y, mark.r, 0, 7);
      else path.roundRect(mark.x, mark.y, mark.w, mark.h, mark.r ?? 0);
    }
    if (style.fill && style.fill !== "none") {
      context.fillStyle = this.colour(style.fill);
      context.fill(path);
    }
    if (style.stroke && style.stroke !== "none") {
      context.strokeStyle = this.colour(style.stroke);
      context.lineWidth = style.width ?? 1;
      context.setLineDash(style.dash ? [...style.dash] : []);
      context.lineCap = style.cap ?? "butt";
      context.lineJoin = style.join ?? "miter";
      context.stroke(path);
    }
  }

  private text(context: CanvasRenderingContext2D, mark: Mark & { t: "text" }): void {
    if ((styleOf(mark.c).size ?? 12) * (this.camera?.scale ?? 1) < LEAST_TEXT) return;
    context.save();
    context.translate(mark.x, mark.y);
    if (mark.turned) context.rotate(-Math.PI / 2);
    let x = 0;
    const runs = mark.runs ?? [{ s: mark.s, c: "" }];
    context.textAlign = mark.runs
      ? "left"
      : mark.anchor === "middle"
        ? "center"
        : mark.anchor === "end"
          ? "right"
          : "left";
    for (const run of runs) {
      const style = styleOf(run.c ? `${mark.c} ${run.c}` : mark.c);
      const family = getComputedStyle(this.root).getPropertyValue(
        style.font === "mono" ? "--g-font-mono" : "--g-font-ui",
      );
      context.font = `${style.weight ?? 400} ${style.size ?? 12}px ${family.trim() || "sans-serif"}`;
      context.fillStyle = this.colour(style.fill && style.fill !== "none" ? style.fill : "ink");
      context.fillText(run.s, x, 0);
      if (mark.runs) x += context.measureText(run.s).width;
    }
    context.restore();
  }
}
