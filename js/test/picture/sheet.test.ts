/** A picture that stands alone says what it is, what went wrong, and what its signs mean. */
import { expect, it } from "vitest";
import { measureByTable } from "../../src/picture/measure.ts";
import { draw, sceneOf } from "../../src/picture/picture.ts";
import type { Item } from "../../src/picture/scene/types.ts";
import { sheetOf } from "../../src/picture/sheet.ts";
import { decode } from "../../src/picture/wire.ts";
import { FIXTURES, wireText } from "./support.ts";

const words = (item: Item) => item.marks.flatMap((mark) => (mark.kind === "text" ? mark.text : []));

function sheet(name: (typeof FIXTURES)[number], title = "Autograd graph after In[2]") {
  const graph = decode(wireText(name));
  const scene = sceneOf(graph);
  const whole = sheetOf(scene, graph, measureByTable, title);
  const item = (key: string) => whole.items.find((each) => each.key === key)!;
  return { graph, scene, whole, item };
}

it("has its title above the drawing, the finding and the legend below", () => {
  const { scene, whole, item } = sheet("second_backward");
  expect(words(item("title"))).toEqual(["Autograd graph after In[2]"]);
  expect(item("title").y).toBeLessThan(scene.top);
  expect(item("story").y).toBeGreaterThanOrEqual(scene.top + scene.height);
  expect(item("legend").y).toBeGreaterThanOrEqual(item("story").y + item("story").h);
  expect(item("legend").y + item("legend").h).toBe(whole.top + whole.height);
});

it("explains the signs that occur, and no others", () => {
  const legend = words(sheet("second_backward").item("legend"));
  expect(legend[0]).toBe("saved tensor: freed");
  expect(legend).toEqual(expect.arrayContaining(["backward call", "raised", "gone"]));
  expect(legend).not.toContain("packed");
  expect(words(sheet("stale").item("legend")).join()).toContain("modified in place since it was saved");
});

for (const name of FIXTURES.filter((each) => each !== "empty"))
  it(`keeps every word of the legend of ${name} inside`, () => {
    const { whole, item } = sheet(name);
    const { x, marks } = item("legend");
    for (const mark of marks)
      if (mark.kind === "text")
        expect(x + mark.x + measureByTable(mark.text, mark.classes)).toBeLessThanOrEqual(whole.left + whole.width);
  });

it("of a graph without nodes has a title and no legend", () => {
  expect(sheet("empty").whole.items.map(({ key }) => key)).toEqual(["title"]);
});

it("is left out where only the drawing is wanted", () => {
  const svg = draw(wireText("second_backward"), { title: "A title", sheet: false });
  expect(svg).not.toContain("saved tensor: freed");
  expect(svg.match(/A title/g)).toHaveLength(1); // for screen readers
});
