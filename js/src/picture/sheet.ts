/** A picture that stands alone: its title above the drawing, the finding and a legend of what occurs in it below. */

import { bowl, callNumberMark, type Mark, octagon, rect, SLOT_LOOKS, SLOT_W, shape, slot, tag, text } from "./marks.ts";
import { type Measure, shorten } from "./measure.ts";
import type { Graph } from "./model.ts";
import type { Item, Scene } from "./scene/types.ts";
import * as SLOT from "./slot.ts";
import { LEAST_WIDTH, MARGIN, withStory } from "./story.ts";
import { STATE_WORDS } from "./words.ts";

const TITLE_H = 30;
const ROW_H = 18;
/** Distance of a sign from its word, and of a word from the next sign. */
const NEAR = 5;
const APART = 16;

/** A sign of `width` px, drawn with its top left at x, y in a row of 14 px, and its meaning. */
interface Entry {
  width: number;
  marks(x: number, y: number): Mark[];
  words: string;
}

/** The scene as a sheet of its own. */
export function sheetOf(scene: Scene, graph: Graph, measure: Measure, title: string): Scene {
  return withLegend(withStory(withTitle(scene, title, measure), graph, measure), graph, measure);
}

function withTitle(scene: Scene, title: string, measure: Measure): Scene {
  if (!title) return scene;
  const width = Math.max(scene.width, LEAST_WIDTH);
  const top = scene.top - TITLE_H;
  const words = shorten(title, width - 2 * MARGIN, "headline", measure);
  const item: Item = {
    key: "title",
    role: "note",
    x: scene.left + MARGIN,
    y: top,
    w: width - 2 * MARGIN,
    h: TITLE_H,
    marks: [text(0, TITLE_H / 2, words, "headline")],
  };
  return { ...scene, top, width, height: scene.height + TITLE_H, items: [item, ...scene.items] };
}

function withLegend(scene: Scene, graph: Graph, measure: Measure): Scene {
  const entries = entriesOf(graph);
  if (entries.length === 0) return scene;
  const room = scene.width - 2 * MARGIN;
  const marks: Mark[] = [shape(`M0 0H${room}`, "band")];
  let x = 0;
  let y = 9;
  for (const { width, marks: draw, words } of entries) {
    const wide = width + NEAR + measure(words, "note");
    if (x > 0 && x + wide > room) {
      x = 0;
      y += ROW_H;
    }
    marks.push(...draw(x, y), text(x + width + NEAR, y + 7, words, "note"));
    x += wide + APART;
  }
  const h = y + ROW_H + MARGIN / 2;
  const item: Item = {
    key: "legend",
    role: "note",
    x: scene.left + MARGIN,
    y: scene.top + scene.height,
    w: room,
    h,
    marks,
  };
  return { ...scene, height: scene.height + h, items: [...scene.items, item] };
}

/** The signs that occur in the picture of a graph. */
function entriesOf(graph: Graph): Entry[] {
  const entries: Entry[] = [];
  const add = (width: number, words: string, marks: Entry["marks"]) => entries.push({ width, words, marks });
  const states = new Set(graph.slotState);
  SLOT_LOOKS.forEach((look, state) => {
    if (!states.has(state) || state === SLOT.unsaved) return;
    const words = state === SLOT.stale ? "modified in place since it was saved" : STATE_WORDS[state]!;
    add(SLOT_W, entries.length === 0 ? `saved tensor: ${words}` : words, (x, y) => slot(x, y + 1.5, look));
  });
  if (graph.calls.length > 0)
    add(14, "backward call", (x, y) => callNumberMark(x + 7, y + 7, 1, "r1", { solid: true }));
  if (graph.calls.some(({ result }) => result === "raised")) add(14, "raised", (x, y) => octagon(x + 7, y + 7, 7));
  if (graph.boundary.length > 0) add(24, "carries the old part over", (x, y) => tag(x, y - 2.5, "", 24, "carrier"));
  if (graph.ghost.includes(1)) add(22, "gone", (x, y) => [rect(x + 1, y + 1, 20, 12, "node ghost", 4)]);
  const leaves = [...graph.leaves.values()];
  if (leaves.some(({ hasGrad }) => hasGrad)) add(10, ".grad is there", (x, y) => [bowl(x, y + 5, true)]);
  if (leaves.some(({ hasGrad }) => !hasGrad)) add(10, ".grad is None", (x, y) => [bowl(x, y + 5, false)]);
  return entries;
}
