/** Predict first: what is asked, all slots as a list, the call, and how right the answers were. */

import type { VNode } from "preact";
import { Prose } from "../../page/glyphs.tsx";
import { Glyph } from "../../page/marks.tsx";
import { type Mark, path, rect, shape } from "../../picture/marks.ts";
import { orderOfCall } from "../../picture/model.ts";
import { type ChoiceNode, choices, type Guess, scoreText } from "../../state/guess.ts";
import type { Compared } from "../../state/replies.ts";
import { backwardName, join } from "../../state/say.ts";
import { Button, Mute, type PanelProps } from "../parts.tsx";

/** More slots than this are not listed one by one. */
const MOST_SLOTS = 400;

type Props = Pick<PanelProps, "context"> & { guess: Guess };

function Call({ context: { act, state }, guess }: Props): VNode {
  const roots = state.now?.roots.filter((root) => root.alive && !root.lost && root.node >= 0) ?? [];
  const calls = roots.flatMap((root) => [false, true].map((retain) => ({ root, retain, key: `${root.id} ${retain}` })));
  const choose = (key: string) => {
    const call = calls.find((each) => each.key === key);
    if (call) act.guess(call.root, call.retain);
  };
  return (
    <select
      class="gw-select gw-wide"
      aria-label="Call to predict"
      value={`${guess.root.id} ${guess.retain}`}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {calls.map(({ root, retain, key }) => (
        <option value={key}>{backwardName(root, retain ? "retain" : "backward")}</option>
      ))}
    </select>
  );
}

function Raises({ context: { act }, guess, nodes }: Props & { nodes: readonly ChoiceNode[] }): VNode {
  const option = (value: "no" | "yes", words: string) => (
    <label class="gw-row">
      <input type="radio" checked={guess.fails === value} onChange={() => act.say({ fails: value })} />
      {words}
    </label>
  );
  return (
    <fieldset disabled={guess.runs}>
      <legend>1. Does it raise?</legend>
      {option("no", "It runs")}
      {option("yes", "It raises, at")}
      <select
        class="gw-select gw-wide"
        aria-label="Node at which it raises"
        value={String(guess.failsAt ?? "")}
        onChange={({ currentTarget: { value } }) => act.say({ fails: "yes", failsAt: value ? Number(value) : null })}
      >
        <option value="">some node</option>
        {nodes.map(({ uid, name, where }) => (
          <option value={String(uid)}>{where ? `${name} (${where})` : name}</option>
        ))}
      </select>
    </fieldset>
  );
}

function Frees({ context: { act }, guess, nodes }: Props & { nodes: readonly ChoiceNode[] }): VNode {
  const slots = nodes.reduce((sum, node) => sum + node.slots.length, 0);
  return (
    <fieldset disabled={guess.runs}>
      <legend>2. Which saved tensors does it free?</legend>
      <Mute>Mark them in the picture, or here. None is an answer, too.</Mute>
      {slots > MOST_SLOTS && <Mute>There are {slots}: too many for a list. Use graphwidget.predict in Python.</Mute>}
      {slots <= MOST_SLOTS &&
        nodes
          .filter((node) => node.slots.length > 0)
          .map(({ name, where, slots }) => (
            <div class="gw-row">
              <code>{name}</code>
              {where && <span class="gw-mute">{where}</span>}
              {slots.map(({ key, name: slot }) => (
                <label class="gw-row gw-check">
                  <input
                    type="checkbox"
                    aria-label={join(" of ", `${name}.${slot}`, where)}
                    checked={guess.frees.has(key)}
                    onChange={() => act.mark(key)}
                  />
                  <code>{slot}</code>
                </label>
              ))}
            </div>
          ))}
    </fieldset>
  );
}

function Question({ context, guess }: Props): VNode {
  const { state, act } = context;
  const nodes = state.now ? choices(state.now) : [];
  const off = state.link === "gone" || state.link === "recorded";
  return (
    <>
      <Raises context={context} guess={guess} nodes={nodes} />
      <Frees context={context} guess={guess} nodes={nodes} />
      <Mute>
        Then the call runs for real, as its button does. What it frees does not come back, also if it raises on the way.
      </Mute>
      <div class="gw-do">
        <Button class="gw-btn gw-pri" press={act.compare} disabled={!guess.fails || guess.runs || off}>
          {guess.runs ? "It is running …" : "Run it and compare"}
        </Button>
        {!guess.fails && <span class="gw-mute"> First say whether it raises.</span>}
      </div>
    </>
  );
}

const sign = (marks: Mark[]) => <Glyph marks={marks} width={34} height={20} origin="-3 -5" />;
const tick = shape(path`M22 0L24.2 2.4L28.4 -2.6`, "tick");
const cross = shape(path`M22 -2.6L27.2 2.6M27.2 -2.6L22 2.6`, "cross");
const KEY: [VNode, string][] = [
  [sign([rect(0, 0, 24, 12, "ring"), tick]), "you marked it, and it was freed"],
  [sign([rect(0, 0, 24, 12, "ringmissed")]), "freed, but you did not mark it"],
  [sign([rect(0, 0, 24, 12, "ringextra"), cross]), "you marked it, but it was not freed"],
];

const SAID = { true: "right", false: "wrong", null: "not known" } as const;

function Result({ context: { act, state }, result }: Props & { result: Compared }): VNode {
  const { found, mistakes } = scoreText(result);
  const order = (n: number) => (state.now ? orderOfCall(state.now, n) : -1);
  const asksSlots = result.marks.length > 0 || result.freed > 0;
  return (
    <>
      <p class="gw-score" role="status">
        {asksSlots && (
          <>
            <b>{found}</b> found{mistakes && ` · ${mistakes}`}
          </>
        )}
        {!asksSlots && <b>{result.score === 1 ? "All right" : result.score === null ? "Open" : "Not right"}</b>}
      </p>
      {!result.fact && <Mute>PyTorch refused the call before any node ran: it is compared with the forecast.</Mute>}
      {asksSlots && (
        <dl>
          {KEY.map(([glyph, words]) => (
            <>
              <dt>{glyph}</dt>
              <dd>{words}</dd>
            </>
          ))}
        </dl>
      )}
      <h4>Why</h4>
      <ul class="gw-why">
        {result.answers.map(([right, text]) => (
          <li data-right={SAID[String(right) as keyof typeof SAID]}>
            <Prose text={text} orderOf={order} />
          </li>
        ))}
      </ul>
      {result.more > 0 && <Mute>and {result.more} more</Mute>}
      <div class="gw-do">
        <Button class="gw-btn gw-pri" press={() => act.guess()}>
          Next prediction
        </Button>
      </div>
    </>
  );
}

export function GuessPanel({ context }: Pick<PanelProps, "context">): VNode | null {
  const { state, act } = context;
  const { guess } = state;
  if (!guess) return null;
  const { result } = guess;
  return (
    <section class="gw-guess" aria-label="Predict first">
      <div class="gw-row">
        <div class="gw-kick gw-space">Predict first{result ? "" : " · nothing has run"}</div>
        <Button class="gw-ib" press={() => act.guess(null)} label="End predicting">
          ✕
        </Button>
      </div>
      <h3>
        {result ? "What did " : "What does "}
        <code>{backwardName(guess.root, guess.retain ? "retain" : "backward")}</code> do?
      </h3>
      {!result && <Call context={context} guess={guess} />}
      {result ? (
        <Result context={context} guess={guess} result={result} />
      ) : (
        <Question context={context} guess={guess} />
      )}
    </section>
  );
}
