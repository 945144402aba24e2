/** The footer: stepper, cells, calls, bytes held, and the scrubber. Steps have equal width: order, not wall time. */

import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button, type PanelProps, Tool } from "../panels/parts.tsx";
import type { Graph, TimelineEvent } from "../picture/model.ts";
import { eventText, eventTitle, join } from "../state/say.ts";
import { type Context, ENLARGED, position } from "../state/state.ts";
import { TopEdge } from "./edge.tsx";
import { KeeperNames, NAMES } from "./keepers.tsx";
import { heightsOf, LEFT, RIGHT, TimelineMarks } from "./marks.tsx";
import { eventAt, type Placed, placed } from "./scale.ts";
import { type Segment, segmentsOf } from "./segments.ts";
import { stretchesOf } from "./stretches.ts";

const HEIGHT = 84;
const FIRST_WIDTH = 640;
/** From this number on there is no room for the word beside it. */
const MANY_STEPS = 1000;
/** An event needs this many px: the number of its cell has room in it. */
const EVENT = 34;

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

function Stepper({ context: { act, set, state }, graph, at }: MomentProps): VNode {
  const n = graph.events.length;
  const atEnd = at === n - 1;
  const event = graph.events[at]!;
  const last = graph.events[n - 1]!;
  const toNow = () => act.travel(null);
  const where = `${(event.id + 1).toLocaleString("en")} of ${(last.id + 1).toLocaleString("en")}`;
  return (
    <div class="gw-stepper">
      <div class="gw-row">
        <Tool name="first" label="First moment" press={() => act.step(Number.NEGATIVE_INFINITY)} disabled={at <= 0} />
        <Tool name="previous" label="Previous step" press={() => act.step(-1)} shortcut="[" disabled={at <= 0} />
        <Tool name="next" label="Next step" press={() => act.step(1)} shortcut="]" disabled={atEnd} />
        <Tool name="last" label="Now" press={toNow} shortcut="n" disabled={atEnd} />
        <Tool
          name={state.enlarged > 0 ? "reduce" : "enlarge"}
          label={state.enlarged > 0 ? "Reduce the timeline" : "Enlarge the timeline: who keeps which bytes"}
          press={() => set({ enlarged: state.enlarged > 0 ? 0 : ENLARGED })}
          shortcut="b"
        />
      </div>
      <div class="gw-when" title={`step ${where}`}>
        <b>{atEnd ? "Now" : "Past"}</b>
        <span class="gw-mute">{` · ${last.id < MANY_STEPS ? "step " : ""}${where}`}</span>
      </div>
      <div class="gw-mute gw-when" title={join(" · ", eventTitle(event).trim(), event.where)}>
        {eventTitle(event)}
      </div>
      {/* One row, whatever there is in it: else the drawing would move. */}
      <div class="gw-row">
        <Button class="gw-link" press={act.compareMoments} title="Compare two moments (c)" hidden={n < 2}>
          {state.comparison ? "end comparing" : "compare"}
        </Button>
        <Button class="gw-link" press={toNow} hidden={(atEnd && state.pastEvent === null) || state.comparison !== null}>
          back to now
        </Button>
      </div>
    </div>
  );
}

/** The events between the two ids, as indices. Those that are not stored any more are left out. */
function indicesOf(events: readonly TimelineEvent[], ids: readonly [number, number] | undefined): [number, number] {
  const from = ids ? events.findIndex(({ id }) => id >= ids[0]) : 0;
  const to = ids ? events.findLastIndex(({ id }) => id <= ids[1]) : events.length - 1;
  return from < 0 || to < from ? [0, events.length - 1] : [from, to];
}

