/** An index of the items of a scene by place and key. Built in slices: scenes of 100,000 items exist. */
import type { Item, Role, Scene } from "../picture/scene/types.ts";
import { eachSlice, type Slices } from "../picture/slices.ts";
import type { Box } from "./viewport.ts";

const FOCUSABLE: readonly Role[] = ["node", "group", "leaf", "root"];

/** Nodes, leaves, roots and groups. */
export function isFocusable(item: Item): boolean {
  return FOCUSABLE.includes(item.role);
}

export function touches(a: Box, b: Box): boolean {
  return a.x <= b.x + b.w && b.x <= a.x + a.w && a.y <= b.y + b.h && b.y <= a.y + a.h;
}

export class Space {
  readonly scene: Scene;
  readonly byKey = new Map<string, Item>();
  readonly content: Box;
  /** Number of items that can have the focus. */
  cards = 0;

  constructor(scene: Scene) {
    this.scene = scene;
    const { left: x, top: y, width: w, height: h } = scene;
    this.content = { x, y, w, h };
  }

  *fill(): Slices<Space> {
    const { items } = this.scene;
    yield* eachSlice(items.length, (i) => {
      const item = items[i]!;
      // Wires are not indexed by key: nobody looks one up, and there are many.
      if (item.role !== "wire") this.byKey.set(item.key, item);
      if (isFocusable(item)) this.cards++;
    });
    return this;
  }

  /** Items that touch a part of the picture, in drawing order. */
  *within(box: Box): Slices<Item[]> {
    const { items } = this.scene;
    const found: Item[] = [];
    yield* eachSlice(items.length, (i) => {
      if (touches(items[i]!, box)) found.push(items[i]!);
    });
    return found;
  }

  /** The card at a point. */
  at(x: number, y: number): Item | undefined {
    return this.scene.items.findLast((item) => isFocusable(item) && touches(item, { x, y, w: 0, h: 0 }));
  }
}
