/** Shapes as polygons: path data, rounded rectangles and strokes become lists of points, in px of the bitmap. */

/** x, y, x, y, ... */
export type Points = number[];

export interface Line {
  points: Points;
  closed: boolean;
}

const COMMAND = /([MLHVQCAZ])([^MLHVQCAZ]*)/g;
/** A curve becomes lines of about this length. */
const STEP = 3;
/** Control points of a quarter of a circle of radius 1. */
const ARC = 0.5523;

class Pen {
  readonly lines: Line[] = [];
  readonly #scale: number;
  #points: Points = [];

  constructor(scale: number) {
    this.#scale = scale;
  }

  move(x: number, y: number): void {
    this.#points = [];
    this.lines.push({ points: this.#points, closed: false });
    this.line(x, y);
  }

  line(x: number, y: number): void {
    this.#points.push(x * this.#scale, y * this.#scale);
  }

  /** The point of the pen, in units of the path. */
  get at(): [number, number] {
    const [y, x] = [this.#points.at(-1) ?? 0, this.#points.at(-2) ?? 0];
    return [x / this.#scale, y / this.#scale];
  }

  curve(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void {
    const [x0, y0] = this.at;
    const length = Math.hypot(x1 - x0, y1 - y0) + Math.hypot(x2 - x1, y2 - y1) + Math.hypot(x - x2, y - y2);
    const steps = Math.max(2, Math.ceil((length * this.#scale) / STEP));
    for (let i = 1; i <= steps; i++) {
      const t = i / steps;
      const u = 1 - t;
      const [a, b, c, d] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
      this.line(a * x0 + b * x1 + c * x2 + d * x, a * y0 + b * y1 + c * y2 + d * y);
    }
  }

  close(): void {
    const line = this.lines.at(-1);
    if (!line) return;
    line.closed = true;
    const [x = 0, y = 0] = line.points;
    // What follows begins where this line has begun.
    this.#points = [x, y];
    this.lines.push({ points: this.#points, closed: false });
  }
}

/** The lines of path data with the absolute commands that the marks use. */
export function linesOf(d: string, scale: number): Line[] {
  const pen = new Pen(scale);
  for (const [, command, rest] of d.matchAll(COMMAND)) {
    const v = (rest!.match(/-?[\d.]+/g) ?? []).map(Number);
    if (command === "Z") pen.close();
    for (let i = 0; i < v.length; ) {
      const [x, y] = pen.at;
      const [a = 0, b = 0, c = 0, e = 0, f = 0, g = 0, h = 0] = v.slice(i);
      if (command === "M" && i === 0) pen.move(a, b);
      else if (command === "M" || command === "L") pen.line(a, b);
      else if (command === "H") pen.line(a, y);
      else if (command === "V") pen.line(x, a);
      else if (command === "C") pen.curve(a, b, c, e, f, g);
      else if (command === "Q")
        pen.curve(x + (2 / 3) * (a - x), y + (2 / 3) * (b - y), c + (2 / 3) * (a - c), e + (2 / 3) * (b - e), c, e);
      else if (command === "A") halfCircle(pen, g, h, f === 0);
      i += { M: 2, L: 2, H: 1, V: 1, C: 6, Q: 4, A: 7 }[command!] ?? v.length;
    }
  }
  return pen.lines.filter(({ points }) => points.length > 2);
}

/** An arc to x, y: the marks have half circles between two points of one height only. */
function halfCircle(pen: Pen, x: number, y: number, below: boolean): void {
  const [x0, y0] = pen.at;
  const r = Math.abs(x - x0) / 2;
  const side = (below ? 1 : -1) * r;
  const middle = (x0 + x) / 2;
  pen.curve(x0, y0 + ARC * side, middle - ARC * (middle - x0), y0 + side, middle, y0 + side);
  pen.curve(middle + ARC * (x - middle), y + side, x, y + ARC * side, x, y);
}

export function roundedRect(x: number, y: number, w: number, h: number, radius: number, scale: number): Line[] {
  const r = Math.min(radius, w / 2, h / 2);
  const k = r * (1 - ARC);
  const [right, bottom] = [x + w, y + h];
  const pen = new Pen(scale);
  pen.move(x + r, y);
  pen.line(right - r, y);
  if (r > 0) pen.curve(right - k, y, right, y + k, right, y + r);
  pen.line(right, bottom - r);
  if (r > 0) pen.curve(right, bottom - k, right - k, bottom, right - r, bottom);
  pen.line(x + r, bottom);
  if (r > 0) pen.curve(x + k, bottom, x, bottom - k, x, bottom - r);
  pen.line(x, y + r);
  if (r > 0) pen.curve(x, y + k, x + k, y, x + r, y);
  return [{ points: pen.lines[0]!.points, closed: true }];
}

/** A line cut into dashes. */
export function dashed({ points, closed }: Line, dash: readonly number[]): Line[] {
  const all = closed ? [...points, points[0]!, points[1]!] : points;
  const out: Line[] = [];
  let at = 0;
  let left = dash[0]!;
  let drawing: Points | null = [all[0]!, all[1]!];
  const end = () => {
    if (drawing && drawing.length > 2) out.push({ points: drawing, closed: false });
  };
  for (let i = 2; i < all.length; i += 2) {
    let [x, y] = [all[i - 2]!, all[i - 1]!];
    const [toX, toY] = [all[i]!, all[i + 1]!];
    let length = Math.hypot(toX - x, toY - y);
    while (length > left) {
      x += ((toX - x) * left) / length;
      y += ((toY - y) * left) / length;
      length -= left;
      drawing?.push(x, y);
      end();
      at++;
      left = Math.max(0.01, dash[at % dash.length]!);
      drawing = at % 2 === 0 ? [x, y] : null;
    }
    left -= length;
    drawing?.push(toX, toY);
  }
  end();
  return out;
}

/** The polygons of a line of some width, all with the same turn, so that they may overlap. */
export function strokeOf({ points, closed }: Line, width: number, round: boolean): Points[] {
  const all = closed ? [...points, points[0]!, points[1]!] : points;
  const r = width / 2;
  const out: Points[] = [];
  let before: number | null = null;
  for (let i = 2; i < all.length; i += 2) {
    const [x0, y0, x1, y1] = all.slice(i - 2, i + 2) as [number, number, number, number];
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length === 0) continue;
    const [nx, ny] = [((y1 - y0) / length) * r, ((x0 - x1) / length) * r];
    if (!round || length > 0.5) out.push([x0 + nx, y0 + ny, x1 + nx, y1 + ny, x1 - nx, y1 - ny, x0 - nx, y0 - ny]);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    if (r > 1 && before !== null && Math.abs(Math.sin((angle - before) / 2)) > 0.15) out.push(disc(x0, y0, r));
    before = angle;
  }
  if (round && !closed) for (const i of [0, all.length - 2]) out.push(disc(all[i]!, all[i + 1]!, r));
  return out;
}

function disc(x: number, y: number, r: number): Points {
  const corners = r > 4 ? 16 : 8;
  return Array.from({ length: 2 * corners }, (_, i) => {
    const angle = (2 * Math.PI * (i >> 1)) / corners;
    return i % 2 === 0 ? x + r * Math.cos(angle) : y + r * Math.sin(angle);
  });
}
