/**
 * The drawing: a scene as SVG groups, patched by key; as one bitmap where there is too much for the DOM.
 *
 * Every node, leaf and root is a `treeitem` of one `tree`; one of them is the tab stop. Marks of a
 * changed item may be drawn late (slots empty in the engine's order); its attributes never are.
 */

import { Bitmap } from "./bitmap.ts";
import { attr, h, s } from "./dom.ts";
import { drawMarks } from "./draw.ts";
import { Minimap } from "./minimap.ts";
import type { Graph } from "./picture/model.ts";
import type { Item, Role, Scene } from "./picture/scene.ts";
import { type Box, FULL, gestures, NEARLY, READABLE, Viewport } from "./viewport.ts";

/** More cards than this are drawn as a bitmap. */
export const MOST_CARDS = 300;
const MOST_ITEMS = 1500;
const MOST_RINGS = 400;
const FOCUSABLE: readonly Role[] = ["node", "group", "open", "leaf", "root"];

export interface CanvasEvents {
  press(item: Item, again: boolean): void;
  open(item: Item): void;
  background(): void;
  focused(item: Item): void;
  moved(): void;
}

interface Drawn {
  g: SVGGElement;
  item: Item;
  marks: string;
  late?: ReturnType<typeof setTimeout>;
}

export function isFocusable(item: Item): boolean {
  return FOCUSABLE.includes(item.role);
}

export class Canvas {
  readonly el: HTMLElement;
  readonly overlay: HTMLElement;
  readonly viewport: Viewport;
  scene: Scene = { left: 0, top: 0, width: 0, height: 0, items: [] };
  byKey = new Map<string, Item>();
  private readonly svg: SVGSVGElement;
  private readonly world: SVGGElement;
  private readonly rings: SVGGElement;
  private readonly bitmap: Bitmap;
  private readonly minimap: Minimap;
  private readonly drawn = new Map<string, Drawn>();
  private readonly events: CanvasEvents;
  private tabStop: string | null = null;
  private selected: string | null = null;
  /** Whether the scene is drawn as a bitmap. */
  big = false;
  private hitKeys: readonly string[] = [];
  private started = false;
  private frame = 0;

  constructor(root: HTMLElement, signal: AbortSignal, events: CanvasEvents) {
    this.events = events;
    this.viewport = new Viewport(() => this.move());
    this.world = s("g", { class: "gw-world" });
    this.rings = s("g", { class: "gw-rings", "aria-hidden": "true" });
    this.svg = s("svg", { class: "gw-tree", role: "tree", "aria-label": "Autograd graph" }, this.world, this.rings);
    this.overlay = h("div", { class: "gw-overlay" });
    this.bitmap = new Bitmap(root, this.viewport);
    this.minimap = new Minimap(this.viewport, signal);
    this.el = h("div", { class: "gw-canvas" }, this.bitmap.el, this.svg, this.overlay, this.minimap.el);
    const { dragged } = gestures(this.el, this.viewport, signal);
    this.listen(signal, dragged);
    const resize = new ResizeObserver(() => this.resize());
    resize.observe(this.el);
    signal.addEventListener("abort", () => {
      resize.disconnect();
      cancelAnimationFrame(this.frame);
    });
  }

  private listen(signal: AbortSignal, dragged: () => boolean): void {
    this.el.addEventListener(
      "click",
      (event) => {
        if (dragged() || (event.target as Element).closest("button, input, label, .gw-mini, .gw-rootbar")) return;
        const item = this.at(event);
        if (item?.role === "open" && (event.target as Element).classList.contains("g-closer")) this.events.open(item);
        else if (item) this.events.press(item, item.key === this.selected);
        else this.events.background();
      },
      { signal },
    );
    this.el.addEventListener(
      "dblclick",
      (event) => {
        const item = this.at(event);
        if (item) this.events.open(item);
      },
      { signal },
    );
    this.svg.addEventListener(
      "focusin",
      (event) => {
        const key = (event.target as Element).closest("[data-key]")?.getAttribute("data-key");
        const item = key ? this.byKey.get(key) : undefined;
        if (item) {
          this.setTabStop(item.key);
          this.ring();
          this.events.focused(item);
        }
      },
      { signal },
    );
    this.svg.addEventListener("focusout", () => this.ring(), { signal });
    // A focused element outside the view would make the browser scroll the frame itself.
    this.el.addEventListener("scroll", () => this.el.scrollTo(0, 0), { signal });
  }

  /** The item under a pointer event. */
  private at(event: MouseEvent): Item | null {
    const key = (event.target as Element).closest("[data-key]")?.getAttribute("data-key");
    if (key) {
      const item = this.byKey.get(key);
      if (item && (isFocusable(item) || item.role === "tag" || item.role === "octagon")) return this.owner(item);
    }
    if (!this.big) return null;
    const box = this.el.getBoundingClientRect();
    return this.bitmap.hit(...this.viewport.toWorld(event.clientX - box.left, event.clientY - box.top));
  }

