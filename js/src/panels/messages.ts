/** The top of the panel: the call that runs or waits, or the answer of the last one. */

import { button, h, redraw } from "../page/dom.ts";
import type { Answer } from "../state/replies.ts";
import { join } from "../state/say.ts";
import type { Context, Part } from "../state/state.ts";

export function messagesPart({ state, act }: Context): Part {
  const stop = button("gw-btn", () => act.cancel(), "Cancel");
  const status = h("div.gw-answer", { role: "status" });
  // An alert is spoken when it appears, so it is there only while it says something.
  const alert = h("div.gw-answer.gw-err", { role: "alert" });
  const el = h("div", status);
  const said = (kind: Answer["kind"], { answer } = state) =>
    answer?.kind === kind && join(" ", answer.text, answer.next);
  const paintStatus = redraw(status, () => {
    const { running, link } = state;
    const waits = running?.behind ? ` waits for ${running.behind}. Nothing has changed yet.` : " is running";
    return [
      running && [h("p", h("b", running.what), waits), stop],
      said("status") || (link === "gone" && "You can look around. backward() needs a kernel: run the notebook first."),
    ];
  });
  const paintAlert = redraw(alert, () => said("alert"));
  return {
    el,
    update() {
      const { running, answer, link } = state;
      paintStatus(running, answer, link);
      paintAlert(answer);
      if (alert.firstChild) el.append(alert);
      else alert.remove();
    },
  };
}

/** The choice to put every .grad back after a call. */
export function keepGradBox({ set }: Context): HTMLElement {
  const box = h("input", { type: "checkbox", change: () => set({ keepGrad: box.checked }) });
  const title = "The call runs for real; afterwards every .grad is put back.";
  return h("label.gw-row.gw-mute.gw-keep", { title }, box, h("span", "keep ", h("code", ".grad"), " as it was"));
}
