/** The footer: stepper, cells, calls, bytes held, and the scrubber. Steps have equal width: order, not wall time. */

import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Graph, TimelineEvent } from "../picture/model.ts";
import { eventText, eventTitle } from "../state/say.ts";
import { type Context, position } from "../state/state.ts";
import { Button, type PanelProps, Tool } from "./parts.tsx";
import { TimelineMarks } from "./timeline_marks.tsx";

const HEIGHT = 84;
const FIRST_WIDTH = 640;
/** With more events than this, words do not fit. */
const BRIEF = 10;

export interface Segment {
  from: number;
  to: number;
  label: string;
  bad: boolean;
}

/**
 * Segments of neighbouring events of one cell and iteration; the end of a cell belongs to the iteration before it.
 * A long loop has room for numbers only.
 */
export function segments(events: TimelineEvent[]): Segment[] {
  const brief = events.length > BRIEF;
  const out: (Segment & { cell: number | null; iteration: number | null; call: boolean })[] = [];
  events.forEach(({ cell, kind, iteration, ok }, i) => {
    const last = out.at(-1);
    const call = kind === "call";
    if (last?.cell === cell && (!call || (last.call && last.iteration === iteration))) {
      last.to = i;
      last.bad ||= !ok;
      return;
    }
    const place = cell === null ? "this view" : `${brief ? "" : "In"}[${cell}]`;
    const label = iteration === null ? place : brief ? `${iteration}` : `it ${iteration} · ${place}`;
    out.push({ from: i, to: i, label, bad: !ok, cell, iteration, call });
  });
  return out;
}

/** The cells and iterations that ran; the width of a segment is its number of events. */
function Segments({ events, at }: { events: TimelineEvent[]; at: number }): VNode {
  return (
    <div class="gw-segs" aria-hidden="true">
      {segments(events).map(({ from, to, bad, label }) => {
        const current = at >= from && at <= to;
        const look = bad ? "gw-seg gw-bad" : current ? "gw-seg gw-cur" : "gw-seg";
        return (
          <div class={look} style={`flex:${to - from + 1}`}>
            {label}
          </div>
        );
      })}
    </div>
  );
}

/** The width of an element in px. An element that is scrolled away may report 0: then the last width stays. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(FIRST_WIDTH);
  useLayoutEffect(() => {
    const now = ref.current!.clientWidth;
    if (now > 0) setWidth(now);
  });
  return { ref, width };
}

interface MomentProps {
  context: Context;
  graph: Graph;
  at: number;
}

function Stepper({ context: { act, state }, graph, at }: MomentProps): VNode {
  const n = graph.events.length;
  const atEnd = at === n - 1;
  const toNow = () => act.travel(null);
  return (
    <div class="gw-stepper">
      <div class="gw-row">
        <Tool name="first" label="First moment" press={() => act.step(Number.NEGATIVE_INFINITY)} disabled={at <= 0} />
        <Tool name="previous" label="Previous step" press={() => act.step(-1)} shortcut="[" disabled={at <= 0} />
        <Tool name="next" label="Next step" press={() => act.step(1)} shortcut="]" disabled={atEnd} />
        <Tool name="last" label="Now" press={toNow} shortcut="n" disabled={atEnd} />
      </div>
      <b>{atEnd ? "Now" : "In the past"}</b>
      <div class="gw-mute">{`${eventTitle(graph.events[at]!)} · step ${at + 1} of ${n}`}</div>
      <Button class="gw-link" press={toNow} hidden={atEnd && state.pastEvent === null}>
        back to now
      </Button>
    </div>
  );
}

function Track({ context: { act, set, state }, graph, at }: MomentProps): VNode {
  const { ref, width } = useWidth();
  const { events } = graph;
  const scrub = (value: number) => {
    // A position left of the first tick counts as the first moment.
    act.step(Math.max(1, value) - 1 - position(state));
    set({}); // if there is no stored event, the slider goes back
  };
  const marks = useMemo(() => <TimelineMarks graph={graph} at={at} width={width} />, [graph, at, width]);
  return (
    <div class="gw-track" ref={ref}>
      <Segments events={events} at={at} />
      <svg class="gw-line" height={HEIGHT} width={width} aria-hidden="true">
        {marks}
      </svg>
      <input
        class="gw-slider"
        type="range"
        min={0}
        max={events.length}
        value={at + 1}
        aria-label="Time"
        aria-valuetext={eventText(events[at]!)}
        onInput={(event) => scrub(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}

/** The timeline of the kernel's last picture, also while a stored picture is on screen. */
export function Timeline({ context }: Pick<PanelProps, "context">): VNode {
  const { now } = context.state;
  const at = position(context.state);
  const shown = now !== null && now.events.length > 0;
  return (
    <div class="gw-foot" hidden={!shown}>
      {shown && <Stepper context={context} graph={now} at={at} />}
      {shown && <Track context={context} graph={now} at={at} />}
    </div>
  );
}