  /** A tag or an octagon stands for the node that it sits on. */
  private owner(item: Item): Item {
    if (isFocusable(item) || item.uid === undefined) return item;
    return this.byKey.get(`n${item.uid}`) ?? item;
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.el;
    if (clientWidth <= 0 || clientHeight <= 0) return; // scrolled away: keep the last size
    this.viewport.width = clientWidth;
    this.viewport.height = clientHeight;
    attr(this.svg, "width", clientWidth);
    attr(this.svg, "height", clientHeight);
    this.bitmap.resize();
    if (!this.viewport.taken && this.started) this.home();
    else this.move();
  }

  /** The extent of what is drawn. */
  content(scene = this.scene): Box {
    let [x0, y0, x1, y1] = [1e9, 1e9, -1e9, -1e9];
    for (const item of scene.items) {
      x0 = Math.min(x0, item.x);
      y0 = Math.min(y0, item.y);
      x1 = Math.max(x1, item.x + item.w);
      y1 = Math.max(y1, item.y + item.h);
      for (const button of item.buttons ?? []) {
        y1 = Math.max(y1, item.y + button.y + button.h);
        x0 = Math.min(x0, item.x + button.x);
        x1 = Math.max(x1, item.x + button.x + button.w);
      }
    }
    return x1 < x0 ? { x: 0, y: 0, w: 1, h: 1 } : { x: x0, y: y0, w: x1 - x0, h: y1 - y0 };
  }

  /** At which scale a scene is on screen from top to bottom. */
  scaleFor(scene: Scene): number {
    return this.viewport.whole({ ...this.content(scene), w: 0 });
  }

  /** The first look: everything if it is readable, else the end with the losses. */
  home(anchor?: Item | null): void {
    const box = this.content();
    const root = anchor ?? this.scene.items.find((item) => item.role === "root");
    // A little cut off is better than all names of leaves and lines gone.
    const smallest = this.viewport.whole(box) >= NEARLY ? FULL : READABLE;
    this.viewport.fit(box, smallest, root ? { x: root.x, y: root.y, w: root.w, h: root.h } : null);
  }

  fit(): void {
    this.viewport.taken = false;
    this.viewport.fit(this.content());
  }

  /** Draws a scene. `delays`: uid -> milliseconds by which the marks of that node change later. */
  draw(scene: Scene, graph: Graph, delays: Map<number, number> | null, calm: boolean): void {
    const first = !this.started;
    this.started = scene.items.length > 0;
    this.scene = scene;
    this.byKey = new Map(scene.items.map((item) => [item.key, item]));
    const cards = scene.items.reduce((n, item) => n + (isFocusable(item) ? 1 : 0), 0);
    this.big = cards > MOST_CARDS || scene.items.length > MOST_ITEMS;
    attr(this.el, "data-drawn-as", this.big ? "bitmap" : "svg");
    if (this.tabStop === null || !this.byKey.has(this.tabStop)) {
      this.tabStop =
        scene.items.find((item) => item.role === "root")?.key ?? scene.items.find(isFocusable)?.key ?? null;
    }
    const animate = !calm && !first && !this.big;
    attr(this.svg, "aria-hidden", this.started ? null : "true");
    this.world.classList.toggle("gw-moves", animate);
    this.hitKeys = [];
    this.bitmap.load(this.big ? scene : null, graph);
    this.patch(this.big ? this.pinned() : scene.items, animate ? delays : null, animate);
    this.minimap.load(scene, this.content());
    if (!this.viewport.taken && this.started) this.home();
    else this.move();
    this.ring();
  }

  /** In a bitmap only the tab stop and the selected card are elements. */
  private pinned(): Item[] {
    return this.scene.items.filter((item) => item.key === this.tabStop || item.key === this.selected);
  }

  private patch(items: readonly Item[], delays: Map<number, number> | null, animate: boolean): void {
    const active = this.activeKey();
    const gone = new Set(this.drawn.keys());
    let cursor: Element | null = this.world.firstElementChild;
    for (const item of items) {
      gone.delete(item.key);
      let drawn = this.drawn.get(item.key);
      if (!drawn) {
        drawn = { g: s("g", { "data-key": item.key }), item, marks: "" };
        if (animate && isFocusable(item)) drawn.g.classList.add("gw-enter");
        this.drawn.set(item.key, drawn);
      }
      this.dress(drawn, item, delays?.get(item.uid ?? -1) ?? 0);
      if (drawn.g === cursor) cursor = cursor.nextElementSibling;
      else this.world.insertBefore(drawn.g, cursor);
    }
    for (const key of gone) {
      const drawn = this.drawn.get(key)!;
      clearTimeout(drawn.late);
      drawn.g.remove();
      this.drawn.delete(key);
    }
    if (active !== null && this.activeKey() !== active) this.drawn.get(active)?.g.focus({ preventScroll: true });
  }

