/** The forecast of a backward for both buttons: computed, never run. */

import type { ComponentChildren, VNode } from "preact";
import { CheckGlyph, OctagonGlyph, type OrderOf, Prose } from "../../page/glyphs.tsx";
import { orderOfCall } from "../../picture/model.ts";
import type { Forecast, Forecasts } from "../../state/replies.ts";
import { backwardName, count } from "../../state/say.ts";
import type { Mode, Preview } from "../../state/state.ts";
import { Button, Mute, type PanelProps, Row, Table } from "../parts.tsx";

const MODES: readonly Mode[] = ["backward", "retain"];
const MOST_LEAVES = 12;

function Ending({ word, at }: { word: string; at: string | null }): VNode {
  if (word === "ok")
    return (
      <>
        <CheckGlyph />
        <span class="gw-ok"> runs</span>
      </>
    );
  if (word === "unknown") return <span class="gw-mute">? unknown</span>;
  return (
    <>
      <OctagonGlyph forecast />
      <span class="gw-err" title={at ?? word}>
        {" raises"}
      </span>
    </>
  );
}

interface CardProps {
  mode: Mode;
  forecast: Forecast;
  chosen: boolean;
  orderOf: OrderOf;
  press(): void;
}

/** The forecast of one of the two calls. A press keeps it on screen. */
function Card({ mode, forecast: { ok, outcome, facts }, chosen, orderOf, press }: CardProps): VNode {
  return (
    <button
      type="button"
      class={chosen ? "gw-card gw-box gw-on" : "gw-card gw-box"}
      data-mode={mode}
      aria-pressed={chosen}
      onClick={press}
    >
      <code>{mode === "retain" ? "retain_graph=True" : "backward()"}</code>
      <b class={ok === false ? "gw-outcome gw-err" : "gw-outcome"}>
        {ok === false && <OctagonGlyph forecast />} <Prose text={outcome} orderOf={orderOf} />
      </b>
      {facts.map((fact) => (
        <span>
          <Prose text={fact} orderOf={orderOf} />
        </span>
      ))}
    </button>
  );
}

function Afterwards({ forecasts: { backward, retain } }: { forecasts: Forecasts }): VNode | null {
  if (backward.afterwards.length === 0) return null;
  return (
    <>
      <h4>Afterwards</h4>
      <Table class="gw-after" titles={["then", "backward()", "retain_graph"]}>
        {backward.afterwards.map((call) => {
          const other = retain.afterwards.find((each) => each.root === call.root);
          const cells = [
            <Ending word={call.backward} at={call.at} />,
            other ? <Ending word={other.backward} at={other.at} /> : "–",
          ];
          return <Row head={`${call.root}.backward()`} cells={cells} />;
        })}
      </Table>
    </>
  );
}

/** The leaves that get a gradient. */
function Reached({ forecast: { ok, reaches } }: { forecast: Forecast }): VNode {
  const raises = ok === false;
  if (reaches.length === 0)
    return (
      <p>
        No <code>.grad</code> would change.
      </p>
    );
  const leaves = `Gradient would reach ${count(reaches.length, "leaf", "leaves")}`;
  const more = reaches.length - MOST_LEAVES;
  return (
    <>
      <h4>{raises ? "Before it raises it would add to the .grad of" : leaves}</h4>
      <p>
        <code>{reaches.slice(0, MOST_LEAVES).join(", ")}</code>
        {more > 0 && ` and ${more} more`}
      </p>
    </>
  );
}

interface AnswerProps {
  forecasts: Forecasts;
  mode: Mode;
  orderOf: OrderOf;
  keep(mode: Mode): void;
}

function Answer({ forecasts, mode, orderOf, keep }: AnswerProps): VNode {
  const { assumes } = forecasts[mode];
  return (
    <>
      <div class="gw-cards">
        {MODES.map((each) => (
          <Card
            key={each}
            mode={each}
            forecast={forecasts[each]}
            chosen={each === mode}
            orderOf={orderOf}
            press={() => keep(each)}
          />
        ))}
      </div>
      <Afterwards forecasts={forecasts} />
      <Reached forecast={forecasts[mode]} />
      {assumes.length > 0 && <h4>Taken for granted</h4>}
      {assumes.length > 0 && (
        <ul>
          {assumes.map((line) => (
            <li>{line}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function content(
  { root, mode, problem, forecasts, kept }: Preview,
  orderOf: OrderOf,
  keep: (mode: Mode | null) => void,
): ComponentChildren {
  return (
    <>
      <div class="gw-kick">
        Forecast · nothing has run
        <span class="gw-space" />
        <Button class="gw-link" press={() => keep(kept ? null : mode)} title="key k">
          {kept ? "let go" : "keep"}
        </Button>
      </div>
      <h3>
        If you run <code>{backwardName(root, mode)}</code>
      </h3>
      {problem && <p>{problem}</p>}
      {!problem && !forecasts && <Mute>asking the kernel …</Mute>}
      {!problem && forecasts && <Answer forecasts={forecasts} mode={mode} orderOf={orderOf} keep={keep} />}
    </>
  );
}

export function ForecastPanel({ context: { act, state } }: PanelProps): VNode {
  const { now, preview } = state;
  const orderOf = (n: number) => (now ? orderOfCall(now, n) : -1);
  return (
    <section class="gw-forecast" aria-label="Forecast" hidden={!preview} onPointerLeave={() => act.preview(null)}>
      {preview && content(preview, orderOf, act.keepPreview)}
    </section>
  );
}
