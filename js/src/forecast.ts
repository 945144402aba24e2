/** The forecast: what a backward would do, for both buttons, computed and never run. */
import { attr, type Child, h, redraw, row, table } from "./dom.ts";
import { checkGlyph, octagonGlyph } from "./glyphs.ts";
import type { Graph } from "./picture/model.ts";
import { backwardName, bytes, count, nameOf } from "./say.ts";
import { type Context, type Forecast, type Forecasts, type Mode, type Part, type Preview, shown } from "./state.ts";

/** One sentence for the button's description: also what a screen reader hears before the click. */
export function forecastSentence({ problem, forecasts, mode }: Preview): string {
  if (problem) return `No forecast: ${problem}`;
  return forecasts ? `Forecast: ${forecasts[mode].sentence}` : "";
}

function outcome(word: string, at: string | null): Child {
  if (word === "ok") return [checkGlyph(), h("span.gw-ok", " runs")];
  if (word === "unknown") return h("span.gw-mute", "? unknown");
  return [octagonGlyph(true), h("span.gw-err", { title: at ?? word }, " raises")];
}

/** What one of the two calls would do. */
function card(graph: Graph | null, preview: Preview, mode: Mode, forecast: Forecast): HTMLElement {
  const { ok, why, failsAt, executes, frees, freedBytes, returnedBytes } = forecast;
  const at = graph?.indexOf(failsAt) ?? -1;
  const nodes = new Set(frees.map(([uid]) => uid)).size;
  const rest = returnedBytes >= freedBytes ? "" : ", the rest has other owners";
  const body =
    ok === false
      ? [
          h("div.gw-big.gw-err", "would raise"),
          h("div", why || "It would raise."),
          at >= 0 && h("code", nameOf(graph!, at)),
          frees.length > 0 && h("div", `after freeing ${count(frees.length, "saved tensor")}`),
        ]
      : [
          h("div.gw-big", `frees ${frees.length}${ok === null ? "?" : ""}`),
          nodes
            ? [
                h("div", `in ${count(nodes, "node")}, ${bytes(freedBytes)}`),
                h("div", h("b", bytes(returnedBytes)), ` comes back${rest}`),
              ]
            : h("div", `${count(executes.length, "node")} run, all slots stay held`),
          ok === null && why && h("div.gw-mute", why),
        ];
  const props = { "data-mode": mode };
  const kind = preview.mode === mode ? ".gw-card.gw-box.gw-on" : ".gw-card.gw-box";
  return h(kind, props, h("code", mode === "retain" ? "retain_graph=True" : "backward()"), body);
}

function afterwards({ backward, retain }: Forecasts): Child {
  const rows = backward.afterwards.map(({ root, backward, at }) => {
    const other = retain.afterwards.find((each) => each.root === root);
    return row(`${root}.backward()`, outcome(backward, at), other ? outcome(other.backward, other.at) : "–");
  });
  return rows.length > 0 && [h("h4", "Afterwards"), table("gw-after", ["", "backward()", "retain_graph"], rows)];
}

function draw(graph: Graph | null, preview: Preview): Child {
  const { root, mode, problem, forecasts } = preview;
  const head = [
    h("div.gw-kick", "Forecast · nothing has run"),
    h("h3", "If you run ", h("code", backwardName(root, mode === "retain"))),
  ];
  if (!forecasts || problem) return [head, problem ? h("p", problem) : h("p.gw-mute", "asking the kernel …")];
  const { ok, reaches, assumes } = forecasts[mode];
  const found = `Gradient reaches ${count(reaches.length, "leaf", "leaves")}`;
  return [
    head,
    h(
      "div.gw-cards",
      (["backward", "retain"] as const).map((each) => card(graph, preview, each, forecasts[each])),
    ),
    afterwards(forecasts),
    h("h4", ok === false ? "Leaves reached before it raises" : found),
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
  const paint = redraw(el, () => state.preview && draw(shown(state), state.preview));
  return {
    el,
    update() {
      const { preview } = state;
      attr(el, "hidden", !preview);
      paint(preview?.root.id, preview?.root.path, preview?.mode, preview?.problem, preview?.forecasts);
    },
  };
}