/** The cells and iterations that ran. What was folded is a button that opens it. */
function Segments(props: { segments: readonly Segment[]; at: number; open(segment: Segment): void }): VNode {
  const { segments, at, open } = props;
  return (
    <div class="gw-segs">
      {segments.map((segment) => {
        const { from, to, left, right, bad, label, title, opens } = segment;
        const current = at >= from && at <= to;
        const name = bad ? "gw-seg gw-bad" : current ? "gw-seg gw-cur" : "gw-seg";
        const style = `left:${left.toFixed(1)}px;width:${(right - left - 1).toFixed(1)}px`;
        if (!opens)
          return (
            <div class={name} style={style} title={title} aria-hidden="true">
              {label}
            </div>
          );
        return (
          <button
            type="button"
            class={`${name} gw-folded`}
            style={style}
            title={`Open ${title}`}
            aria-label={`Open ${title}`}
            onClick={() => open(segment)}
          >
            {label}
          </button>
        );
      })}
    </div>
  );
}

/** The scrubber. The browser's own slider gives keys and its name; a pointer means the place that is drawn there. */
function Slider({ context: { act, set, state }, graph, at, stretches }: MomentProps & { stretches: Placed[] }): VNode {
  const pressed = useRef(false);
  const { events } = graph;
  const go = (to: number) => {
    if (to !== position(state)) act.step(to - position(state));
  };
  const follow = (event: PointerEvent) => {
    const slider = event.currentTarget as HTMLElement;
    go(eventAt(stretches, event.clientX - slider.parentElement!.getBoundingClientRect().left));
  };
  const release = () => {
    pressed.current = false;
    set({});
  };
  return (
    <input
      class="gw-slider"
      type="range"
      min={0}
      max={events.length}
      value={at + 1}
      aria-label="Time"
      aria-valuetext={eventText(events[at]!)}
      onPointerDown={(event) => {
        pressed.current = event.button === 0;
        if (pressed.current) follow(event);
      }}
      onPointerMove={(event) => pressed.current && follow(event)}
      onPointerUp={release}
      onPointerCancel={release}
      onInput={(event) => {
        // A position left of the first tick counts as the first moment.
        if (!pressed.current) go(Math.max(1, event.currentTarget.valueAsNumber) - 1);
        set({}); // if there is no stored event, the slider goes back
      }}
    />
  );
}

function Track({ context, graph, at }: MomentProps): VNode {
  const { ref, width } = useWidth();
  const { state, set } = context;
  const { events } = graph;
  const { enlarged } = state;
  const height = HEIGHT + enlarged;
  const right = width - (enlarged > 0 ? NAMES : RIGHT);
  const from = events.findIndex(({ id }) => id === state.comparison?.from);
  const keepers = enlarged > 0 ? state.keepers : null;
  const opened = state.stretches.at(-1);
  const forecast = state.preview?.forecasts?.[state.preview.mode].held ?? 0;
  const [stretches, segments, heights] = useMemo(() => {
    const [from, to] = indicesOf(events, opened);
    const found = placed(stretchesOf(events, from, to, (right - LEFT) / EVENT), LEFT, right);
    return [found, segmentsOf(events, found), heightsOf(events, found, height)] as const;
  }, [events, opened, right, height]);
  const marks = useMemo(
    () => <TimelineMarks {...{ graph, stretches, heights, keepers, at, from, right, forecast }} />,
    [graph, stretches, heights, keepers, at, from, right, forecast],
  );
  const open = ({ from, to }: Segment) =>
    set({ stretches: [...state.stretches, [events[from]!.id, events[to]!.id] as const] });
  return (
    <div class="gw-track" ref={ref} style={`height:${height}px`}>
      <svg class="gw-line" height={height} width={width} aria-hidden="true">
        {marks}
      </svg>
      <Slider context={context} graph={graph} at={at} stretches={stretches} />
      {enlarged > 0 && <KeeperNames {...{ context, graph, at }} y={heights.y} room={heights} />}
      <Segments segments={segments} at={at} open={open} />
      <Button
        class="gw-out"
        label="Show more of the timeline"
        title="Show more of the timeline (esc)"
        press={() => set({ stretches: state.stretches.slice(0, -1) })}
        hidden={!opened}
      >
        ◂ all
      </Button>
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
      {shown && <TopEdge context={context} />}
      {shown && <Stepper context={context} graph={now} at={at} />}
      {shown && <Track context={context} graph={now} at={at} />}
    </div>
  );
}
