/** Rectangles, and an index of free places between them. */

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Number i of a list of rectangles that is kept as x, y, w, h, x, y ... */
export const rectAt = (list: ArrayLike<number>, i: number): Rect => ({
  x: list[4 * i]!,
  y: list[4 * i + 1]!,
  w: list[4 * i + 2]!,
  h: list[4 * i + 3]!,
});

export const middleOf = ({ x, w }: Rect) => x + w / 2;

export function unite(rects: Iterable<Rect>): Rect {
  let [left, top, right, bottom] = [1 / 0, 1 / 0, -1 / 0, -1 / 0];
  for (const { x, y, w, h } of rects) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + w);
    bottom = Math.max(bottom, y + h);
  }
  return { x: left, y: top, w: right - left, h: bottom - top };
}

/** An index of occupied rectangles, divided into horizontal bands: so a query stays cheap in large graphs. */
export class Free {
  /** Left, top, right, bottom of each rectangle, and the number of its owner. */
  readonly #sides: number[] = [];
  readonly #bands = new Map<number, number[]>();

  add({ x, y, w, h }: Rect, owner = 0): void {
    const at = this.#sides.push(x, y, x + w, y + h, owner) - 5;
    for (let band = bandOf(y); band <= bandOf(y + h); band++) {
      const list = this.#bands.get(band);
      if (list) list.push(at);
      else this.#bands.set(band, [at]);
    }
  }

  /** Whether a place overlaps no rectangle of another owner than `mine`. */
  has({ x, y, w, h }: Rect, mine = -1): boolean {
    const sides = this.#sides;
    const taken = (at: number) =>
      x < sides[at + 2]! &&
      sides[at]! < x + w &&
      y < sides[at + 3]! &&
      sides[at + 1]! < y + h &&
      sides[at + 4] !== mine;
    for (let band = bandOf(y); band <= bandOf(y + h); band++) if (this.#bands.get(band)?.some(taken)) return false;
    return true;
  }

  /** Occupies the first free one of these places and returns it. */
  take<R extends Rect>(places: readonly R[]): R | undefined {
    const found = places.find((place) => this.has(place));
    if (found) this.add(found);
    return found;
  }
}

const bandOf = (y: number) => Math.floor(y / 64);
