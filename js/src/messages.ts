/** The top of the panel: the call that runs or waits, and the answer of the last one. */
import { attr, flat, h, memo, text } from "./dom.ts";
import type { Context, Part } from "./state.ts";

export function messagesPart(context: Context): Part {
  const words = h("div", { class: "gw-waitwords" });
  const stop = h("button", { type: "button", class: "gw-btn", onclick: () => context.act.cancel() }, "Cancel");
  const waiting = h(
    "div",
    { class: "gw-wait", hidden: true },
    h("span", { class: "gw-spin", "aria-hidden": "true" }),
    words,
    stop,
  );
  const status = h("div", { role: "status", class: "gw-answer" });
  const alert = h("div", { role: "alert", class: "gw-answer gw-err" });
  // An alert is spoken when it appears, so it is there only while it says something.
  const readOnly = h(
    "p",
    { class: "gw-mute", hidden: true },
    "You can look around. backward() needs a kernel: run the notebook first.",
  );
  const el = h("div", { class: "gw-messages" }, readOnly, waiting, status);
  const wait = memo(() => {
    const { running } = context.state;
    if (!running) return words.replaceChildren();
    const { queued } = running;
    const lines = queued
      ? [
          h("div", {}, h("b", {}, running.what), ` waits for ${queued.behind}`),
          h(
            "div",
            { class: "gw-mute" },
            queued.seconds > 0 ? `${queued.behind} has been running for ${Math.round(queued.seconds)} s. ` : "",
            "Nothing has changed yet.",
          ),
        ]
      : [h("div", {}, h("b", {}, running.what), " is running")];
    words.replaceChildren(...flat(lines));
  });
  return {
    el,
    update() {
      const { running, answer } = context.state;
      attr(readOnly, "hidden", context.state.link !== "gone");
      attr(waiting, "hidden", running === null);
      wait(JSON.stringify(running));
      const said = answer ? [answer.text, answer.next].filter(Boolean).join(" ") : "";
      text(status, answer?.kind === "status" ? said : "");
      text(alert, answer?.kind === "alert" ? said : "");
      if (alert.textContent) el.append(alert);
      else alert.remove();
    },
  };
}

/** The choice to put every .grad back after a call. */
export function keepGradBox(context: Context): HTMLElement {
  const box = h("input", { type: "checkbox", onchange: () => context.set({ keepGrad: box.checked }) });
  const title = "The call runs for real; afterwards every .grad is put back.";
  return h("label", { class: "gw-keep", title }, box, h("span", {}, "keep ", h("code", {}, ".grad"), " as it was"));
}
