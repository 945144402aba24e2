/**
 * A bitmap with a palette: polygons are filled with smooth edges by exact coverage.
 *
 * Each edge adds, to the cells that it crosses, how much of each cell lies right of it; the sum along a row is the
 * coverage. Only touched cells are visited, what lies between two of them is filled as a whole.
 */

import type { Points } from "./outline.ts";

export type Rgb = readonly [number, number, number];

/** Steps from one colour to another at an edge. */
const LEVELS = 12;
const MOST_COLOURS = 256;

/** Where a letter has ink: distance in cells from its place, and the level. */
export interface Mask {
  dx: number[];
  dy: number[];
  level: number[];
}

export class Bitmap {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
  /** Colour 0 is never used: the engine ends a text at the character 0. */
  readonly palette: Rgb[] = [[0, 0, 0]];
  readonly #coverage: Float32Array;
  /** 1 for each cell that an edge has crossed, and the range of these. */
  readonly #touched: Uint8Array;
  #first = Number.POSITIVE_INFINITY;
  #last = -1;
  /** By ink, level and ground: the colour in the palette, -1: not mixed yet. */
  readonly #mixed = new Map<number, Int16Array>();

  constructor(width: number, height: number, ground: Rgb) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint8Array(width * height).fill(this.colour(ground));
    this.#coverage = new Float32Array(width * height);
    this.#touched = new Uint8Array(width * height);
  }

  /** Place of a colour in the palette; if that is full, of the nearest one. */
  colour([r, g, b]: Rgb): number {
    let nearest = 0;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 1; i < this.palette.length; i++) {
      const [pr, pg, pb] = this.palette[i]!;
      const distance = (pr - r) ** 2 + (pg - g) ** 2 + (pb - b) ** 2;
      if (distance < least) [nearest, least] = [i, distance];
    }
    if (least <= 12 || this.palette.length === MOST_COLOURS) return nearest;
    return this.palette.push([r, g, b]) - 1;
  }

  /** Fills polygons together; where they overlap, too. */
  fill(polygons: readonly Points[], ink: number): void {
    this.#cover(polygons, (y, from, to, level) => {
      const row = y * this.width;
      if (level >= LEVELS) this.pixels.fill(ink, row + from, row + to);
      else for (let x = from; x < to; x++) this.#blend(row + x, ink, level);
    });
  }

  /** The cells that polygons cover, relative to cell `x`, `y`. */
  mask(polygons: readonly Points[], x: number, y: number): Mask {
    const mask: Mask = { dx: [], dy: [], level: [] };
    this.#cover(polygons, (row, from, to, level) => {
      for (let at = from; at < to; at++) {
        mask.dx.push(at - x);
        mask.dy.push(row - y);
        mask.level.push(level);
      }
    });
    return mask;
  }

  stamp({ dx, dy, level }: Mask, x: number, y: number, ink: number): void {
    const { width, height } = this;
    for (let i = 0; i < dx.length; i++) {
      const [px, py] = [x + dx[i]!, y + dy[i]!];
      if (px >= 0 && px < width && py >= 0 && py < height) this.#blend(py * width + px, ink, level[i]!);
    }
  }

  #blend(at: number, ink: number, level: number): void {
    const ground = this.pixels[at]!;
    if (level === LEVELS || ground === ink) {
      this.pixels[at] = ink;
      return;
    }
    const key = ink * (LEVELS + 1) + level;
    let row = this.#mixed.get(key);
    if (!row) {
      row = new Int16Array(MOST_COLOURS).fill(-1);
      this.#mixed.set(key, row);
    }
    if (row[ground] === -1) {
      const [under, over] = [this.palette[ground]!, this.palette[ink]!];
      const mix = (i: 0 | 1 | 2) => Math.round(under[i] + ((over[i] - under[i]) * level) / LEVELS);
      row[ground] = this.colour([mix(0), mix(1), mix(2)]);
    }
    this.pixels[at] = row[ground]!;
  }

  /** Calls `paint` with each run of cells of one coverage, from left to right. */
  #cover(polygons: readonly Points[], paint: (y: number, from: number, to: number, level: number) => void): void {
    for (const points of polygons) {
      const n = points.length;
      for (let i = 0; i < n; i += 2) {
        const j = (i + 2) % n;
        this.#edge(points[i]!, points[i + 1]!, points[j]!, points[j + 1]!);
      }
    }
    const { width } = this;
    const coverage = this.#coverage;
    const touched = this.#touched;
    const last = this.#last;
    let row = -1;
    let sum = 0;
    let before = 0;
    /** What covers the end of a row has its right edge outside. */
    const finish = () => {
      const from = before - row * width;
      const level = levelOf(sum);
      if (row >= 0 && level > 0 && from < width) paint(row, from, width, level);
    };
    // The engine's own search is many times faster than a loop.
    for (let cell = touched.indexOf(1, this.#first); cell >= 0 && cell <= last; cell = touched.indexOf(1, cell + 1)) {
      const y = Math.floor(cell / width);
      if (y !== row) {
        finish();
        sum = 0;
      } else if (cell > before) {
        const level = levelOf(sum);
        if (level > 0) paint(y, before - y * width, cell - y * width, level);
      }
      row = y;
      before = cell + 1;
      sum += coverage[cell]!;
      coverage[cell] = 0;
      touched[cell] = 0;
      const level = levelOf(sum);
      if (level > 0) paint(y, cell - y * width, before - y * width, level);
    }
    finish();
    this.#first = Number.POSITIVE_INFINITY;
    this.#last = -1;
  }

  #add(row: number, x: number, amount: number): void {
    // What lies beyond the right edge of a row would count for the next row.
    if (x >= this.width) return;
    const cell = row + x;
    this.#coverage[cell]! += amount;
    this.#touched[cell] = 1;
    if (cell < this.#first) this.#first = cell;
    if (cell > this.#last) this.#last = cell;
  }

  #edge(ax: number, ay: number, bx: number, by: number): void {
    if (ay === by) return;
    const turn = ay < by ? 1 : -1;
    const [x0, y0, x1, y1] = ay < by ? [ax, ay, bx, by] : [bx, by, ax, ay];
    const slope = (x1 - x0) / (y1 - y0);
    const last = Math.min(this.height, Math.ceil(y1));
    let x = y0 < 0 ? x0 - y0 * slope : x0;
    for (let y = Math.max(0, Math.floor(y0)); y < last; y++) {
      const high = Math.min(y + 1, y1) - Math.max(y, y0);
      const next = x + slope * high;
      this.#crossing(y * this.width, turn * high, Math.min(x, next), Math.max(x, next));
      x = next;
    }
  }

  /** An edge crosses a row from `from` to `to`, and `high` of the row's height. */
  #crossing(row: number, high: number, from: number, to: number): void {
    const left = Math.max(from, 0);
    const right = Math.max(to, left);
    const first = Math.floor(left);
    if (right <= first + 1) {
      const share = (left + right) / 2 - first;
      this.#add(row, first, high * (1 - share));
      if (share > 0) this.#add(row, first + 1, high * share);
      return;
    }
    // The part of the edge left of each cell's right side, summed up cell by cell.
    const width = right - left;
    let before = 0;
    for (let cell = first; cell <= Math.floor(right) + 1; cell++) {
      const area = covered(cell + 1 - left, width);
      this.#add(row, cell, high * (area - before));
      before = area;
    }
  }
}

const levelOf = (sum: number) => Math.round(Math.min(1, Math.abs(sum)) * LEVELS);

/** Area right of an even slope of `width` up to `reach`, minus that up to one cell before. */
function covered(reach: number, width: number): number {
  const upTo = (x: number) => (x <= 0 ? 0 : x < width ? (x * x) / (2 * width) : x - width / 2);
  return upTo(reach) - upTo(reach - 1);
}
