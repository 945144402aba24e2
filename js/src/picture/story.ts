/** The sentences below the drawing of a static picture: the first finding and its fixes. */

import { type Mark, octagon, octagonOpen, text, warning } from "./marks.ts";
import { type Measure, shorten } from "./measure.ts";
import { type Finding, type Graph, isForecast } from "./model.ts";
import type { Item, Scene } from "./scene/types.ts";

export const MARGIN = 12;
const INDENT = 22;
const MOST_FIXES = 3;
export const LEAST_WIDTH = 480;
/** Share of the width for measured lines: without Arial, viewers fall back to wider fonts. */
const SHARE = 0.88;

/** The scene with the first finding under it; unchanged if there is no finding. */
export function withStory(scene: Scene, graph: Graph, measure: Measure): Scene {
  const finding = graph.findings.find(({ severity }) => severity !== "info") ?? graph.findings[0];
  if (!finding) return scene;
  const width = Math.max(scene.width, LEAST_WIDTH);
  const top = scene.top + scene.height;
  const item = story(finding, width, measure);
  const placed = { ...item, x: scene.left + MARGIN, y: top };
  return { ...scene, width, height: scene.height + item.h + MARGIN, items: [...scene.items, placed] };
}

function story(finding: Finding, width: number, measure: Measure): Item {
  const marks: Mark[] = [{ kind: "path", d: `M0 0H${width - 2 * MARGIN}`, classes: "band" }];
  marks.push(...sign(finding)(8, 19, 7));
  const room = (width - 2 * MARGIN - INDENT) * SHARE;
  let y = 24;
  const line = (words: string, classes: string, x = INDENT) => {
    marks.push(text(x, y, words, classes));
  };
  for (const words of wrap(finding.headline || finding.text, room, "headline", measure)) {
    line(words, "headline");
    y += 18;
  }
  if (finding.headline && finding.text !== finding.headline) {
    for (const words of wrap(finding.text, room, "sentence", measure)) {
      line(words, "sentence");
      y += 17;
    }
  }
  finding.fixes.slice(0, MOST_FIXES).forEach((fix, i) => {
    line(`${i + 1}.`, "sentence");
    for (const words of wrap(fix.text, room - 18, "code", measure)) {
      line(words, "code", INDENT + 18);
      y += 17;
    }
  });
  return { key: "story", role: "note", x: 0, y: 0, w: width - 2 * MARGIN, h: y - 3, marks };
}

/** The sign of a finding: a call raised, a call would raise, or another warning. */
function sign(finding: Finding): (x: number, y: number, r: number) => Mark[] {
  if (finding.severity === "error") return octagon;
  if (isForecast(finding)) return octagonOpen;
  return finding.severity === "info" ? () => [] : warning;
}

/** Lines of at most `room` px, broken between words. */
export function wrap(words: string, room: number, classes: string, measure: Measure): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of words.split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (line && measure(longer, classes) > room) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  if (line) lines.push(line);
  return lines.map((one) => shorten(one, room, classes, measure));
}
