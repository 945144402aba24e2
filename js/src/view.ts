/** The live view. */
import { h } from "./dom.ts";
import type { Model } from "./kernel.ts";

export class View {
  constructor(_model: Model, el: HTMLElement, _signal: AbortSignal) {
    el.append(h("div", { class: "graphwidget", "data-lm-suppress-shortcuts": "true" }));
  }
}
