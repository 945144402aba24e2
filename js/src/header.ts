/** Title, facts, status, and the tools. */
import { attr, h, type IconName, icon, logo, text } from "./dom.ts";
import type { Graph } from "./picture/model.ts";
import { count, eventTitle, facts } from "./say.ts";
import { type Context, type Part, type Show, shown } from "./state.ts";

export type Status = { shape: "ok" | "warn" | "raised" | "busy" | "queued" | "readonly" | "past"; words: string };

/** One pill for all that can be said about now. */
export function status(context: Context): Status {
  const { state } = context;
  const graph = state.now;
  if (state.past || state.pastEvent !== null) return { shape: "past", words: "a picture of the past" };
  if (state.link === "gone") return { shape: "readonly", words: "read-only: no kernel" };
  if (state.running?.queued) return { shape: "queued", words: "queued" };
  if (state.running) return { shape: "busy", words: `running ${state.running.what}` };
  if (state.drawing !== null) return { shape: "busy", words: `drawing ${count(state.drawing, "node")} …` };
  if (state.busy) return { shape: "busy", words: state.busy };
  if (!graph) return { shape: "ok", words: "waiting for the kernel" };
  const { cell } = graph.status;
  if (graph.status.state === "raised")
    return { shape: "raised", words: cell === null ? "raised" : `after In[${cell}], which raised` };
  if (graph.status.state === "off") return { shape: "readonly", words: graph.status.text };
  if (graph.status.state === "busy") return { shape: "busy", words: graph.status.text };
  const warns = graph.findings.some((finding) => finding.severity === "warning");
  return { shape: warns ? "warn" : "ok", words: cell === null ? lastEvent(graph) : `after In[${cell}]` };
}

function lastEvent(graph: Graph): string {
  const event = graph.events[graph.events.length - 1];
  return event ? eventTitle(event) : graph.status.text;
}

const SHOWS = [
  ["auto", "Group: auto"],
  ["all", "Every node"],
  ["freed", "Only freed"],
  ["around", "Around selection"],
  ["root", "One root"],
  ["cell", "One cell"],
] as const;

export function tool(name: IconName, label: string, click: () => void, key?: string): HTMLButtonElement {
  const title = key ? `${label} (${key})` : label;
  const button = h(
    "button",
    { type: "button", class: "gw-ib", "aria-label": label, title, onclick: click },
    icon(name),
  );
  if (key) attr(button, "aria-keyshortcuts", key);
  return button;
}

function showMenu(context: Context): HTMLSelectElement {
  const select = h("select", { class: "gw-group", "aria-label": "What to show", title: "What to show" });
  for (const [value, words] of SHOWS) select.append(h("option", { value }, words));
  select.addEventListener("change", () => context.act.show(select.value as Show["what"]), { signal: context.signal });
  return select;
}

/** A button with a small menu below it; Escape and a click elsewhere close it. */
function moreMenu(context: Context): HTMLElement {
  const { act } = context;
  const list = h("div", { class: "gw-menu", role: "menu", "aria-label": "More", hidden: true });
  const button = tool("more", "More: table view, export, tidy", () => toggle(list.hidden));
  attr(button, "aria-haspopup", "menu");
  const toggle = (open: boolean) => {
    list.hidden = !open;
    attr(button, "aria-expanded", String(open));
    if (open) (list.firstElementChild as HTMLElement).focus();
  };
  const close = () => {
    toggle(false);
    button.focus();
  };
  const entry = (words: string, run: () => void) => {
    const click = () => {
      close();
      run();
    };
    return h("button", { type: "button", role: "menuitem", onclick: click }, words);
  };
  list.append(
    entry("Table view (t)", () => context.set({ table: !context.state.table })),
    entry("Export SVG", () => act.export("svg")),
    entry("Copy as text", () => act.export("text")),
    entry("Tidy: lay out afresh", () => act.tidy()),
    entry("Keys and help (?)", () => act.help()),
  );
  list.addEventListener("keydown", (event) => {
    const items = [...list.children] as HTMLElement[];
    const at = items.indexOf((list.getRootNode() as ShadowRoot).activeElement as HTMLElement);
    if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
    else if (event.key === "ArrowUp") items[(at + items.length - 1) % items.length]?.focus();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const wrap = h("span", { class: "gw-more" }, button, list);
  wrap.addEventListener("focusout", (event) => {
    if (!wrap.contains(event.relatedTarget as Node | null)) toggle(false);
  });
  return wrap;
}

export function headerPart(context: Context, boxes: () => number, searchBox: HTMLElement): Part {
  const { act } = context;
  const about = h("span", { class: "gw-facts" });
  const words = h("span", {});
  const pill = h(
    "span",
    { class: "gw-pill", role: "status", "aria-label": "State" },
    h("i", { "aria-hidden": "true" }),
    words,
  );
  const menu = showMenu(context);
  const el = h(
    "div",
    { class: "gw-head" },
    logo(),
    h("b", { class: "gw-title" }, "Autograd graph"),
    about,
    h("span", { class: "gw-space" }),
    searchBox,
    pill,
    menu,
    tool("search", "Search", () => act.search(context.state.search ? null : ""), "/"),
    tool("fit", "Fit", () => act.fit(), "0"),
    tool("legend", "Legend", () => act.legend(), "l"),
    moreMenu(context),
  );
  return {
    el,
    update() {
      const graph = shown(context.state);
      text(about, graph ? (graph.n === 0 ? "nothing to show yet" : facts(graph, boxes())) : "");
      attr(about, "title", about.textContent);
      menu.value = context.state.show.what;
      const now = status(context);
      attr(pill, "data-shape", now.shape);
      text(words, now.words);
      const stale = graph?.findings.length ?? 0;
      attr(pill, "title", stale ? count(stale, "finding") : null);
    },
  };
}
