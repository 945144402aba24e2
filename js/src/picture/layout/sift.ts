/**
 * Fourth phase, last part: sifting (Bachmaier, Brandenburg, Brunner and Hübner 2010, "A global k-level crossing reduction
 * algorithm"). A long edge moves as a whole, with all its dummies: row by row it would have to pass through orders that
 * are worse. All boxes and long edges stand in one list; each is tried at every place and goes to the best one.
 */
import { ints } from "../arrays.ts";
import type { Slices } from "../slices.ts";
import { type Order, pairGain } from "./crossings.ts";
import type { Layered } from "./layers.ts";

/** Longer lists take too long. */
const MOST = 4000;

/** Changes the order of rows first to last. `bound`: they must not pass each other. */
export function* sift(
  { items, start, row, box, up, down }: Layered,
  { item, position }: Order,
  first: number,
  last: number,
  bound: (v: number, w: number) => boolean,
): Slices<void> {
  /** What an item belongs to, by its topmost item, and the lowest item of that. */
  const head = ints(items);
  const tail = ints(items);
  /** From left to right: what appears in a row stands right of its neighbour there. */
  const list: number[] = [];
  for (let r = first; r <= last; r++) {
    let left = -1;
    for (let i = start[r]; i < start[r + 1]; i++) {
      const v = item[i];
      const above = up.item[up.start[v]];
      if (r > first && box[v] < 0 && box[above] < 0) head[v] = head[above];
      else list.splice(list.indexOf(left) + 1, 0, (head[v] = v));
      left = head[v];
      tail[left] = v;
    }
    if (list.length > MOST) return;
    yield;
  }
  const place = ints(items);
  const put = (k: number, v: number) => {
    list[k] = v;
    place[v] = place[tail[v]] = k;
  };
  for (const [k, v] of list.entries()) put(k, v);

  /** How many crossings fewer there are with w left of v. They share rows. */
  function gain(v: number, w: number): number {
    if (bound(v, w)) return Number.NEGATIVE_INFINITY;
    const top = Math.max(row[v], row[w]);
    const bottom = Math.min(row[tail[v]], row[tail[w]]);
    // A long edge that began further up is linked with itself, as its second item is; the same at its other end.
    const upper = (u: number) => (row[u] < top ? down.item[down.start[u]] : u);
    const lower = (u: number) => (row[u] > bottom ? up.item[up.start[u]] : u);
    return pairGain(up, place, upper(v), upper(w)) + pairGain(down, place, lower(tail[v]), lower(tail[w]));
  }

  for (let round = 0, changed = true; changed; round++) {
    changed = false;
    for (const v of list.slice()) {
      const top = row[v];
      const bottom = row[tail[v]];
      let most = 0;
      let best = place[v];
      for (const side of [-1, 1]) {
        // What gains nothing makes room for others; to the left and to the right in turn.
        const even = Number(round % 2 ? side > 0 : side < 0);
        let sum = 0;
        for (let k = place[v] + side; k >= 0 && k < list.length; k += side) {
          const w = list[k];
          if (row[w] <= bottom && row[tail[w]] >= top) sum += side < 0 ? gain(w, v) : gain(v, w);
          if (sum + even > most) {
            most = sum;
            best = k;
          }
        }
      }
      if (most) changed = true;
      const step = Math.sign(best - place[v]);
      for (let k = place[v]; k !== best; k += step) put(k, list[k + step]);
      put(best, v);
      yield;
    }
  }
  const filled = start.slice(0, last + 1);
  for (const v of list) {
    for (let u = v; ; u = down.item[down.start[u]]) {
      position[u] = filled[row[u]] - start[row[u]];
      item[filled[row[u]]++] = u;
      if (u === tail[v]) break;
    }
  }
}
