/** Top of the panel: the call that runs or waits, or the last answer. Bottom: an option for the next call. */

import type { VNode } from "preact";
import { join } from "../../state/say.ts";
import type { Running } from "../../state/state.ts";
import { Button, type PanelProps } from "../parts.tsx";

function RunningCall({ running, cancel }: { running: Running; cancel(): void }): VNode {
  const { what, behind } = running;
  return (
    <>
      <p>
        <b>{what}</b>
        {behind ? ` waits for ${behind}. Nothing has changed yet.` : " is running"}
      </p>
      <Button class="gw-btn" press={cancel}>
        Cancel
      </Button>
    </>
  );
}

export function Messages({ context: { act, state } }: PanelProps): VNode {
  const { running, answer, link } = state;
  const words = answer && join(" ", answer.text, answer.next);
  const readOnly = link === "gone" && "You can look around. backward() needs a kernel: run the notebook first.";
  return (
    <div>
      <div class="gw-answer" role="status">
        {running && <RunningCall running={running} cancel={act.cancel} />}
        {(answer?.kind === "status" && words) || readOnly || null}
      </div>
      {/* A screen reader speaks an alert when it appears: so it exists only while it has a text. */}
      {answer?.kind === "alert" && (
        <div class="gw-answer gw-err" role="alert">
          {words}
        </div>
      )}
    </div>
  );
}

/** The option to restore every .grad after a call. */
export function KeepGradBox({ context: { set, state } }: Pick<PanelProps, "context">): VNode {
  return (
    <label
      class="gw-row gw-mute gw-keep"
      hidden={state.link === "recorded"}
      title="The call runs for real; afterwards every .grad is put back."
    >
      <input
        type="checkbox"
        checked={state.keepGrad}
        onChange={(event) => set({ keepGrad: event.currentTarget.checked })}
      />
      <span>
        keep <code>.grad</code> as it was
      </span>
    </label>
  );
}
