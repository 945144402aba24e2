/**
 * The drawing: a scene as SVG groups, patched by key; as one bitmap if it is too large for the DOM.
 *
 * Every node, leaf and root is a `treeitem` of one `tree`; one of them is the tab stop. Marks of a
 * changed item may be drawn late (slots empty in the engine's order); its attributes never are.
 */

import { drive } from "../page/drive.ts";
import { focusedElement, html, setAttribute, setAttributes, svg } from "../page/elements.ts";
import { drawMarks } from "../page/marks.tsx";
import type { Graph } from "../picture/model.ts";
import { unite } from "../picture/scene/rects.ts";
import type { Item, Role } from "../picture/scene/types.ts";
import { runSlices, type Slices } from "../picture/slices.ts";
import { Bitmap } from "./bitmap.ts";
import { followGestures } from "./gestures.ts";
import { Minimap } from "./minimap.ts";
import { apart, nameOf, tipOf } from "./names.ts";
import { Signs } from "./signs.ts";
import { isFocusable, Space } from "./space.ts";
import { type Box, type Camera, Viewport } from "./viewport.ts";

/** More cards than this are drawn as a bitmap. */
export const MOST_CARDS = 300;
const MOST_ITEMS = 1500;
const MOST_RINGS = 400;

export interface CanvasEvents {
  press(item: Item, again: boolean): void;
  open(key: string): void;
  background(): void;
  /** A click on a sign of a prediction: the key of a slot. */
  mark(key: string): void;
  moved(): void;
  resized(): void;
}

export interface DrawOptions {
  /** uid -> delay in milliseconds before the marks of that node change. */
  delays?: Map<number, number> | null;
  calm: boolean;
  /** Whether the camera stays as it is if that shows everything. */
  steady: boolean;
  /** Whether this is still the newest picture. */
  wanted(): boolean;
}

interface Drawn {
  g: SVGGElement;
  item: Item;
  marks: string;
  late?: ReturnType<typeof setTimeout>;
}

/** New marks of an item: as text, to compare them later, and as elements. */
type Made = Map<string, { marks: string; shapes: SVGElement[] }>;

const keyAt = (event: Event) => (event.target as Element).closest("[data-key]")?.getAttribute("data-key") ?? "";

export class Canvas {
  readonly element: HTMLElement;
  readonly overlay = html("div", { class: "gw-overlay" });
  readonly viewport = new Viewport(() => this.#move());
  space = new Space({ left: 0, top: 0, width: 0, height: 0, items: [], rail: 0, look() {} });
  /** Whether the scene is drawn as a bitmap. */
  big = false;
  /** Key of the tab stop. */
  focusKey: string | null = null;
  readonly #world = svg("g");
  readonly #rings = svg("g", { class: "gw-rings", "aria-hidden": "true" });
  readonly #signs = new Signs("gw-walking");
  readonly #guess = new Signs("gw-guessing");
  readonly #svg = svg(
    "svg",
    // Not a tab stop: Chromium makes one of an SVG element with listeners for the focus.
    { class: "gw-tree", role: "tree", "aria-label": "Autograd graph", tabindex: -1 },
    this.#world,
    this.#rings,
    this.#signs.element,
    this.#guess.element,
  );
  readonly #bitmap: Bitmap;
  readonly #map = new Minimap(this.viewport, () => this.#events.moved());
  readonly #drawn = new Map<string, Drawn>();
  readonly #events: CanvasEvents;
  /** Width of the element, and how much of it at the right is under something else, in px. */
  #width = 0;
  #covered = 0;
  #selected: string | null = null;
  #hits: readonly string[] = [];
  #frame = 0;

