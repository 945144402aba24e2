// @vitest-environment happy-dom
import { createElement, render } from "preact";
import { expect, test } from "vitest";
import { Viewport } from "../../src/canvas/viewport.ts";
import { Prose } from "../../src/page/glyphs.tsx";
import { contrast, hostTheme, luminance, markRules, parseColour } from "../../src/page/theme.ts";
import { shortPath } from "../../src/panels/findings.tsx";
import { pack } from "../../src/panels/packing.ts";
import { facts } from "../../src/state/say.ts";

test("a long path keeps its first and its last three elements", () => {
  expect(shortPath(["a", "b", "c", "d", "e"])).toEqual(["a", "b", "c", "d", "e"]);
  expect(shortPath(["a", "b", "c", "d", "e", "f"])).toEqual(["a", { more: ["b", "c"] }, "d", "e", "f"]);
});

test("buttons of neighbouring roots never cover each other and stay inside", () => {
  const wishes = [0, 60, 90, 500, 520].map((x) => ({ x, y: 390, w: 180, h: 24 }));
  const placed = pack(wishes, [], 600, 400);
  placed.forEach((a, i) => {
    expect(a.x).toBeGreaterThanOrEqual(4);
    expect(a.x + 180).toBeLessThanOrEqual(596);
    placed.slice(i + 1).forEach((b) => {
      expect(Math.abs(a.x - b.x) >= 180 || Math.abs(a.y - b.y) >= 24).toBe(true);
    });
  });
});

test("buttons stay off the names of roots, and rather go down than up", () => {
  const flags = [100, 210].map((x) => ({ x, y: 200, w: 90, h: 20 }));
  const wishes = flags.map(({ x, y }) => ({ x: x - 60, y: y + 26, w: 210, h: 24 }));
  const [first, second] = pack(wishes, flags, 400, 400);
  expect(first).toEqual(wishes[0]);
  expect(second!.y).toBeGreaterThan(first!.y + 24);
  const [only] = pack([{ x: 60, y: 390, w: 210, h: 24 }], [{ x: 90, y: 374, w: 90, h: 20 }], 400, 400);
  expect(only!.y + 24 <= 374 || only!.x >= 180).toBe(true);
});

test("zooming keeps the point under the pointer where it is", () => {
  const viewport = new Viewport(() => {});
  viewport.pan(13, -7);
  const before = viewport.toWorld(200, 120);
  viewport.zoom(1.7, 200, 120);
  const after = viewport.toWorld(200, 120);
  expect(after[0]).toBeCloseTo(before[0]);
  expect(after[1]).toBeCloseTo(before[1]);
});

test("bringing a box into view moves only as far as needed", () => {
  const viewport = new Viewport(() => {});
  expect(viewport.show({ x: 100, y: 100, w: 50, h: 20 })).toBe(false);
  expect(viewport.show({ x: 590, y: 100, w: 50, h: 20 })).toBe(true);
  expect(viewport.toScreen(640, 100)[0]).toBeCloseTo(600 - 16);
});

test("a first look stays readable, and shows everything once that was asked for, also of the next picture", () => {
  const viewport = new Viewport(() => {});
  const high = { x: 0, y: 0, w: 300, h: 2000 };
  const loss = { x: 100, y: 1960, w: 60, h: 22 };
  viewport.go(viewport.aim(high, loss));
  expect(viewport.scale).toBeGreaterThan(0.55);
  expect(viewport.toScreen(0, 0)[1]).toBeLessThan(0);
  expect(viewport.toScreen(0, 1960)[1]).toBeLessThan(viewport.height);
  viewport.fits = true;
  viewport.go(viewport.aim(high, loss));
  expect(viewport.toScreen(0, 0)[1]).toBeGreaterThanOrEqual(0);
  expect(viewport.toScreen(0, 2000)[1]).toBeLessThanOrEqual(viewport.height);
});

test("calls in running text are numbers as in the picture, code is code", () => {
  const place = document.createElement("p");
  render(createElement(Prose, { text: "② needs what `y` of call 1 freed. Call 11 too" }), place);
  const names = [...place.childNodes].map(
    (part) => (part instanceof Element && part.getAttribute("aria-label")) || part.textContent,
  );
  expect(names).toEqual(["call 2", " needs what ", "y", " of ", "call ", "1", " freed. ", "Call ", "11", " too"]);
});

test("the host's theme is found on the nearest element that says one", () => {
  document.body.innerHTML = `<div data-jp-theme-light="false"><p></p></div><div class="vscode-dark"><p class="light"><i></i></p></div>`;
  expect(hostTheme(document.querySelector("div p")!)).toBe("dark");
  expect(hostTheme(document.querySelector("i")!)).toBe("light");
  expect(hostTheme(document.querySelector(".vscode-dark")!)).toBe("dark");
});

test("contrast is WCAG's", () => {
  expect(contrast(parseColour("rgb(0, 0, 0)")!, parseColour("rgba(255, 255, 255, 0.9)")!)).toBeCloseTo(21);
  expect(luminance([255, 255, 255])).toBeCloseTo(1);
  expect(parseColour("rgba(0, 0, 0, 0)")).toBeNull();
});

test("every rule of the marks stays under the root", () => {
  for (const rule of markRules()
    .replaceAll("@media(forced-colors:active){", "")
    .split("}")
    .filter((part) => part.trim()))
    expect(rule.trim()).toMatch(/^\.graphwidget/);
});

test("the facts count what is alive: neither nodes nor leaves that are gone", () => {
  const graph = {
    n: 4,
    ghost: [0, 0, 1, 1],
    leaves: new Map([1, 3].map((node) => [node, {}])),
    slotStart: [0, 1, 1, 2, 2],
    slotState: [1, 1],
    slotBytes: [8, 16],
    roots: [],
    held: 0,
  };
  expect(facts(graph as never, 0)).toBe("1 node, 1 leaf · 0 B held, 1 tensor freed");
});
