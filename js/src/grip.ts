/** The lower edge: drag it, or move it with the arrow keys, to change the height of the view. */
import { attr, drag, h, keys } from "./dom.ts";
import { follow, type Model } from "./kernel.ts";

const LEAST = 220;
const MOST = 900;

export function grip(root: HTMLElement, model: Model, signal: AbortSignal): HTMLElement {
  const el = h("div.gw-grip", {
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": "Height of the view",
    "aria-valuemin": LEAST,
    "aria-valuemax": MOST,
  });
  let wanted = 0;
  let height = 0;
  const apply = (px: number) => {
    wanted = px || 520;
    height = Math.round(Math.min(MOST, Math.max(LEAST, wanted)));
    root.style.setProperty("--gw-h", `${height}px`);
    attr(el, "aria-valuenow", height);
  };
  const save = () => {
    if (model.get("height") === height) return;
    model.set("height", height);
    model.save_changes();
  };
  const fromModel = () => apply(Number(model.get("height")));
  const press = () => {
    wanted = height;
    return true;
  };
  drag(el, (_, dy) => apply(wanted + dy), press, save);
  const by = (px: number) => () => {
    apply(height + px);
    save();
  };
  keys(el, { ArrowDown: by(20), ArrowUp: by(-20) });
  follow(model, signal, { "change:height": fromModel });
  fromModel();
  return el;
}
