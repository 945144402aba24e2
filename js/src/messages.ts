/** The top of the panel: the call that runs or waits, and the answer of the last one. */
import { attr, button, h, redraw, text } from "./dom.ts";
import { join } from "./say.ts";
import type { Context, Part } from "./state.ts";

export function messagesPart({ state, act }: Context): Part {
  const words = h("div.gw-waitwords");
  const spin = h("span.gw-spin", { "aria-hidden": "true" });
  const stop = button("gw-btn", () => act.cancel(), "Cancel");
  const waiting = h("div.gw-wait.gw-box", { hidden: true }, spin, words, stop);
  const status = h("div.gw-answer", { role: "status" });
  // An alert is spoken when it appears, so it is there only while it says something.
  const alert = h("div.gw-answer.gw-err", { role: "alert" });
  const readOnly = "You can look around. backward() needs a kernel: run the notebook first.";
  const gone = h("p.gw-mute", { hidden: true }, readOnly);
  const el = h("div.gw-messages", gone, waiting, status);
  const paint = redraw(words, () => {
    const { what, queued } = state.running ?? {};
    if (!queued) return [h("b", what), " is running"];
    const { behind, seconds } = queued;
    const since = seconds > 0 && `${behind} has been running for ${Math.round(seconds)} s. `;
    return [h("b", what), ` waits for ${behind}`, h("div.gw-mute", since, "Nothing has changed yet.")];
  });
  return {
    el,
    update() {
      const { running, answer, link } = state;
      attr(gone, "hidden", link !== "gone");
      attr(waiting, "hidden", !running);
      paint(running);
      const said = (kind: string) => (answer?.kind === kind ? join(" ", answer.text, answer.next) : "");
      text(status, said("status"));
      text(alert, said("alert"));
      if (alert.firstChild) el.append(alert);
      else alert.remove();
    },
  };
}

/** The choice to put every .grad back after a call. */
export function keepGradBox({ set }: Context): HTMLElement {
  const box = h("input", { type: "checkbox", change: () => set({ keepGrad: box.checked }) });
  const title = "The call runs for real; afterwards every .grad is put back.";
  return h("label.gw-keep", { title }, box, h("span", "keep ", h("code", ".grad"), " as it was"));
}
