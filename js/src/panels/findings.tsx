/** The findings: the problem, the path from the loss to the failing node, and the verified fixes. */

import type { ComponentChildren, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { copy } from "../page/clipboard.ts";
import { OctagonGlyph, type OrderOf, Prose, TagGlyph, WarningGlyph } from "../page/glyphs.tsx";
import { isPast } from "../picture/fold/index.ts";
import { type Finding, type Fix, type Graph, isForecast, orderOfCall } from "../picture/model.ts";
import { bytes, nameOf } from "../state/say.ts";
import type { Context } from "../state/state.ts";
import { Button, type PanelProps } from "./parts.tsx";

const MOST_FIXES = 3;
const COPIED_MS = 1500;
/** How the kernel begins the words over a finding whose call was followed by others. */
const EARLIER = "Earlier: ";

/** A path of more than five elements: the first, the number left out, the last three. */
export function shortPath(path: string[]): (string | { more: string[] })[] {
  return path.length <= 5 ? path : [path[0]!, { more: path.slice(1, -3) }, ...path.slice(-3)];
}

/** uids for a name on the path: nodes held by a variable of that name, else nodes of the finding with that name. */
function nodesOf(name: string, finding: Finding, graph: Graph): number[] {
  const held = graph.owners.filter((owner) => owner.path === name).map((owner) => graph.uid[owner.node]!);
  if (held.length > 0) return held;
  return finding.uids.filter((uid) => nameOf(graph, graph.indexOf(uid)) === name);
}

interface Shows {
  /** Puts the finding in front, and shows its nodes. */
  show(): void;
}

interface OneFinding {
  context: Context;
  finding: Finding;
  graph: Graph;
}

/** The path from the loss to the failing node. */
function PathStrip({ context, finding, graph }: OneFinding): VNode {
  const elements = shortPath(finding.path);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a row of buttons with arrows between them
    <div class="gw-row gw-path" role="list" aria-label="From the loss to the failing node">
      {elements.map((element, i) => [
        i > 0 && (
          <span class="gw-mute" aria-hidden="true">
            →
          </span>
        ),
        typeof element === "string" ? (
          // biome-ignore lint/a11y/useSemanticElements: see above
          <span role="listitem">
            <PathStep
              context={context}
              finding={finding}
              graph={graph}
              name={element}
              last={i === elements.length - 1}
            />
          </span>
        ) : (
          // biome-ignore lint/a11y/useSemanticElements: see above
          <span role="listitem" class="gw-mute" title={element.more.join(" → ")}>
            {element.more.length} more
          </span>
        ),
      ])}
      {finding.severity === "error" && <OctagonGlyph />}
    </div>
  );
}

function PathStep({ context, finding, graph, name, last }: OneFinding & { name: string; last: boolean }): VNode {
  const uids = last && finding.uid !== null ? [finding.uid] : nodesOf(name, finding, graph);
  const reveal = () => context.act.reveal(uids);
  if (finding.carriers.includes(name))
    return (
      <Button class="gw-tagbutton" press={reveal} title={`${name} carried the old part over`}>
        <TagGlyph name={name} look="carrier" />
      </Button>
    );
  return (
    <Button class={last ? "gw-step gw-bad" : "gw-step"} press={reveal}>
      {name}
    </Button>
  );
}

/** A button that copies the lines of an edit as they are after the change. */
function CopyButton({ edit }: { edit: readonly string[] }): VNode {
  const [words, setWords] = useState("copy");
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const press = async () => {
    const code = edit.filter((line) => !line.startsWith("- ")).map((line) => line.replace(/^[+ ] ?/, ""));
    setWords((await copy(code.join("\n"))) ? "copied" : "select and copy");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setWords("copy"), COPIED_MS);
  };
  return (
    <Button class="gw-link" press={press} label="copy the fix">
      {words}
    </Button>
  );
}

function classOfLine(line: string): string | undefined {
  if (line.startsWith("+")) return "gw-ok";
  return line.startsWith("-") ? "gw-err" : undefined;
}

interface OneFix {
  context: Context;
  fix: Fix;
  orderOf: OrderOf;
}

/** The button that tries a fix, and what came of it. The sentence of the answer is spoken where messages are. */
function TrialOf({ context: { state, act }, fix }: OneFix): VNode {
  const { key, tried, passed } = fix;
  const look = passed === true ? "gw-ok" : passed === false ? "gw-err" : "gw-mute";
  const canTry = Boolean(key) && state.link !== "recorded" && state.link !== "gone";
  return (
    <>
      {tried !== "" && <div class={look}>{tried}</div>}
      {canTry && (
        <Button class="gw-link" press={() => act.tryFix(fix)} title="run your cells again with this fix, elsewhere">
          {tried ? "try it again" : "try it"}
        </Button>
      )}
    </>
  );
}

function FixCard({ context, fix, position, orderOf }: OneFix & { position: number }): VNode {
  const { id, text, edit, note } = fix;
  const best = position === 0;
  const showsEdit = best && edit.length > 0;
  return (
    <li class={best ? "gw-box gw-best" : "gw-box"} data-fix={id}>
      <div class="gw-row">
        <b class="gw-space">
          {position + 1} <Prose text={text} orderOf={orderOf} />
        </b>
        {showsEdit && <CopyButton edit={edit} />}
      </div>
      {showsEdit && (
        <pre>
          {edit.map((line) => (
            <span class={classOfLine(line)}>{`${line}\n`}</span>
          ))}
        </pre>
      )}
      {note && (
        <div class="gw-mute">
          <Prose text={note} orderOf={orderOf} />
        </div>
      )}
      <TrialOf context={context} fix={fix} orderOf={orderOf} />
    </li>
  );
}

