/** Stepping through one call: which call, the position, and what happens at the node. */

import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Prose } from "../../page/glyphs.tsx";
import { orderOfCall } from "../../picture/model.ts";
import { keyOf, lastStep, nodesIn, PACES, stepText, stepTitle, subjects, type Walk } from "../../state/steps.ts";
import { Button, Mute, type PanelProps, Terms, Tool } from "../parts.tsx";

type Props = Pick<PanelProps, "context"> & { walk: Walk };

function Choice({ context: { act, state }, walk }: Props): VNode {
  const all = subjects(state.now);
  const key = keyOf(walk.subject);
  const choose = (value: string) => act.walk(all.find((each) => each.key === value)?.subject ?? null);
  return (
    <select
      class="gw-select gw-wide"
      aria-label="Call to step through"
      value={key}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {!all.some((each) => each.key === key) && <option value={key}>{walk.steps?.call ?? "a call"}</option>}
      {all.map(({ key, words }) => (
        <option value={key}>{words}</option>
      ))}
    </select>
  );
}

/** The buttons, and the slider, which takes the arrow keys. */
function Controls({ context: { act }, walk }: Props): VNode {
  const slider = useRef<HTMLInputElement>(null);
  const last = lastStep(walk);
  const { at, plays, pace } = walk;
  // Whoever opens a call wants to step: the slider takes the arrow keys.
  useLayoutEffect(() => slider.current?.focus({ preventScroll: true }), []);
  return (
    <>
      <div class="gw-row">
        <Tool name="first" label="Before the call" press={() => act.stepTo(0)} disabled={at === 0} />
        <Tool name="previous" label="One node back" press={() => act.stepTo(at - 1)} disabled={at === 0} shortcut="," />
        <Tool name={plays ? "pause" : "play"} label={plays ? "Pause" : "Play"} press={act.play} />
        <Tool name="next" label="One node on" press={() => act.stepTo(at + 1)} disabled={at === last} shortcut="." />
        <Tool name="last" label="After the call" press={() => act.stepTo(last)} disabled={at === last} />
        <select
          class="gw-select"
          aria-label="Speed"
          value={pace}
          onChange={(event) => act.pace(Number(event.currentTarget.value))}
        >
          {PACES.map(({ words }, i) => (
            <option value={i}>{words}</option>
          ))}
        </select>
      </div>
      <input
        ref={slider}
        class="gw-wide"
        type="range"
        min={0}
        max={last}
        value={at}
        aria-label="Position in the call"
        aria-valuetext={stepTitle(walk)}
        onInput={(event) => act.stepTo(event.currentTarget.valueAsNumber)}
        onKeyDown={(event) => {
          if (event.key !== " ") return;
          event.preventDefault();
          act.play();
        }}
      />
    </>
  );
}

const TOPICS: Record<string, string> = {
  gradient: "gets",
  hooks: "hooks",
  saved: "saved",
  inside: "inside",
  frees: "frees",
  "goes to": "hands on",
  grad: ".grad",
  returned: "returned",
  raises: "raises",
  unknown: "unknown",
};

function Position({ context: { state }, walk }: Props): VNode {
  const steps = walk.steps!;
  const { at, rows } = walk;
  const order = (n: number) => (state.now ? orderOfCall(state.now, n) : -1);
  const prose = (text: string) => <Prose text={text} orderOf={order} />;
  const row = rows[at - 1];
  const isInside = at > 0 && at <= steps.nodes.length;
  const names = row?.names.length ? ` of ${row.names.join(", ")}` : "";
  return (
    <>
      <div class="gw-kick">{stepTitle(walk)}</div>
      {at === 0 && (
        <p>
          <code>{steps.call}</code> {steps.past ? "ran" : "would run"} {nodesIn(steps)} nodes. Step with the arrow keys.
        </p>
      )}
      {isInside && !row && <Mute>asking the kernel …</Mute>}
      {isInside && row && (
        <>
          <h3>
            {row.node}
            {names}
          </h3>
          {(row.place || row.source) && (
            <p class="gw-mute">
              {row.place} <code>{row.source}</code>
            </p>
          )}
          <Terms rows={row.facts.map(([topic, text]) => [TOPICS[topic] ?? topic, prose(text)])} />
        </>
      )}
      {at > steps.nodes.length && <p>{prose(steps.ending)}</p>}
      {steps.assumes.length > 0 && (at === 0 || at > steps.nodes.length) && (
        <>
          <h4>Taken for granted</h4>
          <ul>
            {steps.assumes.map((line) => (
              <li>{line}</li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Content({ context, walk }: Props): VNode {
  const { steps, problem, waits } = walk;
  if (problem) return <p class="gw-err">{problem}</p>;
  if (!steps) return <Mute>{waits ? `waits for ${waits}` : "asking the kernel …"}</Mute>;
  if (lastStep(walk) === 0) return <p>{steps.ending}</p>;
  return (
    <>
      <Controls context={context} walk={walk} />
      <Position context={context} walk={walk} />
    </>
  );
}

export function StepperPanel({ context }: Pick<PanelProps, "context">): VNode | null {
  const { state, act } = context;
  const { walk } = state;
  if (!walk) return null;
  const past = walk.steps?.past ?? "call" in walk.subject;
  return (
    <section class="gw-play" aria-label="Step through a call">
      <div class="gw-row">
        <div class="gw-kick gw-space">Step by step · {past ? "a recorded call" : "nothing has run"}</div>
        <Button class="gw-ib" press={() => act.walk(null)} label="End stepping">
          ✕
        </Button>
      </div>
      <Choice context={context} walk={walk} />
      <Content context={context} walk={walk} />
      <div class="gw-aside" role="status">
        {stepText(walk)}
      </div>
    </section>
  );
}
