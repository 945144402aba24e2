/** Rectangles, and what is still free between them. */

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

export const overlaps = (a: Rect, b: Rect) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

export function unite(rects: readonly Rect[]): Rect {
  const x = Math.min(...rects.map((r) => r.x));
  const y = Math.min(...rects.map((r) => r.y));
  return {
    x,
    y,
    w: Math.max(...rects.map((r) => r.x + r.w)) - x,
    h: Math.max(...rects.map((r) => r.y + r.h)) - y,
  };
}

/** Where something stands already. Kept in bands of rows, so that asking stays cheap in large graphs. */
export class Free {
  private readonly bands = new Map<number, Rect[]>();
  add(area: Rect): void {
    for (let band = bandOf(area.y); band <= bandOf(area.y + area.h); band++) {
      const list = this.bands.get(band);
      if (list) list.push(area);
      else this.bands.set(band, [area]);
    }
  }
  has(area: Rect): boolean {
    for (let band = bandOf(area.y); band <= bandOf(area.y + area.h); band++) {
      if (this.bands.get(band)?.some((other) => overlaps(other, area))) return false;
    }
    return true;
  }
}

const bandOf = (y: number) => Math.floor(y / 64);
