/**
 * Keys. Single letters work anywhere in the view except in text fields; arrows walk along edges while the focus is in
 * the tree.
 */

import type { Canvas } from "../canvas/canvas.ts";
import { isFocusable, type Space } from "../canvas/space.ts";
import { ZOOM_STEP } from "../canvas/viewport.ts";
import { endEvent } from "../page/elements.ts";
import type { Item } from "../picture/scene/types.ts";
import { runSlices } from "../picture/slices.ts";
import { choices } from "../state/guess.ts";
import { type Context, ENLARGED, shown } from "../state/state.ts";

/** Directions of the arrow keys: towards the inputs, towards the losses, to the sides. */
const ARROWS: Record<string, readonly [number, number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/** Items joined to an item by an edge: its gradients go to items above it and come from items below it. */
function along({ byKey, scene }: Space, { key, role }: Item, down: boolean): Item[] {
  // The key of a wire is w<lower>><upper>, that of a leaf leaf<box that it hangs on>:<uid>.
  const [lower, upper] = [`w${key}>`, `>${key}`];
  const keys = scene.items.map((item) => {
    if (item.role === "leaf" && !down) return item.key.startsWith(`leaf${key}:`) && item.key;
    if (item.role !== "wire") return "";
    if (down) return item.key.endsWith(upper) && item.key.slice(1, -upper.length);
    return item.key.startsWith(lower) && item.key.slice(lower.length);
  });
  if (role === "leaf") keys.push(key.slice(4, key.lastIndexOf(":")));
  return keys.flatMap((each) => byKey.get(each || "") ?? []);
}

const middle = ({ x, y, w, h }: Item) => [x + w / 2, y + h / 2] as const;

function nearest(from: Item, others: readonly Item[]): Item | undefined {
  const [x, y] = middle(from);
  const far = (item: Item) => Math.abs(middle(item)[0] - x) + Math.abs(middle(item)[1] - y);
  return others.filter((item) => item !== from).sort((a, b) => far(a) - far(b))[0];
}

/** The first item from the top, or the last. */
function outermost({ byKey }: Space, first: boolean): Item | undefined {
  let best: Item | undefined;
  for (const item of byKey.values())
    if (isFocusable(item) && (!best || (item.y - best.y || item.x - best.x) < 0 === first)) best = item;
  return best;
}

/** The item that an arrow key leads to; undefined at the end. */
function walk(space: Space, item: Item, dx: number, dy: number): Item | undefined {
  if (dy) return nearest(item, along(space, item, dy > 0));
  const { x, w } = space.content;
  /** The nearest item at that side, at least `least` px away, in a strip of the picture. */
  const beside = (y: number, h: number, least: number) => {
    const others = runSlices(space.within({ x, y, w, h })).filter(
      (other) =>
        isFocusable(other) &&
        (middle(other)[0] - middle(item)[0]) * dx > least &&
        other.y < y + h &&
        other.y + other.h > y,
    );
    return nearest(item, others);
  };
  // If the row has no more items: the nearest one in the next lane, a row or two away.
  return beside(item.y, item.h, 1) ?? beside(item.y - 140, item.h + 280, item.w / 2);
}

/** `lens`: the drawing inside an open group. Keys are about the drawing that has the focus. */
export function listenToKeys({ act, root, set, state }: Context, main: Canvas, lens: Canvas): void {
  let awaitsRoot = false;
  let canvas = main;

  const inTree = (key: string, shift: boolean): boolean => {
    const item = canvas.byKey.get(canvas.focusKey ?? "");
    if (!item) return false;
    const arrow = ARROWS[key];
    let next: Item | undefined;
    if (arrow && shift) canvas.viewport.pan(-40 * arrow[0], -40 * arrow[1]);
    else if (arrow) next = walk(canvas.space, item, ...arrow);
    else if (key === "Home" || key === "End") next = outermost(canvas.space, key === "Home");
    else if (key === "Enter" && item.role === "group") act.open(item.key);
    else if (key === "Enter" || key === " ") act.press(item);
    else if (/^[1-9]$/.test(key) && state.guess) markSlot(item, Number(key) - 1);
    else return false;
    if (next) canvas.focus(next.key);
    return true;
  };

  /** Marks the slot at a position of a card, counted as the card shows them. */
  const markSlot = ({ uid = -1 }: Item, at: number) => {
    const slot = choices(state.now!).find((node) => node.uid === uid)?.slots[at];
    if (slot) act.mark(slot.key);
  };

  const zoomIn = () => canvas.viewport.zoom(ZOOM_STEP);
  const anywhere: Record<string, () => void> = {
    f: act.failing,
    r: () => {
      awaitsRoot = true;
    },
    "[": () => act.step(-1),
    "]": () => act.step(1),
    "{": () => act.cell(-1),
    "}": () => act.cell(1),
    n: () => (state.search?.hits.length ? act.nextHit(1) : act.travel(null)),
    N: () => act.nextHit(-1),
    "/": () => act.search(state.search?.text ?? ""),
    s: () => act.walk(state.walk ? null : undefined),
    ".": () => act.stepTo((state.walk?.at ?? 0) + 1),
    ",": () => act.stepTo((state.walk?.at ?? 0) - 1),
    p: act.present,
    q: () => act.guess(state.guess ? null : undefined),
    t: () => set({ table: !state.table }),
    c: act.compareMoments,
    b: () => set({ enlarged: state.enlarged > 0 ? 0 : ENLARGED }),
    k: () => act.keepPreview(state.preview?.kept ? null : (state.preview?.mode ?? null)),
    l: act.legend,
    "?": act.more,
    "+": zoomIn,
    "=": zoomIn,
    "-": () => canvas.viewport.zoom(1 / ZOOM_STEP),
    "0": () => (canvas === main ? act.fit() : canvas.fit()),
    Escape: act.escape,
  };

  root.addEventListener("keydown", (event) => {
    const { key, shiftKey, defaultPrevented, ctrlKey, metaKey, altKey } = event;
    const from = event.target as Element;
    if (defaultPrevented || ctrlKey || metaKey || altKey) return;
    if (from.closest("[type=search], select, dialog")) return;
    canvas = lens.element.contains(from) ? lens : main;
    const wanted = awaitsRoot && /^\d$/.test(key);
    awaitsRoot = false;
    const roots = shown(state)?.roots.filter((root) => root.alive) ?? [];
    if (wanted) set({ highlight: roots[Number(key) - 1]?.id ?? null });
    else if (!from.closest(".gw-tree") || !inTree(key, shiftKey)) {
      if (!Object.hasOwn(anywhere, key)) return;
      anywhere[key]!();
    }
    endEvent(event);
  });
}
