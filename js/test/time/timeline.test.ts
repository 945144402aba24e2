import { describe, expect, it, test } from "vitest";
import type { Call, Graph, TimelineEvent } from "../../src/picture/model.ts";
import { eventText } from "../../src/state/say.ts";
import { bandsOf, keptAt, labelsOf } from "../../src/time/bands.ts";
import { type Chip, chipsOf, notesOf } from "../../src/time/chips.ts";
import { levelsOf, pathOf } from "../../src/time/line.ts";
import { eventAt, type Placed, placed, placeOf } from "../../src/time/scale.ts";
import { segmentsOf } from "../../src/time/segments.ts";
import { type Stretch, stretchesOf, weightOf } from "../../src/time/stretches.ts";
import { cells, event, gan, loop } from "./support.ts";

const LEFT = 56;
/** As wide as the timeline of a view of 900 px. */
const RIGHT = 720;
const MOST = (RIGHT - LEFT) / 34;

const all = (events: TimelineEvent[], most = MOST) => stretchesOf(events, 0, events.length - 1, most);
const onScreen = (stretches: Stretch[]) => placed(stretches, LEFT, RIGHT);
const kinds = (stretches: Stretch[]) => stretches.map(({ kind, times }) => (times > 1 ? `${kind} ×${times}` : kind));

/** A long program: cells, loops, an error in one of them, and a part that is not stored any more. */
function mixed(): TimelineEvent[] {
  const parts = [cells(12), loop(40, 13), cells(3), gan(300), loop(50, 20, (i) => ({ ok: i !== 31 })), cells(30)];
  let id = 0;
  return parts.flatMap((part, i) => {
    if (i === 3) id += 5000;
    return part.map((each) => ({ ...each, id: id++ }));
  });
}

const PROGRAMS: [string, TimelineEvent[]][] = [
  ["a loop of six", loop(6)],
  ["a GAN of 600 calls", gan(300)],
  ["100,000 calls", loop(100_000)],
  ["25 cells of which one made a graph", cells(25)],
  ["a long program", mixed()],
  ["calls that differ", loop(120, 2, (i) => ({ freed: i * i, held: i }))],
];

describe.each(PROGRAMS)("%s", (_, events) => {
  const stretches = all(events);

  it("shows every event in one stretch, in order, within the room there is", () => {
    const parts = stretches.filter(({ kind }) => kind !== "gap");
    expect(parts[0]!.from).toBe(0);
    expect(parts.at(-1)!.to).toBe(events.length - 1);
    parts.slice(1).forEach((each, i) => {
      expect(each.from).toBe(parts[i]!.to + 1);
    });
    expect(stretches.reduce((sum, each) => sum + weightOf(each), 0)).toBeLessThanOrEqual(MOST + 2);
  });

  it("has no label that is cut or touches another", () => {
    const segments = segmentsOf(events, onScreen(stretches));
    for (const { label, left, right } of segments) expect(label.length * 6.4).toBeLessThan(right - left);
    segments.slice(1).forEach(({ left }, i) => {
      expect(left).toBeGreaterThanOrEqual(segments[i]!.right - 0.001);
    });
    const { chips, pencils } = notesOf(told(events), onScreen(stretches), chipsOf(told(events), onScreen(stretches)));
    const boxes = [...chips.map(extent), ...pencils.map(({ x, text }) => [x, x + 10 + 6.2 * text.length] as const)];
    boxes.sort((a, b) => a[0] - b[0]);
    boxes.slice(1).forEach(([left], i) => {
      expect(left).toBeGreaterThan(boxes[i]![1]);
    });
  });

  it("leads from a place to its event and back", () => {
    const shown = onScreen(stretches);
    for (const { kind, to } of shown) {
      if (kind === "gap") continue;
      expect(eventAt(shown, placeOf(shown, to))).toBe(to);
    }
    expect(eventAt(shown, 0)).toBe(0);
    expect(eventAt(shown, 5000)).toBe(events.length - 1);
  });

  it("opens down to single events", () => {
    let [from, to] = [0, events.length - 1];
    for (let deep = 0; deep < 8; deep++) {
      const inside = stretchesOf(events, from, to, MOST);
      const folded = inside.filter(({ kind }) => kind === "run" || kind === "several");
      if (folded.length === 0) return;
      const widest = folded.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a));
      expect(widest.to - widest.from).toBeLessThan(deep === 0 ? events.length : to - from);
      [from, to] = [widest.from, widest.to];
    }
    throw new Error("still folded after eight openings");
  });
});

