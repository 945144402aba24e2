/** The findings: what is wrong, the way from the loss to the failing node, and the fixes that were checked. */
import { attr, type Child, flat, h, memo } from "./dom.ts";
import { octagonGlyph, prose, tagGlyph, warningGlyph } from "./glyphs.ts";
import { orderOfCall } from "./inspector.ts";
import type { Finding, Fix, Graph } from "./picture/model.ts";
import { bytes, cellLine } from "./say.ts";
import { type Context, type Part, shown } from "./state.ts";

const KINDS: Record<string, string> = {
  second_backward: "Second backward",
  inplace: "In-place conflict",
  leak: "Memory grows",
  no_grad: "No gradient",
  silent: "Worth knowing",
};

/** Path elements beyond five: the first, how many are left out, the last three. */
export function shortPath(path: string[]): (string | { more: string[] })[] {
  return path.length <= 5 ? path : [path[0]!, { more: path.slice(1, -3) }, ...path.slice(-3)];
}

function kicker(finding: Finding, graph: Graph): Child[] {
  const call = graph.calls.find((c) => c.n === finding.call);
  const raised = finding.severity === "error";
  const where = call && (call.cell ?? call.line) !== null ? [cellLine(call.cell, call.line)] : [];
  if (call?.iteration != null) where.push(`iteration ${call.iteration}`);
  const words = [KINDS[finding.kind] ?? finding.kind, ...where];
  if (!raised && finding.severity === "warning" && finding.kind !== "leak") words.push("nothing has raised yet");
  return [raised ? octagonGlyph(false) : finding.severity === "warning" ? warningGlyph() : null, words.join(" · ")];
}

/** Nodes that a name on the path stands for: the holders of that name, or nodes of that name among the finding's. */
function nodesOf(name: string, finding: Finding, graph: Graph): number[] {
  const held = graph.owners.filter((owner) => owner.path === name).map((owner) => graph.uid[owner.node]!);
  if (held.length) return held;
  return finding.uids.filter((uid) => {
    const i = graph.indexOf.get(uid);
    return i !== undefined && graph.names[graph.name[i]!] === name;
  });
}

function pathStrip(context: Context, finding: Finding, graph: Graph): HTMLElement {
  const strip = h("div", { class: "gw-path", role: "list", "aria-label": "From the loss to the failing node" });
  shortPath(finding.path).forEach((element, i, all) => {
    if (i > 0) strip.append(h("span", { class: "gw-arrow", "aria-hidden": "true" }, "→"));
    if (typeof element !== "string") {
      strip.append(
        h(
          "span",
          { role: "listitem", class: "gw-mute", title: element.more.join(" → ") },
          `${element.more.length} more`,
        ),
      );
      return;
    }
    const last = i === all.length - 1;
    const carrier = finding.carriers.includes(element);
    const uids = last && finding.uid !== null ? [finding.uid] : nodesOf(element, finding, graph);
    const kind = carrier ? "gw-tagbutton" : last ? "gw-step gw-bad" : "gw-step";
    const button = h(
      "button",
      { type: "button", class: kind, onclick: () => context.act.reveal(uids) },
      carrier ? tagGlyph(element, "carrier") : element,
    );
    if (carrier) attr(button, "title", `${element} carried the old part over`);
    strip.append(h("span", { role: "listitem" }, button));
  });
  if (finding.severity === "error") strip.append(octagonGlyph(false));
  return strip;
}

function copyButton(context: Context, lines: string[]): HTMLElement {
  const code = lines.filter((line) => !line.startsWith("- ")).map((line) => line.replace(/^[+ ] ?/, ""));
  const button = h("button", { type: "button", class: "gw-link gw-copy", "aria-label": "copy the fix" }, "copy");
  button.addEventListener(
    "click",
    async () => {
      try {
        await navigator.clipboard.writeText(code.join("\n"));
        button.textContent = "copied";
      } catch {
        button.textContent = "select and copy";
      }
      setTimeout(() => (button.textContent = "copy"), 1500);
    },
    { signal: context.signal },
  );
  return button;
}

function editLine(line: string): HTMLElement {
  const kind = line.startsWith("+") ? "gw-add" : line.startsWith("-") ? "gw-del" : "";
  return h("span", { class: kind }, `${line}\n`);
}

