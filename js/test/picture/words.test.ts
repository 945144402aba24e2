import { describe, expect, it } from "vitest";
import { measureByFont, measureByTable, shorten } from "../../src/picture/measure.ts";
import { bytesText, listText, nodeState, ordinal, placeText, shortBytes } from "../../src/picture/words.ts";

describe("words", () => {
  it("bytes are written with at most three digits, by powers of 1000", () => {
    expect([0, 999, 1000, 16384, 99949, 163456, 1e6, 7.33e8].map(bytesText)).toEqual([
      "0 B",
      "999 B",
      "1.0 kB",
      "16.4 kB",
      "99.9 kB",
      "163 kB",
      "1.0 MB",
      "733 MB",
    ]);
    expect([16384, 8192, 2000].map(shortBytes)).toEqual(["16 kB", "8.2 kB", "2 kB"]);
  });

  it("counting words follow English", () => {
    expect([1, 2, 3, 4, 11, 12, 13, 21, 101, 112].map(ordinal).join(" ")).toBe(
      "1st 2nd 3rd 4th 11th 12th 13th 21st 101st 112th",
    );
  });

  it("lists end in and; long ones are counted", () => {
    expect(listText(["a"])).toBe("a");
    expect(listText(["a", "b", "c"])).toBe("a, b and c");
    expect(listText(["a", "b", "c", "d", "e"])).toBe("a, b, c and 2 others");
  });

  it("what is not known about a place is left out", () => {
    expect(placeText({ cell: 2, line: 4 })).toBe("In[2]:4");
    expect(placeText({ cell: null, line: 4 })).toBe("line 4");
    expect(placeText({ cell: null, line: null })).toBe("");
  });

  it("a node's state is one word", () => {
    expect(nodeState([2, 0, 0, 0, 0, 0])).toBe("held");
    expect(nodeState([1, 1, 0, 0, 0, 0])).toBe("mixed");
    expect(nodeState([1, 0, 1, 0, 0, 0])).toBe("stale");
    expect(nodeState([0, 0, 0, 0, 3, 0])).toBe("none");
    expect(nodeState([0, 0, 0, 0, 0, 1])).toBe("none");
    expect(nodeState([1, 0, 0, 0, 0, 1])).toBe("mixed");
  });
});

describe("text widths", () => {
  it("a monospace text is as wide as its letters", () => {
    expect(measureByTable("MvBackward0", "op")).toBeCloseTo(11 * 0.602 * 11.5, 5);
  });

  it("a proportional text has 8 per cent of slack over Arial", () => {
    expect(measureByTable("self", "note")).toBeCloseTo(((9 + 10 + 4 + 5) / 18) * 1.08 * 11, 5);
  });

  it("the page's own measure is asked once per text and style", () => {
    let asked = 0;
    const fonts = { ui: "Arial", mono: "Menlo" };
    const measure = measureByFont((text) => {
      asked++;
      return text.length;
    }, fonts);
    expect([measure("abc", "note"), measure("abc", "note"), measure("abc", "op")]).toEqual([3, 3, 3]);
    expect(asked).toBe(2);
  });

  it("a text that is too long ends in an ellipsis and fits", () => {
    const short = shorten("BinaryCrossEntropy", 80, "op", measureByTable);
    expect(short).toMatch(/^Binary.*…$/);
    expect(measureByTable(short, "op")).toBeLessThanOrEqual(80);
  });
});
