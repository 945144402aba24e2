/** Items whose marks and labels are made on first use: in a large graph most are never drawn or read. */

import type { Context } from "./context.ts";
import type { Item, Level, Role } from "./types.ts";

export type Made = Pick<Item, "marks" | "label" | "data" | "slots">;

/** Makes the items of one kind, each by its number i. */
export interface Source {
  /** x, y, w, h of each. */
  places: ArrayLike<number>;
  context: Context;
  key(i: number): string;
  role(i: number): Role;
  /** Index of its node; absent: the items have no node. */
  node?(i: number): number;
  make(i: number): Made;
}

export class LazyItem implements Item {
  readonly #source: Source;
  readonly #i: number;
  #made: Made | undefined;
  /** Level of the marks. At another level they are made again; a large scene as a whole is not. */
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
  slots() {
    return this.#all.slots?.() ?? [];
  }
  renew() {
    this.#made = undefined;
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
