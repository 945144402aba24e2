/** In the pictures of many programs nothing that is read or pressed covers another such thing. */
import { describe, expect, test } from "vitest";
import { sceneOf } from "../../src/picture/picture.ts";
import { levelOf } from "../../src/picture/scene/context.ts";
import type { Item, Scene } from "../../src/picture/scene/types.ts";
import { momentsOf, PROGRAMS } from "../programs/index.ts";
import { textBoxes } from "./support.ts";

interface Area {
  what: string;
  item: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

const overlap = (a: Area, b: Area, slack = 0.5) =>
  a.x + slack < b.x + b.w && b.x + slack < a.x + a.w && a.y + slack < b.y + b.h && b.y + slack < a.y + a.h;

/** Cards, flags, tags, badges of leaves, and the buttons under flags. */
function solids(scene: Scene): Area[] {
  const isSolid = ({ role, w, marks }: Item) =>
    ["node", "group", "root", "tag"].includes(role) || (role === "leaf" && w > 12 && marks.length > 1);
  const areas = scene.items.filter(isSolid).map(({ key, role, x, y, w, h }) => ({ what: role, item: key, x, y, w, h }));
  const buttons = scene.items.flatMap(({ key, x, y, buttons: at }) =>
    at ? [{ what: "buttons", item: key, x: x + at.x, y: y + at.y, w: at.w, h: at.h }] : [],
  );
  return [...areas, ...buttons];
}

function texts(scene: Scene): Area[] {
  return textBoxes(scene).map(({ text, ...box }) => ({ ...box, what: `"${text}"` }));
}

const name = ({ what, item }: Area) => `${what} of ${item}`;

/** What covers what. */
function covered(scene: Scene): string[] {
  const found: string[] = [];
  const boxes = solids(scene);
  const words = texts(scene);
  const compare = (as: Area[], bs: Area[], same: boolean) => {
    as.forEach((a, i) => {
      for (const b of same ? bs.slice(i + 1) : bs)
        if ((same || a.item !== b.item || b.what === "buttons") && overlap(a, b)) found.push(`${name(a)} / ${name(b)}`);
    });
  };
  compare(boxes, boxes, true);
  compare(words, words, true);
  // Bowls stand on their card: they have no text. Octagons stand on a corner on purpose.
  compare(words, boxes, false);
  return found;
}

const FORMS = [
  { compact: false, scale: 1 },
  { compact: true, scale: 1 },
  { compact: false, scale: 0.6 },
  { compact: true, scale: 0.6 },
];

describe.each(PROGRAMS)("%s", (program) => {
  for (const older of [false, true])
    test.each(FORMS)(`older graphs: ${older}, %o`, ({ compact, scale }) => {
      for (const { name, graph } of momentsOf(program)) {
        const scene = sceneOf(graph, { compact, buttons: true, level: levelOf(scale), fold: { older } });
        expect(covered(scene).map((words) => `${name}: ${words}`)).toEqual([]);
        for (const { text, size } of textBoxes(scene)) expect(size * scale, `${name}: ${text}`).toBeGreaterThan(8.99);
      }
    });
});
