/** Presenting: large type, the picture, one finding; and the view beside the notebook. */

import type { Viewport } from "../../canvas/viewport.ts";
import { setAttribute } from "../../page/elements.ts";
import { follow, type Model } from "../../state/kernel.ts";
import type { Context, StageActions } from "../../state/state.ts";
import { statusAnswer } from "./kernel.tsx";

/** JupyterLab's command, and its words in the menu. */
const COMMAND = "notebook:create-output-view";
const WORDS = "Create New View for Cell Output";
const HOW = `In JupyterLab: right-click beside this view in its output, then "${WORDS}".`;

export function stageActions(context: Context, model: Model): StageActions {
  const { root, set, state } = context;

  function present(): void {
    // The trait comes back as a change, and is remembered by the kernel for views that are made later.
    model.set("presenting", !state.presents);
    model.save_changes();
  }

  /**
   * A widget cannot run a command of JupyterLab. It can ask for the menu that a right click opens, which belongs to
   * JupyterLab and has the command for the cell under the pointer; the user then chooses it.
   */
  function dock(): void {
    const { left, top } = root.getBoundingClientRect();
    const place = { clientX: left + 40, clientY: Math.max(top, 0) + 40, button: 2, bubbles: true, cancelable: true };
    // The command is about the active cell.
    root.dispatchEvent(new MouseEvent("mousedown", place));
    const opened = !root.dispatchEvent(new MouseEvent("contextmenu", place));
    const item = document.querySelector(`.lm-Menu-item[data-command="${COMMAND}"]:not(.lm-mod-disabled)`);
    if (opened && item) {
      set({ answer: statusAnswer(`Choose "${WORDS}" in the menu: it shows this view beside the notebook.`) });
      return;
    }
    if (opened)
      document.activeElement?.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Escape", keyCode: 27, bubbles: true }),
      );
    set({ answer: statusAnswer(`The view can be shown beside the notebook. ${HOW}`) });
  }

  /** The height follows the content again. */
  function full(): void {
    model.set("height", 0);
    model.save_changes();
    context.redraw();
  }

  return { present, dock, full };
}

/** Presents as the model says. */
export function followPresenting(
  { root, set, redraw }: Context,
  model: Model,
  signal: AbortSignal,
  viewport: Viewport,
): void {
  const apply = () => {
    const presents = model.get("presenting") === true;
    viewport.present(presents);
    setAttribute(root, "data-present", presents);
    set({ presents });
    redraw();
  };
  follow(model, signal, { "change:presenting": apply });
  apply();
}
