/** The buttons at each live root's foot. They follow the picture, and stay at the edge where the foot is off screen. */

import type { Canvas } from "../canvas/canvas.ts";
import { touches } from "../canvas/space.ts";
import type { Box } from "../canvas/viewport.ts";
import { attr, attrs, button, focused, h } from "../page/dom.ts";
import type { Graph, Root } from "../picture/model.ts";
import * as SLOT from "../picture/slot.ts";
import { backwardName, cellList } from "../state/say.ts";
import { type Context, type Mode, shown, whyOff } from "../state/state.ts";
import { forecastSentence } from "./forecast.ts";

const HOVER_MS = 150;
const HEIGHT = 24;
/** The buttons shrink with the picture, but not below this. */
const SMALLEST = 0.75;
/** Further from its flag a bar needs a name. */
const AWAY = 40;
/** Beyond so many roots only those in view keep their buttons, and of these the first ones. */
const FEW = 2;
const MOST = 24;

interface Bar {
  el: HTMLElement;
  root: Root;
  /** Says on each button what holds for it. */
  dress(graph: Graph): void;
}

const clamp = (value: number, most: number) => Math.max(4, Math.min(value, most - 4));

/**
 * Moves bars apart, and off what is `taken`: each at its wish where it can be, else at the nearest free place beside what
 * is in its way or some rows lower; higher, where its root is, only if that is much nearer.
 */
export function pack(wishes: readonly Box[], taken: readonly Box[], width: number, height: number): Box[] {
  const placed = [...taken];
  return wishes.map((wish) => {
    const { w, h } = wish;
    const first = { ...wish, x: clamp(wish.x, width - w), y: clamp(wish.y, height - h) };
    const columns = [first.x, ...placed.flatMap((each) => [each.x + each.w + 4, each.x - w - 4])];
    let [best, least] = [first, Number.POSITIVE_INFINITY];
    for (let y = first.y % (h + 4); y <= height - h; y += h + 4)
      for (const x of columns) {
        const bar = { ...wish, x, y };
        const far = Math.abs(x - first.x) + (y < first.y ? 3 * (first.y - y) : y - first.y);
        if (far >= least || x !== clamp(x, width - w) || placed.some((each) => touches(each, bar))) continue;
        [best, least] = [bar, far];
      }
    placed.push(best);
    return best;
  });
}

/** The bar of one root. */
function makeBar({ act, state }: Context, root: Root): Bar {
  let timer: ReturnType<typeof setTimeout> | undefined;

  const run = (mode: Mode) => {
    const on = () => state.preview?.root.id === bar.root.id && state.preview.mode === mode;
    const show = () => {
      clearTimeout(timer);
      timer = setTimeout(() => el.disabled || act.preview(bar.root, mode), HOVER_MS);
    };
    const hide = () => {
      clearTimeout(timer);
      if (on()) act.preview(null);
    };
    const press = () => {
      hide();
      act.backward(bar.root, mode);
    };
    const el = button("gw-run", press, {
      "aria-label": backwardName(root, mode),
      pointerenter: show,
      focus: show,
      pointerleave: hide,
      blur: hide,
    });
    el.append(mode === "retain" ? "retain_graph" : "backward()");
    const dress = (off: string) =>
      attrs(el, {
        disabled: off !== "",
        "aria-disabled": state.running && "true",
        title: off || (bar.root.scalar ? null : "not a scalar: runs with ones as gradient"),
        "aria-description": (on() ? forecastSentence(state.preview!) : off) || null,
        "data-on": on(),
      });
    return { el, dress };
  };

  const runs = [run("backward"), run("retain")];
  const rebuild = button(
    "gw-run.gw-rebuild",
    () => act.rebuild(bar.root),
    { "aria-label": `Rebuild ${root.path}` },
    "↻",
  );
  const buttons = runs.map(({ el }) => el);
  const bar: Bar = {
    root,
    el: h("div.gw-rootbar", { role: "group", "aria-label": root.path }, buttons, rebuild),
    dress(graph) {
      const off = whyOff(state, bar.root);
      for (const { dress } of runs) dress(off);
      const { cells } = bar.root;
      const why = off || (!cells && "Rebuild is off: the cells that made this graph are unknown.");
      attrs(rebuild, {
        // Only what was freed needs to be built again.
        hidden: !graph.slotState.includes(SLOT.freed),
        disabled: Boolean(why),
        title: why || `Rebuild: run ${cellList(cells)} again`,
      });
    },
  };
  return bar;
}

export class RootBars {
  readonly #bars = new Map<number, Bar>();
  readonly #context: Context;
  readonly #canvas: Canvas;

  constructor(context: Context, canvas: Canvas) {
    this.#context = context;
    this.#canvas = canvas;
  }

  /** Makes bars for the roots that can be called. */
  update(): void {
    const bars = this.#bars;
    const graph = shown(this.#context.state);
    const roots = graph?.roots.filter(({ alive, id }) => alive && this.#canvas.byKey.has(`root${id}`)) ?? [];
    for (const [id, { el, root }] of bars) {
      if (roots.some((each) => each.id === id && each.path === root.path)) continue;
      el.remove();
      bars.delete(id);
    }
    for (const root of roots) {
      let bar = bars.get(root.id);
      if (!bar) {
        bar = makeBar(this.#context, root);
        bars.set(root.id, bar);
        this.#canvas.overlay.append(bar.el);
      }
      bar.root = root;
      bar.dress(graph!);
    }
    this.place();
  }

  /** Puts the bars where the camera shows their roots. */
  place(): void {
    const { viewport, byKey } = this.#canvas;
    const { width, height } = viewport;
    const size = Math.max(SMALLEST, Math.min(1, viewport.scale));
    const visible: HTMLElement[] = [];
    const wishes: Box[] = [];
    const taken: Box[] = [];
    for (const { el, root } of this.#bars.values()) {
      const item = byKey.get(`root${root.id}`);
      const w = (el.offsetWidth || 208) * size;
      el.hidden = !item;
      if (!item) continue;
      const [x, y] = viewport.toScreen(item.x + item.w / 2, item.y + (item.buttons?.y ?? item.h + 4));
      const off = x < w / 2 || x > width - w / 2 || y < 0 || y > height;
      el.hidden = (this.#bars.size > FEW && off && !el.contains(focused(el))) || visible.length === MOST;
      if (el.hidden) continue;
      visible.push(el);
      wishes.push({ x: x - w / 2, y, w, h: HEIGHT * size });
      const [left, top] = viewport.toScreen(item.x, item.y);
      taken.push({ x: left, y: top, w: item.w * viewport.scale, h: item.h * viewport.scale });
    }
    pack(wishes, taken, width, height).forEach(({ x, y }, i) => {
      attr(visible[i]!, "data-edge", Math.hypot(x - wishes[i]!.x, y - wishes[i]!.y) > AWAY);
      visible[i]!.style.transform = `translate(${x}px,${y}px) scale(${size})`;
    });
  }
}
