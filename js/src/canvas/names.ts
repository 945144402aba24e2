/** What an item is called: for a screen reader, for who speaks to the browser, and in its tooltip. */

import type { Item } from "../picture/scene/types.ts";

const textsOf = ({ marks }: Item) => marks.flatMap((mark) => (mark.kind === "text" ? [mark] : []));

/** The tooltip of an item of which something had to be cut off; "": nothing was. */
export const tipOf = (item: Item): string =>
  textsOf(item).some(({ cut, text }) => cut || text.includes("…")) ? (item.label ?? "").replaceAll(", ", "\n") : "";

/**
 * The name of an item that can have the focus: what it is and in which state, then the words on it, so that they can be
 * said to a computer that is spoken to.
 */
export function nameOf(item: Item): string {
  const { label = item.key } = item;
  const drawn = textsOf(item)
    .map(({ text }) => text)
    .join(" ");
  return `${label},`.startsWith(`${drawn},`) || !drawn ? label : `${label}, drawn: ${drawn}`;
}

/** Shapes with space between them: neighbouring texts are not one word. */
export const apart = (shapes: readonly Element[]) => shapes.flatMap((shape) => [shape, " "]);
