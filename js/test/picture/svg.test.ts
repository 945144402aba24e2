import { describe, expect, it } from "vitest";
import { draw } from "../../src/picture/picture.ts";
import { escapeText } from "../../src/picture/svg.ts";
import { decode } from "../../src/picture/wire.ts";
import { FIXTURES, wireText } from "./support.ts";

describe("the static picture", () => {
  for (const name of FIXTURES) {
    it(`of ${name} is complete in itself`, () => {
      const svg = draw(wireText(name));
      expect(svg.startsWith('<svg xmlns="http://www.w3.org/2000/svg"')).toBe(true);
      expect(svg).not.toMatch(/NaN|undefined|Infinity|<script|href|url\(/);
      expect(svg.match(/<g /g)?.length ?? 0).toBe(svg.match(/<\/g>/g)?.length ?? 0);
    });
  }

  it("is drawn the same way every time", () => {
    expect(draw(wireText("second_backward"))).toBe(draw(wireText("second_backward")));
  });

  it("follows the viewer's theme unless an option says otherwise", () => {
    expect(draw(wireText("second_backward"))).toContain("prefers-color-scheme:dark");
    const dark = draw(wireText("second_backward"), { theme: "dark" });
    expect(dark).not.toContain("prefers-color-scheme");
    expect(dark).toContain("--g-bg:#13161a");
  });

  it("carries only the rules that it uses", () => {
    const svg = draw(wireText("second_backward"));
    expect(svg).toContain(".g-freed{");
    expect(svg).not.toContain(".g-stalecard{");
  });
});

describe("text from the user's notebook", () => {
  const evil = '<img src=x onerror="alert(1)">&amp;\u0000\ud800';

  it("is escaped, and what XML cannot hold is replaced", () => {
    expect(escapeText(evil)).toBe("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;amp;\ufffd\ufffd");
  });

  it("stays text wherever it stands", () => {
    const message = JSON.parse(wireText("second_backward"));
    message.strings = message.strings.map((text: string) => (text.startsWith("Accumulate") ? text : text + evil));
    expect(decode(message).n).toBe(9);
    const svg = draw(JSON.stringify(message));
    expect(svg).not.toContain("<img");
    expect(svg).not.toMatch(/\p{Surrogate}/u);
    expect(svg).not.toContain("\0");
  });
});
