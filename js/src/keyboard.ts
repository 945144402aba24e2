/** Keys. Single letters work anywhere in the view but in text fields; arrows walk along edges while the focus is in the tree. */
import type { Canvas } from "./canvas.ts";
import { done } from "./dom.ts";
import type { Item } from "./picture/scene.ts";
import type { Drawing } from "./pipeline.ts";
import { isFocusable } from "./space.ts";
import type { Context } from "./state.ts";

/** The ways of the arrows: towards the inputs, towards the losses, to the sides. */
const ARROWS: Record<string, readonly [number, number]> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
};

/** Items that an edge joins to one: above it what its gradients go to, below it where they come from. */
function along({ graph, folded, space }: Drawing, item: Item, down: boolean): Item[] {
  const { boxes, boxOf, edges } = folded;
  /** The box that a leaf's badge or a root's flag hangs on; a badge's key names it. */
  const boxKey = ({ role, key, root }: Item) =>
    role === "leaf"
      ? key.slice(4, key.lastIndexOf(":"))
      : boxes[boxOf[graph.roots.find(({ id }) => id === root)?.node ?? -1] ?? -1]?.key;
  const keys = new Set<string | undefined>();
  if (item.role === (down ? "leaf" : "root")) keys.add(boxKey(item));
  const at = boxes.findIndex(({ key }) => key === item.key);
  for (let e = 0; e < edges.length; e += 2)
    if (edges[down ? e + 1 : e] === at) keys.add(boxes[edges[down ? e : e + 1]!]!.key);
  const hangs = down ? "root" : "leaf";
  return space.scene.items.filter((each) => keys.has(each.key) || (each.role === hangs && boxKey(each) === item.key));
}

const middle = ({ x, y, w, h }: Item) => [x + w / 2, y + h / 2] as const;

function nearest(from: Item, others: readonly Item[]): Item | undefined {
  const [x, y] = middle(from);
  const far = (item: Item) => Math.abs(middle(item)[0] - x) + Math.abs(middle(item)[1] - y);
  let best: Item | undefined;
  for (const item of others) if (item !== from && (!best || far(item) < far(best))) best = item;
  return best;
}

/** The first item from the top, or the last. */
function outermost(items: readonly Item[], first: boolean): Item | undefined {
  let best: Item | undefined;
  for (const item of items)
    if (isFocusable(item) && (!best || (item.y - best.y || item.x - best.x) < 0 === first)) best = item;
  return best;
}

/** Where an arrow key leads from an item; nowhere at the end. */
function walk(drawing: Drawing, item: Item, dx: number, dy: number): Item | undefined {
  if (dy) return nearest(item, along(drawing, item, dy > 0));
  const [x, y] = middle(item);
  const beside = (test: (other: Item, far: number) => boolean) =>
    nearest(
      item,
      drawing.space.scene.items.filter((other) => isFocusable(other) && test(other, (middle(other)[0] - x) * dx)),
    );
  return (
    beside((other, far) => far > 1 && other.y < item.y + item.h && other.y + other.h > item.y) ??
    // Nothing in the same row: the nearest in the lane beside, a row or two away.
    beside((other, far) => far > item.w / 2 && Math.abs(middle(other)[1] - y) < 160)
  );
}

export interface KeyTarget {
  canvas: Canvas;
  drawing(): Drawing | null;
  failing(): void;
  highlight(position: number | null): void;
  cell(by: number): void;
  escape(): void;
}

export function listenToKeys({ act, root, set, state }: Context, target: KeyTarget): void {
  const { canvas, highlight } = target;
  let awaitsRoot = false;

  const inTree = (key: string, shift: boolean): boolean => {
    const drawing = target.drawing();
    const item = canvas.byKey.get(canvas.focusKey ?? "");
    if (!item || !drawing) return false;
    const arrow = ARROWS[key];
    const opens = item.role === "group" || item.role === "open";
    let next: Item | undefined;
    if (arrow && shift) canvas.viewport.pan(-40 * arrow[0], -40 * arrow[1]);
    else if (arrow) next = walk(drawing, item, ...arrow);
    else if (key === "Home" || key === "End") next = outermost(drawing.space.scene.items, key === "Home");
    else if (key === "Enter" && opens) act.open(item.key);
    else if (key === "Enter" || key === " ") {
      if (item.role === "root") {
        const roots = (state.now?.roots ?? []).filter((each) => each.alive);
        highlight(state.highlight === item.root ? null : roots.findIndex((each) => each.id === item.root));
      }
      act.select(item.key);
    } else return false;
    if (next) act.focus(next.key);
    return true;
  };

  const zoom = (by: number) => () => canvas.viewport.zoom(by);
  const anywhere: Record<string, () => void> = {
    f: target.failing,
    r: () => (awaitsRoot = true),
    "[": () => act.step(-1),
    "]": () => act.step(1),
    "{": () => target.cell(-1),
    "}": () => target.cell(1),
    n: () => (state.search?.hits.length ? act.nextHit(1) : act.travel(null)),
    N: () => act.nextHit(-1),
    "/": () => act.search(state.search?.text ?? ""),
    t: () => set({ table: !state.table }),
    l: act.legend,
    "?": act.help,
    "+": zoom(1.25),
    "=": zoom(1.25),
    "-": zoom(0.8),
    "0": act.fit,
    Escape: target.escape,
  };

  root.addEventListener("keydown", (event) => {
    const { key, shiftKey, defaultPrevented, ctrlKey, metaKey, altKey } = event;
    const from = event.target as Element;
    if (defaultPrevented || ctrlKey || metaKey || altKey) return;
    if (from.closest("[type=search], select, dialog, [role=menu]")) return;
    const wanted = awaitsRoot && /^\d$/.test(key);
    awaitsRoot = false;
    if (wanted) highlight(key === "0" ? null : Number(key) - 1);
    else if (!from.closest(".gw-tree") || !inTree(key, shiftKey)) {
      if (!Object.hasOwn(anywhere, key)) return;
      anywhere[key]!();
    }
    done(event);
  });
}
