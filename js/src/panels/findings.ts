/** The findings: what is wrong, the way from the loss to the failing node, and the fixes that were checked. */

import { copy } from "../page/clipboard.ts";
import { attr, button, type Child, h, redraw } from "../page/dom.ts";
import { type Finding, type Fix, type Graph, orderOfCall } from "../picture/model.ts";
import { bytes, nameOf } from "../state/say.ts";
import { type Context, type Part, shown } from "../state/state.ts";
import { octagonGlyph, prose, tagGlyph, warningGlyph } from "./glyphs.ts";

/** Path elements beyond five: the first, how many are left out, the last three. */
export function shortPath(path: string[]): (string | { more: string[] })[] {
  return path.length <= 5 ? path : [path[0]!, { more: path.slice(1, -3) }, ...path.slice(-3)];
}

/** Nodes that a name on the path stands for: the holders of that name, or nodes of that name among the finding's. */
function nodesOf(name: string, finding: Finding, graph: Graph): number[] {
  const held = graph.owners.filter((owner) => owner.path === name).map((owner) => graph.uid[owner.node]!);
  if (held.length) return held;
  return finding.uids.filter((uid) => nameOf(graph, graph.indexOf(uid)) === name);
}

function pathStrip({ act }: Context, finding: Finding, graph: Graph): HTMLElement {
  const steps = shortPath(finding.path).map((element, i, all) => {
    const arrow = i > 0 && h("span.gw-mute", { "aria-hidden": "true" }, "→");
    const step = (props: Record<string, string>, child: Child) => [
      arrow,
      h("span", { role: "listitem", ...props }, child),
    ];
    if (typeof element !== "string")
      return step({ class: "gw-mute", title: element.more.join(" → ") }, `${element.more.length} more`);
    const carrier = finding.carriers.includes(element);
    const last = i === all.length - 1;
    const uids = last && finding.uid !== null ? [finding.uid] : nodesOf(element, finding, graph);
    const kind = carrier ? "gw-tagbutton" : last ? "gw-step.gw-bad" : "gw-step";
    const title = carrier && `${element} carried the old part over`;
    return step(
      {},
      button(kind, () => act.reveal(uids), { title }, carrier ? tagGlyph(element, "carrier") : element),
    );
  });
  const props = { role: "list", "aria-label": "From the loss to the failing node" };
  return h("div.gw-row.gw-path", props, steps, finding.severity === "error" && octagonGlyph());
}

function copyButton(lines: string[]): HTMLElement {
  const code = lines.filter((line) => !line.startsWith("- ")).map((line) => line.replace(/^[+ ] ?/, ""));
  const press = async () => {
    el.textContent = (await copy(code.join("\n"))) ? "copied" : "select and copy";
    setTimeout(() => (el.textContent = "copy"), 1500);
  };
  const el = button("gw-link", press, { "aria-label": "copy the fix" }, "copy");
  return el;
}

const LOOKS: Record<string, string> = { "+": "gw-ok", "-": "gw-err" };

function fixCard({ id, text, edit, note }: Fix, i: number, order: (n: number) => number): HTMLElement {
  const best = !i && edit.length > 0;
  return h(
    `li.gw-box${i ? "" : ".gw-best"}` as "li.",
    { "data-fix": id },
    h("div.gw-row", h("b.gw-space", `${i + 1} `, prose(text, order)), best && copyButton(edit)),
    best &&
      h(
        "pre",
        edit.map((line) => h("span", { class: LOOKS[line[0]!] }, `${line}\n`)),
      ),
    note && h("div.gw-mute", prose(note, order)),
  );
}

/** A finding: the one in front in full, with at most three fixes that a simulation confirmed; of the others one line. */
function card(context: Context, finding: Finding, graph: Graph, full: boolean): Child[] {
  const { fixes, headline, text, path, kind, severity } = finding;
  const order = (n: number) => orderOfCall(graph, n);
  const checked = fixes.filter((fix) => fix.verified).slice(0, 3);
  const sign = severity === "error" ? octagonGlyph() : severity === "warning" && warningGlyph();
  const title = [h(`div.gw-kick.gw-${severity}`, sign, finding.kicker), h("h3", prose(headline || text, order))];
  const best = checked[0];
  if (!full) return [title, best && h("p", h("b", "Fix: "), prose(best.text, order))];
  const rest = fixes.filter((fix) => !fix.verified).map(({ text }) => h("li", prose(text, order)));
  return [
    title,
    headline && h("p", prose(text, order)),
    path.length > 0 && pathStrip(context, finding, graph),
    kind === "leak" && finding.bytes > 0 && h("p.gw-mute", `${bytes(finding.bytes)} so far`),
    best && [
      h("h4", "Fixes, best first"),
      h(
        "ol",
        checked.map((fix, i) => fixCard(fix, i, order)),
      ),
    ],
    rest.length > 0 && [h("h4", "Other ways, not verified"), h("ul.gw-mute", rest)],
  ];
}

/** The section. It interrupts a screen reader only for an error. */
export function findingsPart(context: Context): Part {
  const { state, set, act } = context;
  const alert = h("div", { role: "alert" });
  const status = h("div", { role: "status" });
  const el = h("div");
  const paint = redraw(el, () => {
    const graph = shown(state);
    const cards = (graph?.findings ?? []).map((finding, i) => {
      const { kind, severity, uid, uids } = finding;
      const full = i === (state.finding ?? 0) && state.selected === null;
      const nodes = uids.length || uid === null ? uids : [uid];
      const show = () => {
        set({ finding: i, selected: null });
        act.reveal(nodes);
      };
      return h(
        "section.gw-finding",
        { "data-finding": kind, "data-severity": severity },
        card(context, finding, graph!, full),
        (nodes.length || !full) && button("gw-link", show, nodes.length ? "show its nodes" : "show"),
      );
    });
    const errors = cards.filter((each) => each.dataset.severity === "error");
    alert.replaceChildren(...errors);
    status.replaceChildren(...cards.filter((each) => !errors.includes(each)));
    return [alert, status].filter((section) => section.firstChild);
  });
  return {
    el,
    update(graph) {
      attr(el, "hidden", !graph?.findings.length || state.preview !== null);
      paint(graph?.findings, state.finding, state.selected !== null, graph?.calls.length);
    },
  };
}
