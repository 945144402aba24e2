/** The forecast: what a backward would do, for both buttons, computed and never run. */

import { attr, type Child, h, redraw, row, table } from "../page/dom.ts";
import { orderOfCall } from "../picture/model.ts";
import type { Forecast, Forecasts } from "../state/replies.ts";
import { backwardName, count } from "../state/say.ts";
import type { Context, Mode, Part, Preview } from "../state/state.ts";
import { checkGlyph, octagonGlyph, prose } from "./glyphs.ts";

/** One sentence for the button's description: also what a screen reader hears before the click. */
export function forecastSentence({ problem, forecasts, mode }: Preview): string {
  if (problem) return `No forecast: ${problem}`;
  return forecasts ? `Forecast: ${forecasts[mode].sentence}` : "";
}

function ending(word: string, at: string | null): Child {
  if (word === "ok") return [checkGlyph(), h("span.gw-ok", " runs")];
  if (word === "unknown") return h("span.gw-mute", "? unknown");
  return [octagonGlyph(true), h("span.gw-err", { title: at ?? word }, " raises")];
}

/** What one of the two calls would do. */
function card(
  mode: Mode,
  { ok, outcome, facts }: Forecast,
  chosen: boolean,
  order: (n: number) => number,
): HTMLElement {
  return h(
    chosen ? "div.gw-card.gw-box.gw-on" : "div.gw-card.gw-box",
    { "data-mode": mode },
    h("b", h("code", mode === "retain" ? "retain_graph=True" : "backward()")),
    h(ok === false ? "h3.gw-err" : "h3", outcome),
    facts.map((fact) => h("div", prose(fact, order))),
  );
}

function afterwards({ backward, retain }: Forecasts): Child {
  const rows = backward.afterwards.map(({ root, backward, at }) => {
    const other = retain.afterwards.find((each) => each.root === root);
    return row(`${root}.backward()`, ending(backward, at), other ? ending(other.backward, other.at) : "–");
  });
  return rows.length > 0 && [h("h4", "Afterwards"), table("gw-after", ["", "backward()", "retain_graph"], rows)];
}

function draw({ root, mode, problem, forecasts }: Preview, order: (n: number) => number): Child {
  const head = [
    h("div.gw-kick", "Forecast · nothing has run"),
    h("h3", "If you run ", h("code", backwardName(root, mode))),
  ];
  if (!forecasts || problem) return [head, problem ? h("p", problem) : h("p.gw-mute", "asking the kernel …")];
  const { ok, reaches, assumes } = forecasts[mode];
  const raises = ok === false;
  const found = `Gradient reaches ${count(reaches.length, "leaf", "leaves")}`;
  return [
    head,
    h(
      "div.gw-cards",
      (["backward", "retain"] as const).map((each) => card(each, forecasts[each], each === mode, order)),
    ),
    afterwards(forecasts),
    raises && !reaches.length
      ? h("p", "No ", h("code", ".grad"), " would change.")
      : h("h4", raises ? "Before it raises it adds to the .grad of" : found),
    reaches.length > 0 &&
      h("p", h("code", reaches.slice(0, 12).join(", ")), reaches.length > 12 && ` and ${reaches.length - 12} more`),
    assumes.length > 0 && [
      h("h4", "Taken for granted"),
      h(
        "ul",
        assumes.map((line) => h("li", line)),
      ),
    ],
  ];
}

export function forecastPart({ state }: Context): Part {
  const el = h("section.gw-forecast", { "aria-label": "Forecast" });
  const paint = redraw(
    el,
    () => state.preview && draw(state.preview, (n) => (state.now ? orderOfCall(state.now, n) : -1)),
  );
  return {
    el,
    update() {
      const { preview } = state;
      attr(el, "hidden", !preview);
      paint(preview?.root.id, preview?.root.path, preview?.mode, preview?.problem, preview?.forecasts);
    },
  };
}
