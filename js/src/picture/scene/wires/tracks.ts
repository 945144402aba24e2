/**
 * Tracks: where several wires run flat between two rows, each has a height of its own, so that they can be told apart.
 * A flat wire that is alone stays a curve.
 */

import { path } from "../../marks.ts";

/** Distance in px between the lines of roots side by side in a wire. */
export const LINE_GAP = 6;
/**
 * A piece is flat if it goes at least this many times as far to the side as up, and at least so many px. The lines of
 * several roots in one wire meet sooner.
 */
const FLAT = 2;
const FLAT_LINES = 0.75;
const LEAST = 24;
/** Room in px for the arrowheads at the upper end of a gap, and for the corners at the lower one. */
const ARROWS = 8;
const CORNERS = 3;
const RADIUS = 6;
/** Control points of a quarter of a circle of radius 1, seen from its corner. */
const CORNER = 1 - 0.5523;

/** The room between two rows of boxes, in px from the top. */
export interface Gap {
  high: number;
  low: number;
}

/** Of the piece that ends at point k of all wires: the height of its flat run, NaN: none; px between its lines there. */
export interface Tracks {
  y: Float64Array;
  pitch: Float64Array;
}

interface Wires {
  start: Int32Array;
  points: Float64Array;
}

interface Piece {
  /** The point at its upper end. */
  k: number;
  left: number;
  right: number;
  toRight: boolean;
  lines: number;
  track: number;
}

export function noTracks(points: Float64Array): Tracks {
  return { y: new Float64Array(points.length >> 1).fill(Number.NaN), pitch: new Float64Array(points.length >> 1) };
}

/** Lays the flat pieces of wires on tracks. Ends of pieces may move up or down their own vertical lines. */
export function layTracks({ start, points }: Wires, gaps: readonly Gap[], linesOf: (e: number) => number): Tracks {
  const tracks = noTracks(points);
  const inGap: Piece[][] = gaps.map(() => []);
  for (let e = 0; e + 1 < start.length; e++)
    for (let p = start[e]! + 2; p < start[e + 1]!; p += 2) {
      const [ax, ay, bx, by] = points.subarray(p - 2, p + 2) as unknown as [number, number, number, number];
      const away = Math.abs(bx - ax);
      const lines = linesOf(e);
      if (away < LEAST || away < (lines > 1 ? FLAT_LINES : FLAT) * (ay - by)) continue;
      const middle = (ay + by) / 2;
      const gap = gaps.findIndex(({ high, low }) => high < middle && middle < low);
      // Its outermost lines, and half the distance of the next piece on the same track.
      const half = (lines * LINE_GAP) / 2;
      const [left, right] = [Math.min(ax, bx) - half, Math.max(ax, bx) + half];
      inGap[gap]?.push({ k: p >> 1, left, right, toRight: bx > ax, lines, track: -1 });
    }
  inGap.forEach((pieces, i) => {
    const meets = (a: Piece, b: Piece) => a !== b && a.left < b.right && b.left < a.right;
    const tight = pieces.filter((one) => one.lines > 1 || pieces.some((other) => meets(one, other)));
    if (tight.length) layIn(gaps[i]!, tight, points, tracks);
  });
  return tracks;
}

/** Gives each piece the highest track that is free over its width, and each track its height. */
function layIn({ high, low }: Gap, pieces: Piece[], points: Float64Array, tracks: Tracks): void {
  // Of two wires that turn to one side the one that begins further on that side runs lower: so they do not cross.
  const place = ({ left, right, toRight }: Piece) => (toRight ? left : -right);
  pieces.sort((a, b) => Number(a.toRight) - Number(b.toRight) || place(a) - place(b));
  const lanes: Piece[][] = [];
  for (const piece of pieces) {
    const free = lanes.findIndex((lane) => lane.every((other) => piece.right < other.left || other.right < piece.left));
    piece.track = free < 0 ? lanes.push([]) - 1 : free;
    lanes[piece.track]!.push(piece);
  }
  const lines = lanes.map((lane) => Math.max(...lane.map((piece) => piece.lines)));
  const all = lines.reduce((sum, count) => sum + count, 0);
  const room = Math.max(1, low - CORNERS - (high + ARROWS));
  const pitch = Math.min(LINE_GAP, room / all);
  let y = (low - CORNERS + high + ARROWS - all * pitch) / 2;
  lanes.forEach((lane, i) => {
    const middle = y + (lines[i]! * pitch) / 2;
    for (const { k, lines: own } of lane) {
      tracks.y[k] = middle;
      tracks.pitch[k] = pitch;
      const [top, foot] = [middle - (own * pitch) / 2, middle + (own * pitch) / 2];
      points[2 * k + 1] = Math.min(points[2 * k + 1]!, top);
      points[2 * k - 1] = Math.max(points[2 * k - 1]!, foot);
    }
    y += lines[i]! * pitch;
  });
}

/** Path data of one line of a piece: up, flat at height y with round corners, and up to `end`. */
export function trackData(ax: number, bx: number, y: number, end: number): string {
  const side = Math.sign(bx - ax);
  const r = Math.min(RADIUS, Math.abs(bx - ax) / 2, Math.max(0, y - end));
  const c = r * CORNER;
  return (
    path`V${y + r}C${ax} ${y + c} ${ax + side * c} ${y} ${ax + side * r} ${y}` +
    path`H${bx - side * r}C${bx - side * c} ${y} ${bx} ${y - c} ${bx} ${y - r}V${end}`
  );
}
