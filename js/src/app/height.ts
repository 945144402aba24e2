/** The lower edge of the view: dragging it, or arrow keys, change the height, which the widget's state keeps. */

import { endEvent, html, setAttribute } from "../page/elements.ts";
import { drag } from "../page/pointer.ts";
import { follow, type Model } from "../state/kernel.ts";

/** Limits in px: the smallest height as in base.css, the largest as the trait allows. */
const LEAST = 220;
const MOST = 4000;
const KEY_STEP = 20;

/** Gives the root the height of the model; returns the edge that changes it. */
export function followHeight(root: HTMLElement, model: Model, signal: AbortSignal): HTMLElement {
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
  /** Height that the pointer asks for; it may be beyond the limits. */
  let wanted = 0;

  const apply = (px: number) => {
    height = Math.round(px);
    root.style.setProperty("--gw-h", `${height}px`);
    setAttribute(edge, "aria-valuenow", height);
  };
  const change = (px: number) => apply(Math.min(MOST, Math.max(LEAST, px)));
  const fromModel = () => apply(Number(model.get("height")));
  const keep = () => {
    model.set("height", height);
    model.save_changes();
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
  return edge;
}