function fixCard(context: Context, fix: Fix, i: number, order: (n: number) => number): HTMLElement {
  const where = fix.at ? cellLine(fix.at[0], fix.at[1]) : "";
  return h(
    "li",
    { class: i === 0 ? "gw-fix gw-best" : "gw-fix", "data-fix": fix.id },
    h("span", { class: "gw-n", "aria-hidden": "true" }, String(i + 1)),
    h(
      "div",
      { class: "gw-fixhead" },
      h("b", {}, prose(fix.text, order)),
      i === 0 && fix.edit.length > 0 && copyButton(context, fix.edit),
    ),
    i === 0 && fix.edit.length > 0 && h("pre", {}, fix.edit.map(editLine)),
    (fix.price || where) && h("div", { class: "gw-d" }, prose([where, fix.price].filter(Boolean).join(": "))),
  );
}

/** Which fixes are shown: at most three that a simulation confirmed; where none is confirmed, say so. */
export function fixesToShow(finding: Finding): Fix[] {
  return finding.fixes.filter((fix) => fix.verified).slice(0, 3);
}

function full(context: Context, finding: Finding, graph: Graph): Child[] {
  const fixes = fixesToShow(finding);
  const order = (n: number) => orderOfCall(graph, n);
  const rest = finding.fixes.length - fixes.length;
  return [
    h("div", { class: `gw-kick gw-${finding.severity}` }, kicker(finding, graph)),
    h("h3", {}, prose(finding.headline || finding.text, order)),
    finding.headline && h("p", {}, prose(finding.text, order)),
    finding.path.length > 0 && pathStrip(context, finding, graph),
    finding.bytes > 0 && finding.kind === "leak" && h("p", { class: "gw-mute" }, `${bytes(finding.bytes)} so far`),
    fixes.length > 0 && [
      h("h4", {}, "Fixes, best first"),
      h(
        "ol",
        { class: "gw-fixes" },
        fixes.map((f, i) => fixCard(context, f, i, order)),
      ),
    ],
    rest > 0 &&
      h(
        "p",
        { class: "gw-mute" },
        `${rest} more, not verified: `,
        finding.fixes
          .filter((f) => !fixes.includes(f))
          .map((f) => f.text)
          .join("; "),
      ),
  ];
}

function short(finding: Finding, graph: Graph): Child[] {
  const order = (n: number) => orderOfCall(graph, n);
  const fix = fixesToShow(finding)[0];
  return [
    h("h3", {}, prose(finding.headline || finding.text, order)),
    fix && h("p", { class: "gw-short" }, h("b", {}, "Fix: "), prose(fix.text, order)),
  ];
}

/** The section. It interrupts a screen reader only for an error. */
export function findingsPart(context: Context): Part {
  const alert = h("div", { role: "alert", class: "gw-findings" });
  const status = h("div", { role: "status", class: "gw-findings" });
  const el = h("div", {});
  const draw = memo(() => {
    const { state } = context;
    const graph = shown(state);
    const findings = graph?.findings ?? [];
    const first = state.finding ?? 0;
    const cards = findings.map((finding, i) => {
      const open = i === first && !state.selected;
      const card = h("section", {
        class: `gw-finding gw-is-${finding.severity}`,
        "data-finding": finding.kind,
        "data-severity": finding.severity,
      });
      if (open) card.append(...flat(full(context, finding, graph!)));
      else {
        card.append(
          h("div", { class: `gw-kick gw-${finding.severity}` }, kicker(finding, graph!)),
          ...flat(short(finding, graph!)),
        );
      }
      const show = h("button", { type: "button", class: "gw-link gw-show" }, "show its nodes");
      show.addEventListener("click", () => {
        context.set({ finding: i, selected: null });
        context.act.reveal(finding.uids.length ? finding.uids : finding.uid === null ? [] : [finding.uid]);
      });
      card.append(show);
      return { card, finding };
    });
    alert.replaceChildren(...cards.filter((c) => c.finding.severity === "error").map((c) => c.card));
    status.replaceChildren(...cards.filter((c) => c.finding.severity !== "error").map((c) => c.card));
    el.replaceChildren(...[alert, status].filter((section) => section.firstChild));
  });
  return {
    el,
    update() {
      const graph = shown(context.state);
      attr(el, "hidden", !graph?.findings.length || context.state.preview !== null);
      const about = [graph?.findings, context.state.finding, context.state.selected !== null, graph?.calls.length];
      draw(JSON.stringify(about));
    },
  };
}
