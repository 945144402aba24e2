/** The lower edge: drag it, or move it with the arrow keys, to change the height of the view. */
import { attr, h } from "./dom.ts";
import type { Model } from "./kernel.ts";

export const LEAST = 220;
export const MOST = 900;

export function grip(root: HTMLElement, model: Model, signal: AbortSignal): HTMLElement {
  const el = h("div", {
    class: "gw-grip",
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": "Height of the view",
  });
  let height = 520;
  const apply = (wanted: number) => {
    height = Math.round(Math.min(MOST, Math.max(LEAST, wanted || 520)));
    root.style.setProperty("--gw-h", `${height}px`);
    attr(el, "aria-valuenow", height);
    attr(el, "aria-valuemin", LEAST);
    attr(el, "aria-valuemax", MOST);
  };
  const save = () => {
    if (model.get("height") === height) return;
    model.set("height", height);
    model.save_changes();
  };
  const fromModel = () => apply(Number(model.get("height")));
  let from: { y: number; height: number } | null = null;
  el.addEventListener(
    "pointerdown",
    (event) => {
      from = { y: event.clientY, height };
      el.setPointerCapture?.(event.pointerId);
    },
    { signal },
  );
  el.addEventListener("pointermove", (event) => from && apply(from.height + event.clientY - from.y), { signal });
  for (const end of ["pointerup", "pointercancel"]) {
    el.addEventListener(
      end,
      () => {
        if (from) save();
        from = null;
      },
      { signal },
    );
  }
  el.addEventListener(
    "keydown",
    (event) => {
      const by = { ArrowDown: 20, ArrowUp: -20 }[event.key];
      if (by === undefined) return;
      apply(height + by);
      save();
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
  model.on("change:height", fromModel);
  signal.addEventListener("abort", () => model.off("change:height", fromModel));
  fromModel();
  return el;
}
