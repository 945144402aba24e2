/** Keys. Single letters work anywhere in the view but in text fields; arrows walk along edges while the focus is in the tree. */
import type { Canvas } from "./canvas.ts";
import { isFocusable } from "./canvas.ts";
import type { Folded } from "./picture/fold/index.ts";
import type { Graph } from "./picture/model.ts";
import type { Item } from "./picture/scene.ts";
import type { Context } from "./state.ts";

export type Direction = "up" | "down" | "left" | "right";

/** Neighbours along edges, by item key: `up` towards the inputs, `down` towards the losses. */
export interface Neighbours {
  up: Map<string, string[]>;
  down: Map<string, string[]>;
}

export function neighbours(graph: Graph, folded: Folded, items: readonly Item[]): Neighbours {
  const up = new Map<string, string[]>();
  const down = new Map<string, string[]>();
  const join = (lower: string, upper: string) => {
    up.set(lower, [...(up.get(lower) ?? []), upper]);
    down.set(upper, [...(down.get(upper) ?? []), lower]);
  };
  for (let e = 0; e + 1 < folded.edges.length; e += 2)
    join(folded.boxes[folded.edges[e]!]!.key, folded.boxes[folded.edges[e + 1]!]!.key);
  const boxOfLeaf = new Map<number, string[]>();
  for (const box of folded.boxes)
    for (const leaf of box.leaves) boxOfLeaf.set(leaf, [...(boxOfLeaf.get(leaf) ?? []), box.key]);
  const byKey = new Map(items.map((item) => [item.key, item]));
  for (const item of items) {
    if (item.role === "leaf" && item.index !== undefined) {
      const users = (boxOfLeaf.get(item.index) ?? []).filter((key) => byKey.has(key));
      const user = nearest(
        item,
        users.map((key) => byKey.get(key)!),
      );
      if (user) join(user.key, item.key);
    } else if (item.role === "root") {
      const root = graph.roots.find((r) => r.id === item.root);
      const box = root && root.node >= 0 ? folded.boxOf[root.node]! : -1;
      if (box >= 0) join(item.key, folded.boxes[box]!.key);
    }
  }
  return { up, down };
}

function centre(item: Item): [number, number] {
  return [item.x + item.w / 2, item.y + item.h / 2];
}

function nearest(from: Item, candidates: readonly Item[]): Item | null {
  const [x, y] = centre(from);
  let best: Item | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const item of candidates) {
    const [ix, iy] = centre(item);
    const far = Math.abs(ix - x) + Math.abs(iy - y);
    if (far < least) [best, least] = [item, far];
  }
  return best;
}

/** Where an arrow key leads from `item`, or null at the end. */
export function walk(items: readonly Item[], along: Neighbours, item: Item, direction: Direction): Item | null {
  const byKey = new Map(items.map((each) => [each.key, each]));
  if (direction === "up" || direction === "down") {
    const keys = along[direction].get(item.key) ?? [];
    return nearest(
      item,
      keys.filter((key) => key !== item.key && byKey.has(key)).map((key) => byKey.get(key)!),
    );
  }
  const [x, y] = centre(item);
  const sign = direction === "left" ? -1 : 1;
  const beside = items.filter((each) => {
    if (!isFocusable(each) || each.key === item.key) return false;
    const [ex] = centre(each);
    return (ex - x) * sign > 1 && each.y < item.y + item.h && each.y + each.h > item.y;
  });
  if (beside.length) return nearest(item, beside);
  // Nothing in the same row: the nearest in the lane beside, a row or two away.
  const lane = items.filter(
    (each) => isFocusable(each) && (centre(each)[0] - x) * sign > item.w / 2 && Math.abs(centre(each)[1] - y) < 160,
  );
  return nearest(item, lane);
}

const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

export interface KeyTarget {
  canvas: Canvas;
  along(): Neighbours;
  failing(): void;
  highlight(position: number | null): void;
  cell(by: number): void;
  escape(): boolean;
}

export function listenToKeys(context: Context, target: KeyTarget): void {
  const { act, root, signal } = context;
  const { canvas } = target;
  let awaitsRoot = false;

  const inTree = (key: string, shift: boolean): boolean => {
    const item = canvas.byKey.get(canvas.focusKey ?? "");
    if (!item) return false;
    const direction = ARROWS[key];
    if (direction && shift) {
      const [dx, dy] = { up: [0, 40], down: [0, -40], left: [40, 0], right: [-40, 0] }[direction] as [number, number];
      canvas.viewport.pan(dx, dy);
    } else if (direction) {
      const next = walk(canvas.scene.items, target.along(), item, direction);
      if (next) act.focus(next.key);
    } else if (key === "Home" || key === "End") {
      const nodes = canvas.scene.items.filter(isFocusable).sort((a, b) => a.y - b.y || a.x - b.x);
      const end = key === "Home" ? nodes[0] : nodes[nodes.length - 1];
      if (end) act.focus(end.key);
    } else if (key === "Enter" && (item.role === "group" || item.role === "open")) act.open(item.key);
    else if (key === "Enter" || key === " ") {
      if (item.role === "root") target.highlight(context.state.highlight === item.root ? null : rootPosition(item));
      act.select(item.key);
    } else return false;
    return true;
  };
  const rootPosition = (item: Item) =>
    (context.state.now?.roots ?? []).filter((r) => r.alive).findIndex((r) => r.id === item.root);

  const anywhere = (key: string): boolean => {
    switch (key) {
      case "f":
        target.failing();
        break;
      case "r":
        awaitsRoot = true;
        break;
      case "[":
        act.step(-1);
        break;
      case "]":
        act.step(1);
        break;
      case "{":
        target.cell(-1);
        break;
      case "}":
        target.cell(1);
        break;
      case "n":
        if (context.state.search?.hits.length) act.nextHit(1);
        else act.travel(null);
        break;
      case "N":
        act.nextHit(-1);
        break;
      case "/":
        act.search(context.state.search?.text ?? "");
        break;
      case "t":
        context.set({ table: !context.state.table });
        break;
      case "l":
        act.legend();
        break;
      case "?":
        act.help();
        break;
      case "+":
      case "=":
        canvas.viewport.zoom(1.25);
        break;
      case "-":
        canvas.viewport.zoom(0.8);
        break;
      case "0":
        act.fit();
        break;
      default:
        return false;
    }
    return true;
  };

  root.addEventListener(
    "keydown",
    (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const from = event.target as Element;
      if (from.closest("input:not([type=checkbox]), select, textarea, [role=dialog], [role=menu]")) return;
      let done = false;
      if (awaitsRoot && /^[0-9]$/.test(event.key)) {
        target.highlight(event.key === "0" ? null : Number(event.key) - 1);
        done = true;
      }
      awaitsRoot = false;
      if (!done && from.closest(".gw-tree")) done = inTree(event.key, event.shiftKey);
      if (!done && event.key === "Escape") done = target.escape();
      if (!done) done = anywhere(event.key);
      if (!done) return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
}
