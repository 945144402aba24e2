/** Items that are made when they are needed: in a large graph most of them are never drawn or read. */

import type { Context } from "./context.ts";
import type { Item, Level, Role } from "./types.ts";

export type Made = Pick<Item, "marks" | "label" | "data">;

/** What the items of one kind have in common: how to make number i. */
export interface Source {
  /** x, y, w, h of each. */
  places: ArrayLike<number>;
  context: Context;
  key(i: number): string;
  role(i: number): Role;
  /** Position of its node; without: it has none. */
  node?(i: number): number;
  make(i: number): Made;
}

export class LazyItem implements Item {
  readonly #source: Source;
  readonly #i: number;
  #made: Made | undefined;
  /** The level for which the marks were made. A large scene is not made again for another scale. */
  #level: Level | undefined;

  constructor(source: Source, i: number) {
    this.#source = source;
    this.#i = i;
  }

  get key() {
    return this.#source.key(this.#i);
  }
  get role() {
    return this.#source.role(this.#i);
  }
  get index() {
    return this.#source.node?.(this.#i);
  }
  get uid() {
    return this.#source.context.graph.uid[this.index ?? -1];
  }
  get x() {
    return this.#source.places[4 * this.#i]!;
  }
  get y() {
    return this.#source.places[4 * this.#i + 1]!;
  }
  get w() {
    return this.#source.places[4 * this.#i + 2]!;
  }
  get h() {
    return this.#source.places[4 * this.#i + 3]!;
  }
  get #all(): Made {
    const { level } = this.#source.context;
    if (!this.#made || this.#level !== level) this.#made = this.#source.make(this.#i);
    this.#level = level;
    return this.#made;
  }
  get marks() {
    return this.#all.marks;
  }
  get label() {
    return this.#all.label;
  }
  get data() {
    return this.#all.data;
  }
}