  /** Attributes now, marks now or after `delay` milliseconds. */
  private dress(drawn: Drawn, item: Item, delay: number): void {
    const { g } = drawn;
    const before = drawn.item.data;
    drawn.item = item;
    g.style.transform = `translate(${item.x}px,${item.y}px)`;
    attr(g, "class", `${g.classList.contains("gw-enter") ? "gw-enter " : ""}gw-item gw-${item.role}`);
    const data = item.data ?? {};
    for (const name of Object.keys(before ?? {})) if (!(name in data)) g.removeAttribute(`data-${name}`);
    for (const [name, value] of Object.entries(data)) attr(g, `data-${name}`, value);
    if (isFocusable(item)) {
      attr(g, "role", "treeitem");
      attr(g, "aria-label", item.label ?? item.key);
      attr(g, "aria-selected", String(item.key === this.selected));
      attr(g, "tabindex", item.key === this.tabStop ? 0 : -1);
      if (item.role === "group" || item.role === "open") attr(g, "aria-expanded", String(item.role === "open"));
    } else attr(g, "aria-hidden", "true");
    const marks = JSON.stringify(item.marks);
    if (marks === drawn.marks) return;
    clearTimeout(drawn.late);
    const redraw = () => {
      drawn.marks = marks;
      g.replaceChildren(...drawMarks(item.marks));
      if (delay > 0) {
        g.classList.remove("gw-drains");
        g.getBoundingClientRect();
        g.classList.add("gw-drains");
      }
    };
    if (delay > 0) drawn.late = setTimeout(redraw, delay);
    else redraw();
  }

  private activeKey(): string | null {
    const root = this.svg.getRootNode() as Document | ShadowRoot;
    const active = root.activeElement;
    return active && this.svg.contains(active) ? active.getAttribute("data-key") : null;
  }

  private setTabStop(key: string): void {
    const old = this.tabStop;
    this.tabStop = key;
    if (this.big) this.patch(this.pinned(), null, false);
    if (old !== null && old !== key) attr(this.drawn.get(old)?.g ?? this.svg, "tabindex", -1);
    const g = this.drawn.get(key)?.g;
    if (g) attr(g, "tabindex", 0);
    attr(this.svg, "tabindex", null);
  }

  /** Makes an item the tab stop and gives it the focus; brings it into view if it is not. */
  focus(key: string, take = true): void {
    const item = this.byKey.get(key);
    if (!item) return;
    this.setTabStop(key);
    if (this.viewport.show(item)) this.viewport.taken = true;
    if (take) this.drawn.get(key)?.g.focus({ preventScroll: true });
    this.ring();
  }

  get focusKey(): string | null {
    return this.tabStop;
  }

  select(key: string | null): void {
    if (key === this.selected) return;
    const old = this.selected;
    this.selected = key;
    if (this.big) this.patch(this.pinned(), null, false);
    for (const each of [old, key]) {
      const g = each === null ? undefined : this.drawn.get(each)?.g;
      if (g) attr(g, "aria-selected", String(each === key));
    }
    this.ring();
  }

  /** In a bitmap, hits are ringed without drawing the scene anew. */
  ringHits(keys: readonly string[]): void {
    this.hitKeys = [...new Set(keys)].slice(0, MOST_RINGS);
    this.ring();
  }

  /** Outlines around the selected card and, while the keyboard is here, around the focused one. */
  private ring(): void {
    const out: SVGElement[] = [];
    const around = (key: string | null, gap: number, name: string) => {
      const item = key === null ? undefined : this.byKey.get(key);
      if (item)
        out.push(
          s("rect", {
            class: name,
            x: item.x - gap,
            y: item.y - gap,
            width: item.w + 2 * gap,
            height: item.h + 2 * gap,
            rx: 6 + gap,
          }),
        );
    };
    for (const key of this.hitKeys) around(key, 3, "gw-selring");
    around(this.selected, 1.5, "gw-selring");
    const active = this.activeKey();
    if (active !== null && this.drawn.get(active)?.g.matches(":focus-visible")) around(active, 4, "g-focus");
    this.rings.replaceChildren(...out);
  }

  private move(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.place();
    });
  }

  /** Applies the camera at once. */
  place(): void {
    const { scale, x, y } = this.viewport;
    const transform = `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`;
    attr(this.world, "transform", transform);
    attr(this.rings, "transform", transform);
    attr(this.el, "data-scale", scale.toFixed(3));
    this.bitmap.paint();
    this.minimap.paint();
    this.events.moved();
  }

  label(words: string): void {
    attr(this.svg, "aria-label", words);
  }

  /** Colours have changed. */
  repaint(): void {
    this.bitmap.forget();
    this.minimap.forget();
    this.place();
  }
}