  constructor(root: HTMLElement, signal: AbortSignal, events: CanvasEvents) {
    this.#events = events;
    this.#bitmap = new Bitmap(root, this.viewport);
    this.element = html(
      "div",
      { class: "gw-canvas" },
      this.#bitmap.element,
      this.#svg,
      this.#map.element,
      this.overlay,
    );
    this.#listen();
    const resize = new ResizeObserver(() => this.#resize());
    resize.observe(this.element);
    signal.addEventListener("abort", () => {
      resize.disconnect();
      cancelAnimationFrame(this.#frame);
      this.#bitmap.clear();
      this.#map.stop();
    });
  }

  get byKey(): ReadonlyMap<string, Item> {
    return this.space.byKey;
  }

  #listen(): void {
    const { element } = this;
    const { dragged } = followGestures(element, this.viewport);
    const { press, open, background } = this.#events;
    element.addEventListener("click", (event) => {
      const target = event.target as Element;
      if (dragged() || target.closest(".gw-mini, .gw-rootbar")) return;
      const marked = /^mark (\d+:\d+)$/.exec(target.closest("[data-sign]")?.getAttribute("data-sign") ?? "");
      if (marked) {
        this.#events.mark(marked[1]!);
        return;
      }
      const item = this.#at(event);
      if (!item) background();
      else press(item, item.key === this.#selected);
    });
    element.addEventListener("dblclick", (event) => {
      const item = this.#at(event);
      if (item) open(item.key);
    });
    this.#svg.addEventListener("focusin", (event) => {
      if (this.byKey.has(keyAt(event))) this.#setTabStop(keyAt(event));
      this.#ring();
    });
    this.#svg.addEventListener("focusout", () => this.#ring());
    // A focused element outside the view would make the browser scroll the frame itself.
    element.addEventListener("scroll", () => element.scrollTo(0, 0));
  }