/** A finding in full, with at most three verified fixes. */
function Details({ context, finding, graph, orderOf }: OneFinding & { orderOf: OrderOf }): VNode {
  const { fixes, headline, text, path, kind } = finding;
  const checked = fixes.filter((fix) => fix.verified).slice(0, MOST_FIXES);
  const others = fixes.filter((fix) => !fix.verified);
  return (
    <>
      {headline && (
        <p>
          <Prose text={text} orderOf={orderOf} />
        </p>
      )}
      {path.length > 0 && <PathStrip context={context} finding={finding} graph={graph} />}
      {kind === "leak" && finding.bytes > 0 && <p class="gw-mute">{bytes(finding.bytes)} so far</p>}
      {checked.length > 0 && <h4>Fixes, best first</h4>}
      {checked.length > 0 && (
        <ol>
          {checked.map((fix, i) => (
            <FixCard context={context} fix={fix} position={i} orderOf={orderOf} />
          ))}
        </ol>
      )}
      {others.length > 0 && <h4>Other ways, not verified</h4>}
      {others.length > 0 && (
        <ul class="gw-mute">
          {others.map((fix) => (
            <li>
              <Prose text={fix.text} orderOf={orderOf} /> <TrialOf context={context} fix={fix} orderOf={orderOf} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** A finding of an earlier cell, or about an older graph: one line that opens. */
function PastFinding({
  finding: { kind, severity, kicker, headline, text },
  show,
}: Pick<OneFinding, "finding"> & Shows): VNode {
  const words = kicker.startsWith(EARLIER) ? kicker : `${EARLIER}${kicker[0]?.toLowerCase()}${kicker.slice(1)}`;
  return (
    <section class="gw-finding gw-past" data-finding={kind} data-severity={severity}>
      <Button class="gw-link" press={show} title={headline || text} expanded={false}>
        {`${words} ▸`}
      </Button>
    </section>
  );
}

/** One finding. `full`: the one in front; other findings show one line and the best fix. */
function FindingSection({ context, finding, graph, full, show }: OneFinding & Shows & { full: boolean }): VNode {
  const { kind, severity, kicker, headline, text, fixes } = finding;
  const orderOf = (n: number) => orderOfCall(graph, n);
  const best = fixes.find((fix) => fix.verified);
  const hasNodes = uidsOf(finding).length > 0;
  return (
    <section class="gw-finding" data-finding={kind} data-severity={severity}>
      <div class={`gw-kick gw-${severity}`}>
        {severity === "error" && <OctagonGlyph />}
        {(severity === "warning" || isForecast(finding)) && <WarningGlyph />}
        {kicker}
      </div>
      <h3>
        <Prose text={headline || text} orderOf={orderOf} />
      </h3>
      {full && <Details context={context} finding={finding} graph={graph} orderOf={orderOf} />}
      {!full && best && (
        <p>
          <b>Fix: </b>
          <Prose text={best.text} orderOf={orderOf} />
        </p>
      )}
      {(hasNodes || !full) && (
        <Button class="gw-link" press={show}>
          {hasNodes ? "show its nodes" : "show"}
        </Button>
      )}
    </section>
  );
}

function uidsOf({ uid, uids }: Finding): number[] {
  return uids.length > 0 || uid === null ? uids : [uid];
}

/** The findings. They interrupt a screen reader only for an error. */
export function Findings({ context, graph }: PanelProps): VNode {
  const { state, set, act } = context;
  const alerts: ComponentChildren[] = [];
  const quiet: ComponentChildren[] = [];
  const first = graph?.findings.findIndex((finding) => !isPast(finding, graph)) ?? -1;
  graph?.findings.forEach((finding, i) => {
    const past = isPast(finding, graph);
    const full = i === (state.finding ?? first) && state.selected === null;
    const show = () => {
      set({ finding: i, selected: null });
      act.reveal(uidsOf(finding));
    };
    const list = finding.severity === "error" ? alerts : quiet;
    if (past && !full) list.push(<PastFinding key={i} finding={finding} show={show} />);
    else
      list.push(<FindingSection key={i} context={context} finding={finding} graph={graph} full={full} show={show} />);
  });
  // A screen reader speaks what changes in a live region: so these hold the sentences only, not the cards.
  const orderOf = (n: number) => (graph ? orderOfCall(graph, n) : -1);
  const sentences = (list: readonly Finding[]) =>
    list.map(({ headline, text }) => <Prose text={headline || text} orderOf={orderOf} />);
  const present = graph?.findings.filter((finding) => !isPast(finding, graph)) ?? [];
  const errors = present.filter(({ severity }) => severity === "error");
  const rest = present.filter(({ severity }) => severity !== "error");
  return (
    <>
      {errors.length > 0 && (
        <div class="gw-aside" role="alert">
          {sentences(errors)}
        </div>
      )}
      {rest.length > 0 && (
        <div class="gw-aside" role="status">
          {sentences(rest)}
        </div>
      )}
      <section aria-label="Findings" hidden={alerts.length + quiet.length === 0 || state.preview !== null}>
        {alerts}
        {quiet}
      </section>
    </>
  );
}
