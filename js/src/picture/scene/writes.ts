/** A line that modified saved tensors in place: a note with a pencil, and a dashed line to each card that it made stale. */

import { isPast } from "../fold/index.ts";
import { type Mark, path, pencil, rect, shape, text } from "../marks.ts";
import type { Finding } from "../model.ts";
import * as SLOT from "../slot.ts";
import { join } from "../words.ts";
import { cardOf } from "./cards.ts";
import { type Context, sized } from "./context.ts";
import { type Free, type Rect, unite } from "./rects.ts";
import type { Item } from "./types.ts";

const PAD = 10;
const PENCIL = 18;
const LINE = 17;
/** Distance of the note from the picture; the dashed lines turn in it. */
const AWAY = 26;
const STEP = 20;
/** With more stale cards than this, the note alone says enough. */
const MOST = 12;

/** The finding about the write that is drawn: the first of the present that knows the line. */
export function writeToDraw({ graph }: Context): Finding | undefined {
  return graph.findings.find((one) => one.kind === "inplace" && one.wrote !== "" && !isPast(one, graph));
}

/** A free place right of the stale cards, the nearest to their middle; else one right of the whole picture. */
function place(cards: Rect, whole: Rect, { w, h }: Pick<Rect, "w" | "h">, free: Free): Rect {
  const middle = cards.y + cards.h / 2 - h / 2;
  const steps = Array.from({ length: 1 + Math.ceil(cards.h / STEP) }, (_, i) => (i % 2 ? i + 1 : -i) * (STEP / 2));
  for (let x = cards.x + cards.w + AWAY; ; x += STEP) {
    const ys = x > whole.x + whole.w ? steps.slice(0, 1) : steps;
    const found = free.take(ys.map((dy) => ({ x, y: middle + dy, w, h })));
    if (found) return found;
  }
}

/** The note, right of the cards, and its lines. `at`: the rectangle of a card. */
export function writeItems(context: Context, at: (b: number) => Rect, whole: Rect, free: Free): Item[] {
  // While the student says what a call will do, nothing tells it.
  const finding = context.options.asks ? undefined : writeToDraw(context);
  if (!finding || context.level < 2) return [];
  const stale = [...context.folded.boxes.keys()].filter((b) => cardOf(context, b).counts[SLOT.stale]);
  if (!stale.length) return [];
  const look = sized(context, "tagname");
  const lines = [[finding.wrote, look]];
  const more = join(" ", finding.wroteAt, finding.tensor && `wrote ${finding.tensor}`);
  if (context.level === 3 && more) lines.push([more, "note"]);
  const w = 2 * PAD + Math.max(...lines.map(([words, look], i) => context.measure(words!, look!) + (i ? 0 : PENCIL)));
  const h = 2 * PAD + LINE * lines.length;
  const cards = stale.map(at);
  const found = place(unite(cards), whole, { w, h }, free);
  const marks: Mark[] = [rect(0, 0, w, h, "node stalecard", 6), ...pencil(PAD, PAD + 3)];
  lines.forEach(([words, look], i) => {
    marks.push(text(PAD + (i ? 0 : PENCIL), PAD + LINE * (i + 0.5), words!, look!));
  });
  const note: Item = { key: "write", role: "note", ...found, marks, data: { role: "write" } };
  const turn = found.x - AWAY / 2;
  const middle = found.y + h / 2;
  return [
    ...cards.slice(0, MOST).map((card, i): Item => {
      const start = card.x + card.w;
      const from = card.y + card.h / 2;
      const top = Math.min(from, middle);
      const d = path`M0 ${from - top}H${turn - start}V${middle - top}H${found.x - start}`;
      const high = Math.abs(from - middle);
      return {
        key: `write${i}`,
        role: "wire",
        x: start,
        y: top,
        w: found.x - start,
        h: high,
        marks: [shape(d, "pencilline")],
      };
    }),
    note,
  ];
}
