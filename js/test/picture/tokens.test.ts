import { describe, expect, it } from "vitest";
import {
  classAttribute,
  STYLES,
  sheet,
  styleOf,
  type Theme,
  type Token,
  tokenValue,
} from "../../src/picture/tokens.ts";

function luminance(hex: string): number {
  const channel = (at: number) => {
    const c = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

function contrast(a: Token, b: Token, theme: Theme): number {
  const [dark, light] = [luminance(tokenValue(a, theme)), luminance(tokenValue(b, theme))].sort((x, y) => x - y);
  return (light! + 0.05) / (dark! + 0.05);
}

const TEXT: Record<string, Token[]> = {
  bg: ["ink", "ink2", "ink3", "err", "st", "ok", "acc", "r1", "r2", "r3", "r4"],
  panel: ["ink", "ink2", "err", "st", "ok", "acc"],
  node: ["ink", "ink2", "ink3"],
  hull: ["ink2", "err"],
  errbg: ["ink", "ink2", "ink3", "r1"],
  stbg: ["ink", "ink2", "st"],
  car: ["ink", "st"],
  acc: ["bg"],
  r1: ["bg"],
  r2: ["bg"],
  r3: ["bg"],
  r4: ["bg"],
};
const GRAPHICS: Record<string, Token[]> = {
  bg: ["nodeb", "err", "ink3", "acc"],
  panel: ["nodeb", "acc"],
  hull: ["nodeb", "err", "r1", "r2", "r3", "r4"],
  node: ["slot", "ink3", "st"],
  stbg: ["slot", "st"],
  errbg: ["ink3"],
  car: ["st"],
};

for (const theme of ["light", "dark"] as const) {
  describe(`in the ${theme} theme`, () => {
    it("text has a contrast of at least 4.5", () => {
      for (const [ground, inks] of Object.entries(TEXT)) {
        for (const ink of inks) {
          expect(contrast(ink, ground as Token, theme), `${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
        }
      }
    });

    it("graphics have a contrast of at least 3", () => {
      for (const [ground, inks] of Object.entries(GRAPHICS)) {
        for (const ink of inks) {
          expect(contrast(ink, ground as Token, theme), `${ink} on ${ground}`).toBeGreaterThanOrEqual(3);
        }
      }
    });

    it("held and freed differ in ink, not in hue", () => {
      const grey = (token: Token) => luminance(tokenValue(token, theme));
      const ground = grey("node");
      const held = Math.abs(grey("slot") - ground);
      const outline = (2 * (14 + 11) * 1.2 * 0.6) / (14 * 11);
      const freed = Math.abs(grey("ink3") - ground) * outline;
      expect(held - freed).toBeGreaterThan(0.25);
    });
  });
}

describe("styles", () => {
  it("later entries win, whatever the order on the mark", () => {
    expect(styleOf("ghost node")).toEqual(styleOf("node ghost"));
    expect(styleOf("node ghost").fill).toBe("bg");
  });

  it("a hue paint becomes the token of the root", () => {
    expect(styleOf("wire r2").stroke).toBe("r2");
    expect(styleOf("wire").stroke).toBe("ink3");
  });

  it("no two root styles are the same without their hue", () => {
    const looks = ["wire", "wire line2", "wire line3", "wire line4"].map((c) => JSON.stringify(styleOf(c)));
    expect(new Set(looks).size).toBe(4);
  });

  it("no text is smaller than 9 px", () => {
    for (const [name, style] of Object.entries(STYLES)) {
      if ("size" in style) expect(style.size, name).toBeGreaterThanOrEqual(9);
    }
  });

  it("the style sheet is scoped, and its classes are prefixed", () => {
    expect(classAttribute("node ghost")).toBe("g-node g-ghost");
    for (const rule of sheet(".here").split("\n")) expect(rule).toMatch(/^\.here \.g-[a-z0-9]+\{[^}]+\}$/);
  });
});
