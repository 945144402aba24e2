/** Title, facts, status, and the tools. */

import { attr, attrs, button, h, text } from "../page/dom.ts";
import type { Graph } from "../picture/model.ts";
import { count, facts } from "../state/say.ts";
import type { Context, Part, Show, State } from "../state/state.ts";
import { type IconName, icon, logo } from "./icons.ts";

type Shape = "ok" | "warn" | "raised" | "busy" | "queued" | "readonly" | "past";

/** One pill for all that can be said about now. */
function status({ now, past, pastEvent, link, running, drawing, busy }: State): [Shape, string] {
  if (past || pastEvent !== null) return ["past", "a picture of the past"];
  if (link === "gone") return ["readonly", "read-only: no kernel"];
  if (running) return running.behind ? ["queued", "queued"] : ["busy", `running ${running.what}`];
  if (drawing !== null) return ["busy", `drawing ${count(drawing, "node")} …`];
  if (busy) return ["busy", busy];
  if (!now) return ["ok", "waiting for the kernel"];
  const { state, text: words } = now.status;
  const warns = now.findings.some(({ severity }) => severity === "warning");
  const shapes = { idle: warns ? "warn" : "ok", raised: "raised", busy: "busy", off: "readonly" } as const;
  return [shapes[state], words];
}

const SHOWS = {
  auto: "Group: auto",
  all: "Every node",
  freed: "Only freed",
  around: "Around selection",
  root: "One root",
  cell: "One cell",
};

export function tool(name: IconName, label: string, click: () => void, key?: string): HTMLButtonElement {
  const title = key ? `${label} (${key})` : label;
  return button("gw-ib", click, { "aria-label": label, title, "aria-keyshortcuts": key }, icon(name));
}

export function headerPart({ act, state }: Context, boxes: () => number, searchBox: HTMLElement): Part {
  const about = h("span.gw-facts");
  const words = h("span");
  const pill = h("span.gw-pill", { role: "status", "aria-label": "State" }, h("i", { "aria-hidden": "true" }), words);
  const menu = h(
    "select.gw-group",
    { "aria-label": "What to show", title: "What to show", change: () => act.show(menu.value as Show["what"]) },
    Object.entries(SHOWS).map(([value, what]) => h("option", { value }, what)),
  ) as HTMLSelectElement;
  const el = h(
    "div.gw-head",
    logo(),
    h("b", "Autograd graph"),
    about,
    searchBox,
    pill,
    menu,
    tool("search", "Search", () => act.search(state.search ? null : ""), "/"),
    tool("fit", "Fit", act.fit, "0"),
    tool("legend", "Legend", act.legend, "l"),
    tool("more", "More: table view, export, tidy, keys", act.more, "?"),
  );
  return {
    el,
    update(graph: Graph | null) {
      const said = graph ? (graph.n ? facts(graph, boxes()) : "nothing to show yet") : "";
      text(about, said);
      attr(about, "title", said);
      menu.value = state.show.what;
      const [shape, now] = status(state);
      text(words, now);
      const found = graph?.findings.length;
      attrs(pill, { "data-shape": shape, title: found ? count(found, "finding") : null });
    },
  };
}