/** The events, and the texts of their calls. */
function told(events: TimelineEvent[], text = ""): Pick<Graph, "events" | "calls"> {
  const calls = events.flatMap(({ call: n }) => (n === null || !text ? [] : [{ n, text, order: 0 } as Call]));
  return { events, calls };
}

const extent = ({ x, n }: Chip) => {
  const half = 7 + 3 * Math.max(0, String(n + 1).length - 2);
  return [x - half, x + half + 12] as const;
};

test("equal passes of a loop fold to one stretch that says how many; those measured differently are equal, too", () => {
  expect(kinds(all(gan(300)))).toEqual(["one", "one", "run ×299", "one"]);
  const run = segmentsOf(gan(300), onScreen(all(gan(300)))).find(({ opens }) => opens);
  expect(run).toMatchObject({ opens: true, bad: false });
  expect(run!.title).toMatch(/^×299 · it 1–299 · In\[8\]$/);
});

test("a call that raised is not folded away", () => {
  const events = loop(60, 2, (i) => ({ ok: i !== 30 }));
  expect(kinds(all(events))).toEqual(["one", "run ×29", "one", "run ×29", "one"]);
  expect(chipsOf(told(events), onScreen(all(events))).find(({ ok }) => !ok)?.n).toBe(30);
});

test("cells that changed nothing fold, and the label says which; the one with a graph stays", () => {
  const events = cells(25).map((each) => ({ ...each, ok: true }));
  const segments = segmentsOf(events, onScreen(all(events)));
  expect(segments.map(({ label }) => label)).toEqual(["In[1]–[23]", "In[24]", "In[25]"]);
});

test("events that are not stored are a gap with their number", () => {
  const events = [event(0), event(1), event(5002, { cell: 9 })];
  const segments = segmentsOf(events, onScreen(all(events)));
  expect(segments.map(({ title }) => title)).toEqual(["In[1]", "5,000 steps not stored", "In[9]"]);
  expect(levelsOf(events, onScreen(all(events))).filter(({ known }) => !known)).toHaveLength(1);
});

test("few events have one segment for each cell and iteration; a cell's end belongs to its last iteration", () => {
  const events = [
    event(0, { cell: 1 }),
    event(1, { cell: 2, call: 0, iteration: 0 }),
    event(2, { cell: 2, call: 1, iteration: 1, ok: false }),
    event(3, { cell: 2, ok: false }),
  ];
  const segments = segmentsOf(events, onScreen(all(events)));
  expect(segments.map(({ from, to, label, bad }) => [from, to, label, bad])).toEqual([
    [0, 0, "In[1]", false],
    [1, 1, "it 0 · In[2]", false],
    [2, 3, "it 1 · In[2]", true],
  ]);
});

const sideBySide: Placed[] = placed(
  [0, 1].map((at) => ({ kind: "one", from: at, to: at, size: 1, times: 1 }) as const),
  0,
  20,
);

test("the line shows what there was before a call as well as what it left", () => {
  const calls = [0, 1].map((n) => event(n, { call: n, held: 100, freed: 300 }));
  const levels = levelsOf(calls, sideBySide);
  expect(levels.map(({ from, to, held }) => [from, to, held])).toEqual([
    [0, 5, 0],
    [5, 10, 400],
    [10, 15, 100],
    [15, 20, 400],
  ]);
  expect(levels.every(({ known }) => known)).toBe(true);
});

