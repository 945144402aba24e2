/**
 * Fourth phase, last part: sifting (Bachmaier, Brandenburg, Brunner and Hübner 2010, "A global k-level crossing
 * reduction algorithm"). A long edge moves as a whole, with all its dummies: row by row it would have to pass through
 * worse orders. Each box and each long edge near a crossing is tried at every place in its rows and takes the best one.
 */
import { ints } from "../../arrays.ts";
import type { Slices } from "../../slices.ts";
import { crossingsBelow, type Order, pairGain } from "../crossings.ts";
import type { Layered } from "../layers.ts";

/** Parts with more boxes and long edges than this are not sifted: it would take too long. */
const MOST = 4000;
/** Distance between the places of two neighbours: a power of 2, halved for each insertion between them. */
const GAP = 1 << 18;

/**
 * Changes the order of rows first to last; the caller has to count their crossings again. `bound`: v and w must not
 * pass each other.
 */
export function* sift(
  layered: Layered,
  order: Order,
  first: number,
  last: number,
  bound: (v: number, w: number) => boolean,
): Slices<void> {
  const { items, start, row, box, up, down } = layered;
  const { item, position, known } = order;
  /** `head[v]`: topmost item of the box or long edge that v belongs to; `tail[head]`: its lowest item. */
  const head = ints(items);
  const tail = ints(items);
  /** Linked list of heads from left to right: `next[v + 1]` follows v, `next[0]` is the first. */
  const next = ints(items + 1);
  let count = 0;
  for (let r = first; r <= last; r++) {
    let left = -1;
    for (let i = start[r]; i < start[r + 1]; i++) {
      const v = item[i];
      const above = up.item[up.start[v]];
      if (r > first && box[v] < 0 && box[above] < 0) head[v] = head[above];
      else {
        head[v] = v;
        next[v + 1] = next[left + 1];
        next[left + 1] = v;
        count++;
      }
      left = head[v];
      tail[left] = v;
    }
    if (count > MOST) return;
    yield;
  }
  /** Place of each head, and of its tail; it grows from left to right. */
  const place = ints(items);
  const list: number[] = [];
  for (let v = next[0]; list.length < count; v = next[v + 1]) list.push(v);
  const fromLeft = (v: number, w: number) => place[v] - place[w];
  const spread = () => {
    for (const [k, v] of list.sort(fromLeft).entries()) place[v] = place[tail[v]] = k * GAP;
  };
  /** Number of crossings that are saved if w stands left of v. Both have items in the same rows. */
  function gain(v: number, w: number): number {
    if (bound(v, w)) return Number.NEGATIVE_INFINITY;
    const top = Math.max(row[v], row[w]);
    const bottom = Math.min(row[tail[v]], row[tail[w]]);
    // A long edge that begins further up is its own neighbour in the row above: its second item links to its head.
    // The same holds at its lower end.
    const upper = (u: number) => (row[u] < top ? down.item[down.start[u]] : u);
    const lower = (u: number) => (row[u] > bottom ? up.item[up.start[u]] : u);
    return pairGain(up, place, upper(v), upper(w)) + pairGain(down, place, lower(tail[v]), lower(tail[w]));
  }

  for (let round = 0, changed = true; changed; round++) {
    changed = false;
    spread();
    for (let r = first; r <= last; r++) {
      const items = item.subarray(start[r], start[r + 1]).sort((v, w) => place[head[v]] - place[head[w]]);
      for (let i = 0; i < items.length; i++) position[items[i]] = i;
    }
    known.fill(-1, first, last);
    for (let r = first; r < last; r++) crossingsBelow(layered, order, r);
    for (const v of [...list]) {
      const top = row[v];
      const bottom = row[tail[v]];
      const above = Math.max(top - 1, first);
      if (!known.subarray(above, bottom + 1).some((crossings) => crossings > 0)) continue;
      yield;
      const others = [...new Set(head.subarray(start[top], start[bottom + 1]))].sort(fromLeft);
      const at = others.indexOf(v);
      others.splice(at, 1);
      let most = 0;
      /** Index in `others` before which v is inserted. */
      let best = at;
      for (const side of [0, 1]) {
        // A move without a gain makes room for others; alternately allowed to the left and to the right.
        const even = Number(round % 2 === side);
        for (let k = at + side, sum = 0; side ? k <= others.length : k--; k += side) {
          const w = others[k - side];
          sum += side ? gain(v, w) : gain(w, v);
          if (sum + even <= most) continue;
          most = sum;
          best = k;
        }
      }
      if (best === at) continue;
      changed ||= most > 0;
      const left = best ? place[others[best - 1]] : place[others[0]] - GAP;
      const right = place[others[best]] ?? left + GAP;
      place[v] = place[tail[v]] = left + ((right - left) >> 1);
      // These rows may have new crossings, or allow another move.
      known.fill(1, above, Math.min(bottom + 1, last));
      if (right - left < 4) spread();
    }
  }
}
