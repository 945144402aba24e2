/** The frame of the view: places of the header, the drawing, the panels and the timeline. */

import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Canvas } from "../canvas/canvas.ts";
import type { Drawing } from "../drawing/pipeline.ts";
import type { Lens } from "../lens/lens.ts";
import { LensPanel } from "../lens/panel.tsx";
import { markRules } from "../page/theme.ts";
import { ForecastPanel } from "../panels/calls/forecast.tsx";
import { GuessPanel } from "../panels/calls/guess.tsx";
import { KeepGradBox, Messages } from "../panels/calls/messages.tsx";
import { StepperPanel } from "../panels/calls/stepper.tsx";
import { Empty } from "../panels/empty.tsx";
import { Findings } from "../panels/findings.tsx";
import { Header } from "../panels/header.tsx";
import { Inspector, type Subject } from "../panels/inspector.tsx";
import type { PanelProps } from "../panels/parts.tsx";
import { PresentPanel, presented } from "../panels/present.tsx";
import { StageBar } from "../panels/stagebar.tsx";
import { TablePanel } from "../panels/table.tsx";
import { ComparisonPanel } from "../time/comparison.tsx";
import { Spark } from "../time/spark.tsx";
import { Timeline } from "../time/timeline.tsx";

const MARK_RULES = markRules();

/** Mounts an element that no component has made. */
function Mounted({ element }: { element: Element }): VNode {
  const place = useRef<HTMLDivElement>(null);
  // Only once: an element that is moved loses the focus.
  useLayoutEffect(() => place.current!.append(element), [element]);
  return <div class="gw-mounted" ref={place} />;
}

interface FrameProps extends PanelProps {
  canvas: Canvas;
  dialog: HTMLElement;
  /** The lower edge. */
  edge: HTMLElement;
  lens: Lens;
  drawing: Drawing | null;
  subject: Subject | null;
}

export function Frame({ context, graph, canvas, dialog, edge, lens, drawing, subject }: FrameProps): VNode {
  const props = { context, graph };
  const { root } = context;
  const { walk, guess, presents, running, answer } = context.state;
  const { now } = context.state;
  const spark = now && now.events.length > 0 && root.dataset.low !== undefined ? <Spark graph={now} /> : null;
  const finding = presents ? presented(graph) : null;
  // For an audience a finding is a headline over the picture; with nothing to say the picture is alone.
  const speaks = walk || guess || running || answer?.kind === "alert";
  const stage = !presents || speaks ? undefined : finding ? "headline" : "alone";
  return (
    <>
      <style>{MARK_RULES}</style>
      <Header {...props} boxes={drawing?.folded.boxes.length ?? 0} spark={spark} />
      <div class="gw-body" data-stage={stage}>
        <div class="gw-stage">
          <StageBar {...props} canvas={canvas} />
          <div class="gw-view">
            <Mounted element={canvas.element} />
            <Mounted element={lens.wedge} />
            <LensPanel {...props} lens={lens} around={drawing} />
            <Empty {...props} boxes={drawing?.folded.boxes.length ?? null} />
            <TablePanel {...props} />
          </div>
        </div>
        <aside class="gw-panel" aria-label="Details">
          <Messages {...props} />
          <StepperPanel context={context} />
          <ComparisonPanel {...props} />
          <GuessPanel context={context} />
          {graph && finding && !walk && !guess && <PresentPanel graph={graph} finding={finding} />}
          {!presents && !walk && !guess && !context.state.comparison && (
            <>
              <ForecastPanel {...props} />
              <Findings {...props} />
              <Inspector {...props} subject={subject} />
            </>
          )}
          <KeepGradBox context={context} />
        </aside>
      </div>
      <Timeline context={context} />
      <Mounted element={dialog} />
      <Mounted element={edge} />
    </>
  );
}
