/** The buttons under each live root. They follow the picture, and stay at the edge if their place is off screen. */

import { render, type VNode } from "preact";
import type { Canvas } from "../canvas/canvas.ts";
import { COVERABLE } from "../canvas/minimap.ts";
import { touches } from "../canvas/space.ts";
import type { Box } from "../canvas/viewport.ts";
import { focusedElement, setAttribute } from "../page/elements.ts";
import type { Graph, Root } from "../picture/model.ts";
import { BUTTONS, TWO_ROWS } from "../picture/scene/roots.ts";
import type { Item } from "../picture/scene/types.ts";
import * as SLOT from "../picture/slot.ts";
import { backwardName, cellList, forecastSentence } from "../state/say.ts";
import { type Context, type Mode, shown, whyOff } from "../state/state.ts";
import { pack } from "./packing.ts";

/** A bar that is further from its flag than this many px needs a name. */
const AWAY = 40;
/** With more roots than this, only roots in view keep their buttons, and only the first ones of these. */
const FEW = 2;
const MOST = 24;

/** Whether two boxes have more in common than an edge. */
const overlaps = (a: Box, b: Box) =>
  a.x + 1 < b.x + b.w && b.x + 1 < a.x + a.w && a.y + 1 < b.y + b.h && b.y + 1 < a.y + a.h;

interface RunProps {
  context: Context;
  root: Root;
  mode: Mode;
  /** Reason why the buttons are off; "": they are on. */
  off: string;
}

/** A button that asks for the forecast while the pointer or the focus is on it, and runs the call when pressed. */
function RunButton({ context: { act, state }, root, mode, off }: RunProps): VNode {
  const show = () => {
    if (!off) act.preview(root, mode);
  };
  const hide = () => act.preview(null);
  const on = state.preview?.root.id === root.id && state.preview.mode === mode;
  return (
    <button
      type="button"
      class="gw-run"
      onClick={() => act.backward(root, mode)}
      onPointerEnter={show}
      onFocus={show}
      onPointerLeave={hide}
      onBlur={hide}
      disabled={off !== ""}
      title={off || (root.scalar ? undefined : "not a scalar: runs with ones as gradient")}
      aria-label={backwardName(root, mode)}
      aria-disabled={state.running ? "true" : undefined}
      aria-description={(on ? forecastSentence(state.preview!) : off) || undefined}
      data-on={on ? "" : undefined}
      // What is read aloud is the whole call; the short words are for the eye.
      data-words={mode === "retain" ? "retain_graph" : "backward()"}
    />
  );
}

interface BarProps {
  context: Context;
  graph: Graph;
  root: Root;
  hold(element: HTMLElement | null): void;
}

function RootBar({ context, graph, root, hold }: BarProps): VNode {
  const off = whyOff(context.state, root);
  const why = off || (root.cells ? "" : "Rebuild is off: the cells that made this graph are unknown.");
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would bring the host's own frame
    <div class="gw-rootbar" role="group" aria-label={root.path} ref={hold}>
      <RunButton context={context} root={root} mode="backward" off={off} />
      <RunButton context={context} root={root} mode="retain" off={off} />
      <button
        type="button"
        class="gw-run gw-rebuild"
        onClick={() => context.act.rebuild(root)}
        aria-label={`Rebuild ${root.path}`}
        // Only a freed graph needs to be built again.
        hidden={!graph.slotState.includes(SLOT.freed)}
        disabled={why !== ""}
        title={why || `Rebuild: run ${cellList(root.cells)} again`}
      >
        ↻
      </button>
    </div>
  );
}

export class RootBars {
  readonly #context: Context;
  readonly #canvas: Canvas;
  /** The existing bars, by key. */
  readonly #bars = new Map<string, { id: number; element: HTMLElement }>();

  constructor(context: Context, canvas: Canvas) {
    this.#context = context;
    this.#canvas = canvas;
  }

  /** Makes bars for the live roots. */
  update(): void {
    const { state } = this.#context;
    const graph = shown(state);
    const low = this.#context.root.dataset.low !== undefined;
    const isShown = ({ alive, lost, id }: Root) => alive && !lost && !low && this.#canvas.byKey.has(`root${id}`);
    const roots = graph?.roots.filter(isShown) ?? [];
    const bars = roots.map((root) => {
      const key = `${root.id} ${root.path}`;
      const hold = (element: HTMLElement | null) => {
        if (element) this.#bars.set(key, { id: root.id, element });
        else this.#bars.delete(key);
      };
      return <RootBar key={key} context={this.#context} graph={graph!} root={root} hold={hold} />;
    });
    render(bars, this.#canvas.overlay);
    this.place();
  }

  /**
   * Moves the bars to the places of their roots on screen. Their size does not change with the scale. Where the picture
   * has no room for one it takes the nearest free place, and has a name there; far from its flag it is left out.
   */
  place(): void {
    const { viewport, byKey } = this.#canvas;
    const { width, height } = viewport;
    const bars: { element: HTMLElement; wish: Box }[] = [];
    for (const { id, element } of this.#bars.values()) {
      const item = byKey.get(`root${id}`);
      element.hidden = !item;
      if (!item) continue;
      // The drawing says in how many rows there is room for them.
      const inRows = item.buttons !== undefined && item.buttons.h * 4 > item.buttons.w;
      setAttribute(element, "data-rows", inRows);
      const usual = inRows ? TWO_ROWS : BUTTONS;
      const [w, h] = [element.offsetWidth || usual.w, element.offsetHeight || usual.h];
      const [x, y] = viewport.toScreen(item.x + item.w / 2, item.y + (item.buttons?.y ?? item.h + 4));
      const off = x < w / 2 || x > width - w / 2 || y < 0 || y > height;
      element.hidden = (off && this.#mayHide(element)) || bars.length === MOST;
      if (!element.hidden) bars.push({ element, wish: { x: x - w / 2, y, w, h } });
    }
    const wishes = bars.map(({ wish }) => wish);
    const taken = bars.length ? this.#taken() : [];
    pack(wishes, taken, width, height).forEach((place, i) => {
      const { element, wish } = bars[i]!;
      const away = Math.hypot(place.x - wish.x, place.y - wish.y);
      const covers = taken.some((box) => overlaps(box, place));
      element.hidden = covers && this.#mayHide(element);
      setAttribute(element, "data-edge", away > AWAY);
      element.style.transform = `translate(${place.x}px,${place.y}px)`;
    });
  }

  /** A bar that has the focus stays, and bars of few roots, wherever they are. */
  #mayHide(element: HTMLElement): boolean {
    return this.#bars.size > FEW && !element.contains(focusedElement(element));
  }

  /** What the bars must not cover, on screen. */
  #taken(): Box[] {
    const { viewport, space } = this.#canvas;
    const { scale } = viewport;
    const isSeen = ({ role }: Item) => COVERABLE.has(role);
    const boxes = space.scene.items.filter(isSeen).flatMap((item) => {
      const [x, y] = viewport.toScreen(item.x, item.y);
      const box = { x, y, w: item.w * scale, h: item.h * scale };
      return touches(box, { x: 0, y: 0, w: viewport.width, h: viewport.height }) ? [box] : [];
    });
    return [...this.#canvas.covered(), ...boxes];
  }
}
