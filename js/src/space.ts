/** Where everything of a scene is: by key, and by place in a grid. Made in slices: scenes of 100,000 items exist. */
import type { Item, Role, Scene } from "./picture/scene.ts";
import type { Slices } from "./picture/slices.ts";
import type { Box } from "./viewport.ts";

const CELL = 512;
/** What touches more cells than this counts as being everywhere. */
const MOST_CELLS = 64;
const FOCUSABLE: readonly Role[] = ["node", "group", "leaf", "root", "open"];

/** Nodes, leaves, roots, and what stands for several of them. */
export function isFocusable(item: Item): boolean {
  return FOCUSABLE.includes(item.role);
}

/** The same without the frames around open groups. */
export function isCard(item: Item): boolean {
  return item.role !== "open" && isFocusable(item);
}

export class Space {
  readonly scene: Scene;
  readonly byKey = new Map<string, Item>();
  readonly content: Box;
  /** How many items can have the focus. */
  cards = 0;
  readonly #grid = new Map<number, number[]>();
  readonly #large: number[] = [];

  constructor(scene: Scene) {
    this.scene = scene;
    const { left: x, top: y, width: w, height: h } = scene;
    this.content = { x, y, w, h };
  }

  *fill(): Slices<Space> {
    const { items } = this.scene;
    for (let i = 0; i < items.length; i++) {
      const item = items[i]!;
      const { x, y, w, h, role } = item;
      // Nobody asks for a line by its key, and there are many.
      if (role !== "wire") this.byKey.set(item.key, item);
      if (isFocusable(item)) this.cards++;
      const cells = this.#cells({ x, y, w, h });
      if (cells.length > MOST_CELLS) this.#large.push(i);
      else
        for (const cell of cells) {
          const list = this.#grid.get(cell);
          if (list) list.push(i);
          else this.#grid.set(cell, [i]);
        }
      if (i % 64 === 63) yield;
    }
    return this;
  }

  /** The numbers of the cells that a part of the picture touches. */
  #cells({ x, y, w, h }: Box): number[] {
    const columns = Math.ceil(this.scene.width / CELL) + 2;
    const cells: number[] = [];
    const last = Math.floor((x + w) / CELL);
    for (let row = Math.floor(y / CELL); row <= Math.floor((y + h) / CELL); row++)
      for (let column = Math.floor(x / CELL); column <= last; column++) cells.push(row * columns + column);
    return cells;
  }

  /** Items that touch a part of the picture, and a few large ones, in drawing order. */
  *within(box: Box): Slices<Item[]> {
    const { items } = this.scene;
    const touched = new Uint8Array(items.length);
    for (const cell of this.#cells(box)) {
      for (const i of this.#grid.get(cell) ?? []) touched[i] = 1;
      yield;
    }
    for (const i of this.#large) touched[i] = 1;
    return items.filter((_, i) => touched[i]);
  }

  /** The card at a point. */
  at(x: number, y: number): Item | undefined {
    const [cell] = this.#cells({ x, y, w: 0, h: 0 });
    const under = this.#grid.get(cell!)?.findLast((i) => {
      const item = this.scene.items[i]!;
      return isCard(item) && x >= item.x && x <= item.x + item.w && y >= item.y && y <= item.y + item.h;
    });
    return this.scene.items[under ?? -1];
  }
}
