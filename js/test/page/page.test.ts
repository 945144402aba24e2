// @vitest-environment happy-dom
/** What all of the page shares: the theme of the host, and calls in running text. */
import { createElement, render } from "preact";
import { expect, test } from "vitest";
import { Prose } from "../../src/page/glyphs.tsx";
import { contrast, hostTheme, luminance, markRules, parseColour } from "../../src/page/theme.ts";

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
