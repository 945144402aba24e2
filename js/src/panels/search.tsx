/** The search box. Hits are uids, so that they outlive folding and updates. */

import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { endEvent } from "../page/elements.ts";
import type { PanelProps } from "./parts.tsx";

export function SearchBox({ context: { act, state } }: PanelProps): VNode {
  const input = useRef<HTMLInputElement>(null);
  const { search } = state;
  const open = search !== null;
  useLayoutEffect(() => {
    if (!open) return;
    input.current!.value = search.text;
    input.current!.focus();
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") act.nextHit(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") act.search(null);
    else return;
    endEvent(event);
  };
  return (
    <span class="gw-row gw-search" hidden={!open}>
      <input
        ref={input}
        class="gw-searchbox"
        type="search"
        aria-label="Search nodes: op, name, line or module"
        placeholder="op, name, line, module"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => act.search(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <span class="gw-mute gw-found" aria-live="polite">
        {search && found(search)}
      </span>
    </span>
  );
}

function found({ text, hits, at }: { text: string; hits: readonly number[]; at: number }): string {
  if (!text.trim()) return "";
  return hits.length > 0 ? `${at + 1} of ${hits.length}` : "none";
}
