/** The buttons at each live root's foot. They follow the picture, and stay at the edge where the foot is off screen. */
import type { Canvas } from "./canvas.ts";
import { attr, h } from "./dom.ts";
import { forecastSentence } from "./forecast.ts";
import { type Root, SLOT } from "./picture/model.ts";
import { backwardName } from "./say.ts";
import { type Context, type Mode, whyOff } from "./state.ts";

const HOVER_MS = 150;
const HEIGHT = 24;
const GAP = 6;
/** The buttons shrink with the picture, but not below this. */
const SMALLEST = 0.75;
/** Beyond so many roots only those in view keep their buttons. */
const MOST = 4;

interface Bar {
  el: HTMLElement;
  root: Root;
  buttons: Record<Mode, HTMLButtonElement>;
  rebuild: HTMLButtonElement;
  width: number;
}

export interface Wanted {
  x: number;
  y: number;
  w: number;
}

/** Moves bars apart: each at its wish where it can be, else beside its neighbour, else a row higher. */
export function pack(wishes: readonly Wanted[], width: number, height: number): { x: number; y: number }[] {
  const placed: { x: number; y: number; w: number }[] = [];
  const order = wishes.map((_, i) => i).sort((a, b) => wishes[a]!.x - wishes[b]!.x);
  const out: { x: number; y: number }[] = wishes.map(() => ({ x: 0, y: 0 }));
  for (const i of order) {
    const wish = wishes[i]!;
    let x = Math.max(4, Math.min(wish.x, width - wish.w - 4));
    let y = Math.max(4, Math.min(wish.y, height - HEIGHT - 4));
    for (let tries = 0; tries < 20; tries++) {
      const hit = placed.find((p) => x < p.x + p.w + GAP && p.x < x + wish.w + GAP && Math.abs(p.y - y) < HEIGHT + 2);
      if (!hit) break;
      if (hit.x + hit.w + GAP + wish.w <= width - 4) x = hit.x + hit.w + GAP;
      else {
        x = Math.max(4, Math.min(wish.x, width - wish.w - 4));
        y = hit.y - HEIGHT - 4;
      }
    }
    placed.push({ x, y, w: wish.w });
    out[i] = { x, y };
  }
  return out;
}

export class RootBars {
  private readonly bars = new Map<number, Bar>();
  private readonly context: Context;
  private readonly canvas: Canvas;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(context: Context, canvas: Canvas) {
    this.context = context;
    this.canvas = canvas;
  }

  private make(root: Root): Bar {
    const button = (mode: Mode) => {
      const retain = mode === "retain";
      const el = h(
        "button",
        {
          type: "button",
          class: "gw-run",
          "aria-label": backwardName(root, retain),
          "data-root": root.id,
          "data-mode": mode,
        },
        retain ? "retain_graph" : "backward()",
      );
      this.connect(el, () => bar.root, mode);
      return el;
    };
    const again = { type: "button", class: "gw-run gw-rebuild", "aria-label": `Rebuild ${root.path}` };
    const rebuild = h("button", again, "↻");
    rebuild.addEventListener("click", () => {
      if (rebuild.getAttribute("aria-disabled") !== "true") this.context.act.rebuild(bar.root, false);
      else this.context.set({ answer: { kind: "status", text: rebuild.title, next: "" } });
    });
    const buttons = { backward: button("backward"), retain: button("retain") };
    const el = h(
      "div",
      { class: "gw-rootbar", role: "group", "aria-label": root.path },
      buttons.backward,
      buttons.retain,
      rebuild,
    );
    const bar: Bar = { el, root, buttons, rebuild, width: 0 };
    return bar;
  }

