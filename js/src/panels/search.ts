/** The search box. Hits are uids, so that they outlive folding and updates. */

import { attr, h, keys, text } from "../page/dom.ts";
import type { Context, Part } from "../state/state.ts";

export function searchPart({ act, state }: Context): Part {
  const input = h("input.gw-searchbox", {
    type: "search",
    role: "searchbox",
    "aria-label": "Search nodes: op, name, line or module",
    placeholder: "op, name, line, module",
    autocomplete: "off",
    spellcheck: "false",
    input: () => act.search(input.value),
  });
  keys(input, {
    Enter: (event) => act.nextHit(event.shiftKey ? -1 : 1),
    Escape: () => act.search(null),
  });
  const found = h("span.gw-mute.gw-found", { "aria-live": "polite" });
  const el = h("span.gw-row.gw-search", { hidden: true }, input, found);
  return {
    el,
    update(graph) {
      const { search } = state;
      const opens = el.hidden && search;
      attr(el, "hidden", !search);
      if (opens) {
        input.value = search.text;
        input.focus();
      }
      if (!search || !graph) return;
      const { hits, at } = search;
      text(found, search.text.trim() && (hits.length ? `${at + 1} of ${hits.length}` : "none"));
    },
  };
}
