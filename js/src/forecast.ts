/** The forecast: what a backward would do, for both buttons, computed and never run. */
import { attr, type Child, flat, h, memo } from "./dom.ts";
import { checkGlyph, octagonGlyph } from "./glyphs.ts";
import { backwardName, bytes, count } from "./say.ts";
import { type Context, type Forecast, type Forecasts, type Part, type Preview, shown } from "./state.ts";

/** One sentence for the button's description: also what a screen reader hears before the click. */
export function forecastSentence(preview: Preview): string {
  if (preview.problem) return `No forecast: ${preview.problem}`;
  if (!preview.forecasts) return "";
  const forecast = preview.forecasts[preview.mode];
  if (forecast.ok === false) return `Forecast: would raise. ${forecast.why}`;
  const start = forecast.ok === null ? "Forecast: not certain. " : "Forecast: ";
  const frees = preview.mode === "retain" ? "frees nothing" : `frees ${count(forecast.frees.length, "saved tensor")}`;
  const bad = forecast.afterwards.filter((row) => row.backward !== "ok");
  const then = bad.map((row) => `${row.root}.backward() would then raise${row.at ? ` at ${row.at}` : ""}`);
  return `${start}${frees}${then.length ? `; afterwards ${then.join(", ")}` : ""}.`;
}

function outcome(word: string, at: string | null): Child[] {
  if (word === "ok") return [checkGlyph(), h("span", { class: "gw-ok" }, " runs")];
  if (word === "unknown") return [h("span", { class: "gw-mute" }, "? unknown")];
  return [octagonGlyph(true), h("span", { class: "gw-err", title: at ?? word }, " raises")];
}

function card(context: Context, preview: Preview, mode: "backward" | "retain", forecast: Forecast): HTMLElement {
  const head = mode === "backward" ? "backward()" : "retain_graph=True";
  const nodes = new Set(forecast.frees.map(([uid]) => uid)).size;
  const body: Child[] = [];
  if (forecast.ok === false) {
    const graph = shown(context.state);
    const at = forecast.failsAt === null ? undefined : graph?.indexOf.get(forecast.failsAt);
    body.push(h("div", { class: "gw-big gw-err" }, "would raise"), h("div", {}, forecast.why || "It would raise."));
    if (at !== undefined && graph) body.push(h("code", {}, graph.names[graph.name[at]!]!));
    if (forecast.frees.length) body.push(h("div", {}, `after freeing ${count(forecast.frees.length, "saved tensor")}`));
  } else {
    const frees = mode === "retain" ? 0 : forecast.frees.length;
    body.push(h("div", { class: "gw-big" }, forecast.ok === null ? `frees ${frees}?` : `frees ${frees}`));
    if (frees > 0) {
      body.push(h("div", {}, `in ${count(nodes, "node")}, ${bytes(forecast.freedBytes)}`));
      const all = forecast.returnedBytes >= forecast.freedBytes;
      body.push(
        h(
          "div",
          {},
          h("b", {}, bytes(forecast.returnedBytes)),
          all ? " comes back" : " comes back, the rest has other owners",
        ),
      );
    } else body.push(h("div", {}, `${count(forecast.executes.length, "node")} run, all slots stay held`));
    if (forecast.ok === null && forecast.why) body.push(h("div", { class: "gw-mute" }, forecast.why));
  }
  return h(
    "div",
    { class: preview.mode === mode ? "gw-card gw-on" : "gw-card", "data-mode": mode, "data-ok": String(forecast.ok) },
    h("code", {}, head),
    body,
  );
}

function afterwards(both: Forecasts): Child {
  const rows = both.backward.afterwards.map((row) => {
    const other = both.retain.afterwards.find((r) => r.root === row.root);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, `${row.root}.backward()`)),
      h("td", {}, outcome(row.backward, row.at)),
      h("td", {}, other ? outcome(other.backward, other.at) : "–"),
    );
  });
  if (!rows.length) return null;
  const head = ["", "backward()", "retain_graph"].map((title) => h("th", { scope: "col" }, title));
  return [
    h("h4", {}, "Afterwards"),
    h("table", { class: "gw-after" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
  ];
}

function draw(context: Context, preview: Preview): Child[] {
  const name = backwardName(preview.root, preview.mode === "retain");
  const head = [
    h("div", { class: "gw-kick" }, "Forecast · nothing has run"),
    h("h3", {}, "If you run ", h("code", {}, name)),
  ];
  if (preview.problem) return [...head, h("p", {}, preview.problem)];
  const both = preview.forecasts;
  if (!both) return [...head, h("p", { class: "gw-mute" }, "asking the kernel …")];
  const now = both[preview.mode];
  const reaches = now.reaches;
  return [
    ...head,
    h(
      "div",
      { class: "gw-cards" },
      card(context, preview, "backward", both.backward),
      card(context, preview, "retain", both.retain),
    ),
    afterwards(both),
    h(
      "h4",
      {},
      now.ok === false
        ? "Leaves reached before it raises"
        : `Gradient reaches ${count(reaches.length, "leaf", "leaves")}`,
    ),
    reaches.length > 0 &&
      h(
        "p",
        {},
        h("code", {}, reaches.slice(0, 12).join(", ")),
        reaches.length > 12 && ` and ${reaches.length - 12} more`,
      ),
    now.assumes.length > 0 && [
      h("h4", {}, "Taken for granted"),
      h(
        "ul",
        {},
        now.assumes.map((line) => h("li", {}, line)),
      ),
    ],
  ];
}

export function forecastPart(context: Context): Part {
  const el = h("section", { class: "gw-forecast", "aria-label": "Forecast" });
  const paint = memo(() => {
    const { preview } = context.state;
    el.replaceChildren(...flat(preview ? draw(context, preview) : []));
  });
  return {
    el,
    update() {
      attr(el, "hidden", context.state.preview === null);
      const p = context.state.preview;
      paint(p ? JSON.stringify([p.root.id, p.root.path, p.mode, p.problem, p.forecasts]) : "");
    },
  };
}
