/**
 * The height of the view. By default it follows the content, within limits; dragging the lower edge, or arrow keys on it,
 * sets another one, which the widget's state keeps.
 */

import type { CanvasHeight } from "../drawing/picture.ts";
import { endEvent, html, setAttribute } from "../page/elements.ts";
import { drag } from "../page/pointer.ts";
import { follow, type Model } from "../state/kernel.ts";

/** Limits in px: the smallest height as in base.css, the largest as the trait allows. */
const LEAST = 220;
const MOST = 4000;
const KEY_STEP = 20;
/** Limits of a height by content. */
const LEAST_BY_CONTENT = 420;
const MOST_BY_CONTENT = 760;
/** The canvas is never lower than this, in px. */
const LEAST_CANVAS = 190;
/** Header, the bar over the canvas, and edges: the numbers of base.css and canvas.css. */
const ABOVE = 36 + 26 + 2;
/** A lower view than this has no timeline, so that something of the picture is left. */
const LOW = 320;
/** The height shrinks only by at least this much, in px. */
const WORTH = 120;

export interface Height extends CanvasHeight {
  /** The lower edge, by which it is dragged. */
  readonly edge: HTMLElement;
}

/** Gives the root the height of the model; 0: by content. */
export function followHeight(root: HTMLElement, model: Model, signal: AbortSignal): Height {
  const edge = html("div", {
    class: "gw-edge",
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": "Height of the view",
    "aria-valuemin": LEAST,
    "aria-valuemax": MOST,
  });
  let height = 0;
  let byContent = true;
  /** The kind of width for which the height was chosen by content. */
  let filled: string | undefined;
  /** Height that the pointer asks for; it may be beyond the limits. */
  let wanted = 0;

  const below = () => root.querySelector<HTMLElement>(".gw-foot")?.offsetHeight ?? 0;
  const apply = (px: number) => {
    height = Math.round(px);
    const foot = height < LOW ? 0 : below();
    setAttribute(root, "data-low", height < LOW);
    root.style.setProperty("--gw-h", `${height}px`);
    root.style.setProperty("--gw-stage", `${Math.max(LEAST_CANVAS, height - foot - 38)}px`);
    setAttribute(edge, "aria-valuenow", height);
  };
  const change = (px: number) => {
    byContent = false;
    apply(Math.min(MOST, Math.max(LEAST, px)));
  };
  const fromModel = () => {
    const px = Number(model.get("height"));
    byContent = px === 0;
    apply(px || Math.max(height, LEAST_BY_CONTENT));
  };
  const keep = () => {
    model.set("height", height);
    model.save_changes();
  };
  const most = () => (byContent ? MOST_BY_CONTENT : height) - ABOVE - (height < LOW ? 0 : below());
  const fill = (canvas: number, still: boolean) => {
    if (!byContent) return;
    const px = Math.ceil(canvas) + ABOVE + below();
    const { width } = root.dataset;
    const least = width === "compact" ? LEAST : LEAST_BY_CONTENT;
    const fitting = Math.min(MOST_BY_CONTENT, Math.max(least, px));
    const isFirst = width !== filled;
    filled = width;
    if (isFirst || fitting > height || (!still && fitting < height - WORTH)) apply(fitting);
  };

  const press = () => {
    wanted = height;
    return true;
  };
  const move = (_dx: number, dy: number) => {
    wanted += dy;
    change(wanted);
  };
  drag(edge, press, move, keep);
  edge.addEventListener("keydown", (event) => {
    const by = { ArrowDown: KEY_STEP, ArrowUp: -KEY_STEP }[event.key];
    if (by === undefined) return;
    change(height + by);
    keep();
    endEvent(event);
  });
  follow(model, signal, { "change:height": fromModel });
  fromModel();
  return { edge, most, fill };
}
