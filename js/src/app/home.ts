/**
 * Keys and the focus stay in the view: the notebook does not react to a key that is pressed here.
 *
 * A notebook has commands on single keys (`x` cuts a cell). Some hosts listen on the document before the view gets the
 * event, and ask the element that has the focus; others after it. So both: the mark on what has the focus, and an end
 * of every key event at the root. What the browser does with a key (copy, find, Tab) is left to it.
 */
import { focusedElement, setAttribute, setAttributes } from "../page/elements.ts";

const KEY_EVENTS = ["keydown", "keypress", "keyup"] as const;
/** With Ctrl: browsers undo and redo what was typed last anywhere in the page, in a cell too; `s` saves the page. */
const HARMFUL = ["z", "y", "s"];

/** `unsaved`: called for the key that saves, as neither the notebook nor the browser then saves anything. */
export function keepHome(root: HTMLElement, signal: AbortSignal, unsaved: () => void): void {
  // With a tab index, a click on an element that cannot have the focus goes to the root, not to the notebook's cell.
  setAttributes(root, { tabindex: -1, "data-lm-suppress-shortcuts": "true" });
  root.addEventListener("focusin", ({ target }) =>
    setAttribute(target as Element, "data-lm-suppress-shortcuts", "true"),
  );
  for (const type of KEY_EVENTS)
    root.addEventListener(type, (event) => {
      event.stopPropagation();
      const { ctrlKey, metaKey, altKey, repeat } = event;
      const key = event.key.toLowerCase();
      if (!(ctrlKey || metaKey) || altKey || !HARMFUL.includes(key)) return;
      event.preventDefault();
      if (key === "s" && type === "keydown" && !repeat) unsaved();
    });
  // The focused element may be removed or disabled: then the root gets the focus, so that the notebook gets no key.
  const lost = (last: Element) =>
    !signal.aborted &&
    root.isConnected &&
    isNowhere(root) &&
    !canHaveFocus(last) &&
    root.focus({ preventScroll: true });
  root.addEventListener("focusout", ({ target, relatedTarget }) => {
    if (!relatedTarget) queueMicrotask(() => lost(target as Element));
  });
}

/** Whether the focus is in the view, or nowhere: the user does not type elsewhere. */
export function isHere(root: HTMLElement): boolean {
  const active = root.ownerDocument.activeElement;
  return root.contains(focusedElement(root)) || !active || active === root.ownerDocument.body;
}

function isNowhere(root: HTMLElement): boolean {
  const active = focusedElement(root);
  return active === null || active === root.ownerDocument.body;
}

function canHaveFocus(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled, [hidden], [hidden] *, dialog:not([open]) *");
}