test("where bytes were not measured the line stays level, dashed, and no bytes are said", () => {
  const known = event(0, { held: 100 });
  const unknown = event(1, { call: 0, held: null, freed: 300 });
  const levels = levelsOf([known, unknown], sideBySide);
  const room = { base: 74, top: 46 };
  expect(pathOf(levels, true, 400, room, true)).toBe("M0.0 74V74.0H5.0V67.0H10.0V67.0H15.0V74Z");
  expect(pathOf(levels, false, 400, room)).toBe("M15.0 46.0V46.0H20.0");
  expect(eventText(known)).toContain("100 B held");
  expect(eventText(unknown)).not.toContain("held");
});

test("steps of optimizers are pencils between the calls, with their names where there is room, and are read aloud", () => {
  const events = loop(3);
  const shown = onScreen(all(events));
  const { pencils, chips } = notesOf(told(events, "loss.backward()"), shown, chipsOf(told(events), shown));
  expect(pencils.map(({ text }) => text)).toEqual(["opt.step()", "opt.step()", "opt.step()"]);
  expect(chips.some(({ text }) => text)).toBe(true);
  expect(eventText(events[1]!)).toBe("In[2], iteration 1, after opt.step(), after call 2, 0 B held");
});

test("the words of a step end inside of the timeline, at every width", () => {
  const events = loop(3);
  let dropped = 0;
  for (const width of [100, 140, 200, 300, 500, 900]) {
    const shown = placed(all(events), 0, width);
    const { pencils } = notesOf(told(events), shown, []);
    for (const { x, text } of pencils) if (text) expect(x + 13 + 6.2 * text.length).toBeLessThanOrEqual(width + 24);
    dropped += pencils.filter(({ text }) => !text).length;
  }
  expect(dropped).toBeGreaterThan(0);
});

describe("bands of who keeps which bytes", () => {
  const events = [event(0, { held: 0 }), event(1, { held: 100 }), event(2, { held: null }), event(3, { held: 300 })];
  const shown = onScreen(all(events));
  const keepers = {
    names: ["loss", "history[0]", "nobody"],
    moments: [0, 1, 3].map((id) => [id, [60 * id, 40 * id, 0]] as [number, number[]]),
  };

  it("lie on each other, add up to what was held, and are absent where nobody measured", () => {
    const bands = bandsOf(events, shown, keepers);
    expect(bands.map(({ name, under, bytes }) => [name, under, bytes])).toEqual([
      ["loss", 0, 60],
      ["history[0]", 60, 40],
      ["loss", 0, 180],
      ["history[0]", 180, 120],
    ]);
    const middle = (placeOf(shown, 1) + placeOf(shown, 2)) / 2;
    expect(bands.every(({ left, right }) => right <= middle + 0.001 || left >= middle)).toBe(true);
    expect(keptAt(keepers, 2)).toBeNull();
    expect(keptAt(keepers, 3)).toEqual([180, 120, 0]);
  });

  it("have their names beside them, none over another, all inside", () => {
    const row = Array.from({ length: 12 }, (_, i) => (i === 3 ? 0 : 1));
    const names = row.map((_, i) => `v${i}`);
    const room = { top: 46, base: 264 };
    const labels = labelsOf({ names, moments: [] }, row, (bytes) => room.base - bytes, room);
    expect(labels).toHaveLength(11);
    labels.slice(1).forEach(({ y }, i) => {
      expect(labels[i]!.y - y).toBeGreaterThanOrEqual(15.99);
    });
    for (const { y } of labels) expect(y >= room.top && y <= room.base).toBe(true);
  });
});

test("a call that a file makes is told with its line and function", () => {
  const at = { call: 0, label: "loss.backward()", where: "proj/train.py:26 in fit" };
  expect(eventText(event(0, { ...at, cell: null }))).toBe("proj/train.py:26 in fit, after call 1, 0 B held");
  expect(eventText(event(0, { ...at, cell: 3 }))).toBe("In[3], proj/train.py:26 in fit, after call 1, 0 B held");
});