  /** The item under a pointer event. A press on a tag or an octagon is one on its node. */
  #at(event: MouseEvent): Item | undefined {
    const item = this.byKey.get(keyAt(event));
    if (item && isFocusable(item)) return item;
    if (item?.role === "tag" || item?.role === "octagon") return this.byKey.get(`n${item.uid}`) ?? item;
    const { left, top } = this.element.getBoundingClientRect();
    return this.#bitmap.hit(...this.viewport.toWorld(event.clientX - left, event.clientY - top));
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width <= 0 || height <= 0) return; // scrolled away: keep the last size
    this.#width = width;
    Object.assign(this.viewport, { width: width - this.#covered, height });
    setAttributes(this.#svg, { width, height });
    this.viewport.go(this.#camera(this.space));
    this.#events.resized();
  }

  /**
   * Something covers so many px at the right: the picture moves left. What has no room there, without the code rail,
   * gets smaller as far as names can be read. Nothing is laid out again.
   */
  cover(px: number): void {
    if (px === this.#covered) return;
    this.#covered = px;
    const { viewport } = this;
    viewport.width = this.#width - px;
    const { rail } = this.space.scene;
    const { x, w, ...rows } = this.space.content;
    const column = { ...rows, x: x + rail, w: w - rail };
    viewport.go(px > 0 ? viewport.beside(column) : this.#camera(this.space));
    // A line of code that is cut off in the middle says nothing.
    setAttribute(this.element, "data-covered", px > 0 && viewport.toScreen(x, 0)[0] < 0);
  }

  /** The camera for a scene: as the user has set it; else everything, the failing node or a loss. */
  #camera({ content, scene }: Space, steady = false): Camera {
    const { viewport } = this;
    if (viewport.taken || viewport.rests || this.#covered > 0 || !scene.items.length) return viewport;
    const first = (role: Role) => scene.items.find((item) => item.role === role);
    const best = viewport.aim(content, first("octagon") ?? first("root"));
    return steady && this.space.scene.items.length && viewport.suits(content, best) ? viewport : best;
  }

  fit(): void {
    this.viewport.taken = false;
    this.viewport.fits = true;
    this.viewport.go(this.#camera(this.space));
  }

  /** Prepares a scene in slices, then shows it in one step. False: it was not `wanted` any more. */
  async draw(space: Space, graph: Graph, { delays = null, calm, steady, wanted }: DrawOptions): Promise<boolean> {
    const { items } = space.scene;
    const big = space.cards > MOST_CARDS || items.length > MOST_ITEMS;
    const camera = this.#camera(space, steady);
    if (big) space.scene.look(camera.scale);
    const show = big ? await this.#bitmap.prepare(space, graph, camera, wanted) : () => this.#bitmap.clear();
    const made = await drive(this.#make(big ? [] : items), wanted);
    if (!show || !made) return false;
    const first = !this.space.scene.items.length;
    this.space = space;
    this.big = big;
    setAttribute(this.element, "data-drawn-as", big ? "bitmap" : "svg");
    if (!this.byKey.has(this.focusKey ?? ""))
      this.focusKey = (items.find((item) => item.role === "root") ?? items.find(isFocusable))?.key ?? null;
    const animate = !calm && !first && !big;
    setAttribute(this.#svg, "aria-hidden", !items.length && "true");
    this.#world.classList.toggle("gw-moves", animate);
    this.#hits = [];
    show();
    if (big) this.#pin();
    else this.#patch(items, made, animate ? delays : null, animate);
    this.#map.load(space);
    this.viewport.go(this.#camera(space, steady));
    this.#ring();
    return true;
  }

  /** Makes the marks of some items again. `drains`: their slots empty before one's eyes. */
  renew(keys: readonly string[], drains: boolean): void {
    const items = keys.flatMap((key) => this.byKey.get(key) ?? []);
    for (const item of items) item.renew?.();
    if (this.big) {
      if (items.length > 0) this.#bitmap.refresh();
      return;
    }
    const made = runSlices(this.#make(items));
    for (const item of items) {
      const drawn = this.#drawn.get(item.key);
      if (!drawn) continue;
      this.#dress(drawn, item);
      this.#redraw(drawn, made, 0);
      drawn.g.classList.toggle("gw-drains", drains);
    }
  }

  /** Draws the signs of a prediction. */
  guess(items: readonly Item[]): void {
    this.#guess.draw(items);
  }

  /** Draws signs over the picture, about the items of some keys. `moves`: a dot runs along the wires to these. */
  sign(items: readonly Item[], keys: readonly string[] = [], moves = false): void {
    this.#signs.draw(items, keys, moves ? this.space.scene.items : []);
    if (this.big) this.#pin();
    const [first] = keys.flatMap((key) => this.byKey.get(key) ?? []);
    const words = items.filter(({ key }) => key === `says ${first?.key}`);
    if (first) this.viewport.show(unite([first, ...words]));
  }

  /** Gives the existing elements of a large scene the marks for another scale. */
  look(): void {
    this.space.scene.look(this.viewport.scale);
    this.#pin();
  }

  /** With a bitmap, only the tab stop and the selected card are elements. */
  #pin(): void {
    const keys = new Set([this.focusKey, this.#selected, ...this.#signs.keys]);
    const items = [...keys].flatMap((key) => this.byKey.get(key ?? "") ?? []);
    this.#patch(items, runSlices(this.#make(items)));
  }

  *#make(items: readonly Item[]): Slices<Made> {
    const made: Made = new Map();
    for (const item of items) {
      const tip = tipOf(item);
      const marks = JSON.stringify([item.marks, tip]);
      if (marks !== this.#drawn.get(item.key)?.marks)
        made.set(item.key, { marks, shapes: [...drawMarks(item.marks), ...(tip ? [svg("title", {}, tip)] : [])] });
      yield;
    }
    return made;
  }

  #patch(items: readonly Item[], made: Made, delays: Map<number, number> | null = null, animate = false): void {
    const active = this.#activeKey();
    const gone = new Set(this.#drawn.keys());
    let cursor = this.#world.firstElementChild;
    for (const item of items) {
      const { key } = item;
      gone.delete(key);
      let drawn = this.#drawn.get(key);
      if (!drawn) {
        drawn = { g: svg("g", { class: "gw-item", "data-key": key }), item, marks: "" };
        if (animate && isFocusable(item)) drawn.g.classList.add("gw-enter");
        this.#drawn.set(key, drawn);
      }
      this.#dress(drawn, item);
      // What is new is drawn at once; only what changes waits for its turn.
      this.#redraw(drawn, made, (drawn.marks && delays?.get(item.uid ?? -1)) || 0);
      if (drawn.g === cursor) cursor = cursor.nextElementSibling;
      else this.#world.insertBefore(drawn.g, cursor);
    }
    for (const key of gone) {
      const { g, late } = this.#drawn.get(key)!;
      clearTimeout(late);
      g.remove();
      this.#drawn.delete(key);
    }
    if (active !== null && this.#activeKey() !== active) this.#drawn.get(active)?.g.focus({ preventScroll: true });
  }

  #dress(drawn: Drawn, item: Item): void {
    const { g } = drawn;
    const { key, role, x, y, data = {} } = item;
    g.style.transform = `translate(${x}px,${y}px)`;
    for (const name in drawn.item.data) if (!(name in data)) g.removeAttribute(`data-${name}`);
    for (const name in data) setAttribute(g, `data-${name}`, data[name]);
    drawn.item = item;
    if (isFocusable(item))
      setAttributes(g, {
        role: "treeitem",
        "aria-label": nameOf(item),
        "aria-expanded": role === "group" && "false",
        ...this.#standing(key),
      });
    else setAttributes(g, { "aria-hidden": "true", "aria-label": item.label });
  }

  /** Replaces the marks of an item, now or after `delay` milliseconds. */
  #redraw(drawn: Drawn, made: Made, delay: number): void {
    clearTimeout(drawn.late);
    const { g, item } = drawn;
    const change = made.get(item.key);
    if (!change) return;
    const redraw = () => {
      drawn.marks = change.marks;
      g.replaceChildren(...(isFocusable(item) ? apart(change.shapes) : change.shapes));
      g.classList.remove("gw-drains");
      if (!delay) return;
      g.getBoundingClientRect();
      g.classList.add("gw-drains");
    };
    if (delay) drawn.late = setTimeout(redraw, delay);
    else redraw();
  }

  #activeKey(): string | null {
    const active = focusedElement(this.#svg);
    return active && this.#svg.contains(active) ? active.getAttribute("data-key") : null;
  }

  /** Attributes of an item for the tab stop and the selection. */
  #standing(key: string) {
    return { tabindex: key === this.focusKey ? 0 : -1, "aria-selected": String(key === this.#selected) };
  }

  /** Applies the tab stop and the selection to the drawn items. */
  #stand(): void {
    if (this.big) this.#pin();
    for (const [key, { g, item }] of this.#drawn) if (isFocusable(item)) setAttributes(g, this.#standing(key));
    this.#ring();
  }

  #setTabStop(key: string): void {
    this.focusKey = key;
    this.#stand();
  }

  /** Makes an item the tab stop, gives it the focus and brings it into view. */
  focus(key: string): void {
    const item = this.byKey.get(key);
    if (!item) return;
    this.#setTabStop(key);
    if (this.viewport.show(item)) this.viewport.taken = true;
    this.#drawn.get(key)?.g.focus({ preventScroll: true });
    this.#ring();
  }

  select(key: string | null): void {
    if (key === this.#selected) return;
    this.#selected = key;
    this.#stand();
  }

  /** Draws rings around hits over a bitmap; the scene is not drawn again. */
  ringHits(keys: readonly string[]): void {
    this.#hits = [...new Set(keys)].slice(0, MOST_RINGS);
    this.#ring();
  }

  /** Draws outlines around the selected card and, while the keyboard is used here, around the focused one. */
  #ring(): void {
    const ring = (key: string | null, gap: number) => {
      const item = this.byKey.get(key ?? "");
      if (!item) return [];
      const { x, y, w, h } = item;
      const area = { x: x - gap, y: y - gap, width: w + 2 * gap, height: h + 2 * gap, rx: 6 + gap };
      return [svg("rect", { class: "g-focus", ...area })];
    };
    const active = this.#activeKey();
    const byKey = active !== null && this.#drawn.get(active)?.g.matches(":focus-visible");
    this.#rings.replaceChildren(
      ...this.#hits.flatMap((key) => ring(key, 3)),
      ...ring(this.#selected, 1.5),
      ...(byKey ? ring(active, 4) : []),
    );
  }

  #move(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#place();
    });
  }

  /** Applies the camera. */
  #place(): void {
    const { scale, x, y } = this.viewport;
    const transform = `translate(${x} ${y}) scale(${scale})`;
    for (const layer of [this.#world, this.#rings, this.#signs.element, this.#guess.element])
      setAttribute(layer, "transform", transform);
    setAttribute(this.element, "data-scale", scale.toFixed(3));
    this.#bitmap.paint();
    this.#map.paint();
    this.#events.moved();
  }

  /** The elements over the drawing, without the buttons. */
  covered(): Box[] {
    const map = this.#map.covers();
    return map ? [map] : [];
  }

  label(words: string): void {
    setAttribute(this.#svg, "aria-label", words);
  }

  /** `on`: another drawing will replace the one on screen. */
  draws(on: boolean): void {
    setAttribute(this.#svg, "aria-busy", on && "true");
  }

  /** Colours have changed. */
  repaint(): void {
    this.#bitmap.forget();
    this.#move();
  }
}