  private connect(el: HTMLButtonElement, root: () => Root, mode: Mode): void {
    const { act, state } = this.context;
    const show = () => {
      if (!el.disabled) act.preview(root(), mode);
    };
    const hide = () => {
      clearTimeout(this.timer);
      if (state.preview?.root.id === root().id && state.preview.mode === mode) act.preview(null);
    };
    el.addEventListener("pointerenter", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(show, HOVER_MS);
    });
    el.addEventListener("pointerleave", () => {
      if ((el.getRootNode() as Document).activeElement !== el || !el.matches(":focus-visible")) hide();
      clearTimeout(this.timer);
    });
    el.addEventListener("focus", () => {
      if (el.matches(":focus-visible")) show();
      this.canvas.el.scrollTo?.(0, 0);
    });
    el.addEventListener("blur", hide);
    el.addEventListener("click", () => {
      clearTimeout(this.timer);
      act.preview(null);
      act.backward(root(), mode === "retain");
    });
  }

  /** Makes bars for the roots that can be called, and says on each button what holds for it. */
  update(): void {
    const { state } = this.context;
    const roots = (state.past ?? state.now)?.roots.filter((root) => root.alive) ?? [];
    const live = new Map(roots.map((root) => [root.id, root]));
    for (const [id, bar] of this.bars) {
      if (live.has(id) && live.get(id)!.path === bar.root.path) continue;
      bar.el.remove();
      this.bars.delete(id);
    }
    for (const root of roots) {
      let bar = this.bars.get(root.id);
      if (!bar) {
        bar = this.make(root);
        this.bars.set(root.id, bar);
        this.canvas.overlay.append(bar.el);
      }
      bar.root = root;
      this.dress(bar);
    }
    this.place();
  }

  private dress(bar: Bar): void {
    const { state } = this.context;
    const off = whyOff(state, bar.root);
    for (const mode of ["backward", "retain"] as const) {
      const el = bar.buttons[mode];
      attr(el, "disabled", off !== "");
      attr(el, "aria-disabled", state.running ? "true" : null);
      attr(el, "title", off || (bar.root.scalar ? null : "not a scalar: runs with ones as gradient"));
      const about =
        state.preview?.root.id === bar.root.id && state.preview.mode === mode ? forecastSentence(state.preview) : off;
      attr(el, "aria-description", about || null);
      attr(el, "data-on", state.preview?.root.id === bar.root.id && state.preview.mode === mode);
    }
    const { cells } = bar.root;
    const why = off || (cells === null ? "Rebuild is off: the cells that made this graph are unknown." : "");
    // Only what was freed needs to be built again.
    attr(bar.rebuild, "hidden", !(state.past ?? state.now)?.slotState.includes(SLOT.freed));
    attr(bar.rebuild, "aria-disabled", String(why !== ""));
    attr(bar.rebuild, "title", why || `Rebuild: run ${cells!.map((cell) => `In[${cell}]`).join(", ")} again`);
  }

  /** Puts the bars where the camera shows their roots. */
  place(): void {
    const { viewport, byKey } = this.canvas;
    const { width, height } = viewport;
    const size = Math.max(SMALLEST, Math.min(1, viewport.scale));
    const shown: Bar[] = [];
    const wishes: Wanted[] = [];
    for (const bar of this.bars.values()) {
      const item = byKey.get(`root${bar.root.id}`);
      bar.width = (bar.el.offsetWidth || 208) * size;
      if (!item) {
        bar.el.hidden = true;
        continue;
      }
      const spot = item.buttons?.[0];
      const [cx] = viewport.toScreen(item.x + item.w / 2, 0);
      const [, y] = viewport.toScreen(0, item.y + (spot ? spot.y : item.h + 4));
      const half = bar.width / 2;
      const off = cx < half || cx > width - half || y < 0 || y > height;
      bar.el.hidden =
        this.bars.size > MOST && off && !bar.el.contains((bar.el.getRootNode() as Document).activeElement);
      if (bar.el.hidden) continue;
      shown.push(bar);
      wishes.push({ x: cx - (bar.width - (bar.rebuild.hidden ? 0 : 28 * size)) / 2, y, w: bar.width });
    }
    pack(wishes, width, height).forEach(({ x, y }, i) => {
      attr(shown[i]!.el, "data-edge", Math.abs(y - wishes[i]!.y) > 1);
      shown[i]!.el.style.transform = `translate(${x.toFixed(1)}px,${y.toFixed(1)}px) scale(${size.toFixed(3)})`;
    });
  }
}
