/** What items are called: the words that are drawn are in the name, and a flag counts what has none. */
import { expect, test } from "vitest";
import { nameOf, tipOf } from "../../src/canvas/names.ts";
import { sceneOf } from "../../src/picture/picture.ts";
import type { Item } from "../../src/picture/scene/types.ts";
import { momentOf, momentsOf } from "../programs/index.ts";

/** Words as assistive software compares them: brackets with their content do not count. */
const wordsOf = (text: string) =>
  text
    .toLowerCase()
    .replace(/\([^()]*\)/g, "")
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(" ");

const drawn = ({ marks }: Item) => marks.flatMap((mark) => (mark.kind === "text" ? [mark.text] : [])).join(" ");

test("the name of everything that can have the focus holds the words on it, in their order", () => {
  let checked = 0;
  for (const program of ["two_losses", "transformer", "leak", "inplace", "mlp_loop"])
    for (const { graph } of momentsOf(program))
      for (const item of sceneOf(graph).items) {
        if (!["node", "group", "leaf", "root"].includes(item.role) || !wordsOf(drawn(item))) continue;
        checked++;
        expect(` ${wordsOf(nameOf(item))} `).toContain(` ${wordsOf(drawn(item))} `);
      }
  expect(checked).toBeGreaterThan(100);
});

test("a name does not repeat what it says already, and what is cut has a tooltip", () => {
  const item: Item = { key: "k", role: "root", x: 0, y: 0, w: 1, h: 1, marks: [], label: "loss, root" };
  const text = { kind: "text", x: 0, y: 0, classes: "op", anchor: "start" } as const;
  expect(nameOf({ ...item, marks: [{ ...text, text: "loss" }] })).toBe("loss, root");
  expect(nameOf({ ...item, marks: [{ ...text, text: "lo" }] })).toBe("loss, root, drawn: lo");
  expect(tipOf({ ...item, marks: [{ ...text, text: "loss" }] })).toBe("");
  expect(tipOf({ ...item, marks: [{ ...text, text: "lo…" }] })).toBe("loss\nroot");
});

test("the last flag of a list says how many more elements have none", () => {
  const { graph } = momentOf("leak", "In[2]");
  const flags = sceneOf(graph).items.filter(({ role }) => role === "root");
  expect(flags.map(({ data }) => data?.name)).toEqual(["losses[0]", "losses[1]", "losses[2]", "total"]);
  expect(flags.map(drawn)[2]).toBe("losses[2] and 5 more");
  expect(flags.map(drawn)[3]).toBe("total");
});
