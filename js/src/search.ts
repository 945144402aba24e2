/** The search box. Hits are uids, so that they outlive folding and updates. */
import { attr, h, text } from "./dom.ts";
import { type Context, type Part, shown } from "./state.ts";

export function searchPart(context: Context): Part {
  const { act, signal } = context;
  const input = h("input", {
    type: "search",
    role: "searchbox",
    class: "gw-searchbox",
    "aria-label": "Search nodes: op, name, line or module",
    placeholder: "op, name, line, module",
    autocomplete: "off",
    spellcheck: "false",
  });
  const found = h("span", { class: "gw-found", "aria-live": "polite" });
  const el = h("span", { class: "gw-search", hidden: true }, input, found);
  input.addEventListener("input", () => act.search(input.value), { signal });
  input.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Enter") act.nextHit(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") act.search(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
  return {
    el,
    update() {
      const { search } = context.state;
      const opens = el.hidden && search !== null;
      attr(el, "hidden", search === null);
      if (opens) {
        input.value = search!.text;
        input.focus();
      }
      if (!search || !shown(context.state)) return;
      text(
        found,
        search.text.trim() === "" ? "" : search.hits.length ? `${search.at + 1} of ${search.hits.length}` : "none",
      );
    },
  };
}
