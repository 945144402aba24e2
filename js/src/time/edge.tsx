/** The upper edge of the timeline: dragging it, or arrow keys, enlarge the timeline. */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { drag } from "../page/pointer.ts";
import type { Context } from "../state/state.ts";

const KEY_STEP = 20;
/** The drawing keeps this many px. */
const DRAWING = 300;

export function TopEdge({ context: { root, set, state } }: { context: Context }): VNode {
  const edge = useRef<HTMLDivElement>(null);
  const most = Math.max(0, root.clientHeight - DRAWING);
  const change = (px: number) =>
    set({ enlarged: Math.round(Math.min(Math.max(0, root.clientHeight - DRAWING), Math.max(0, px))) });
  useEffect(() => {
    let wanted = 0;
    const press = () => {
      wanted = state.enlarged;
      return true;
    };
    drag(edge.current!, press, (_dx, dy) => {
      wanted -= dy;
      change(wanted);
    });
  }, []);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot have the focus or a value
    <div
      ref={edge}
      class="gw-topedge"
      role="separator"
      tabindex={0}
      aria-orientation="horizontal"
      aria-label="Height of the timeline"
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={state.enlarged}
      onKeyDown={(event) => {
        const by = { ArrowUp: KEY_STEP, ArrowDown: -KEY_STEP }[event.key];
        if (by === undefined) return;
        change(state.enlarged + by);
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}
