/** Light or dark, as the host; and our own colours if the host's would be hard to read. */

import { sheet, type Theme, TOKENS, type Token, tokenValue, variables } from "../picture/tokens.ts";
import { setAttribute } from "./elements.ts";

/** Of text and of secondary text on the background. */
const LEAST_CONTRAST = 7;
const LEAST_SECONDARY = 5;
/** A background below this luminance is dark: black and white text have the same contrast on it. */
const DARK = 0.18;

type Rgb = [number, number, number];

export function parseColour(text: string): Rgb | null {
  const [r, g, b, alpha] = (/^rgb/.test(text) && text.match(/[\d.]+/g)?.map(Number)) || [];
  return b === undefined || alpha === 0 ? null : [r!, g!, b];
}

function parseHex(text: string): Rgb {
  const value = Number.parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const SYSTEM = () => globalThis.matchMedia?.("(prefers-color-scheme: dark)");

/** The elements from `el` outwards, through shadow roots. */
function* outwards(el: Element): Generator<Element> {
  for (let at: Element | null = el; at; at = at.parentElement ?? (at.getRootNode() as ShadowRoot).host) yield at;
}

const themeOn = (ground: Rgb): Theme => (luminance(ground) < DARK ? "dark" : "light");

/**
 * The theme of the host: what the nearest element says that says one; else that of the background behind `el`; else of
 * the system.
 */
export function hostTheme(el: Element): Theme {
  for (const at of outwards(el)) {
    const light = at.getAttribute("data-jp-theme-light");
    const said =
      (light && (light === "false" ? "dark" : "light")) ??
      /(?:^| )(?:vscode-)?(dark|light)(?:-theme)?(?: |$)/.exec(at.getAttribute("class") ?? "")?.[1] ??
      /dark|light/.exec(`${at.getAttribute("data-theme")} ${at.getAttribute("data-vscode-theme-kind")}`)?.[0];
    if (said) return said as Theme;
  }
  for (const at of outwards(el)) {
    const ground = parseColour(getComputedStyle(at).backgroundColor);
    if (ground) return themeOn(ground);
  }
  return SYSTEM()?.matches ? "dark" : "light";
}

/** System colours of tokens that are no ink. */
const FORCED: Partial<Record<Token, string>> = {
  bg: "Canvas",
  panel: "Canvas",
  node: "Canvas",
  errbg: "Canvas",
  stbg: "Canvas",
  accbg: "Canvas",
  hull: "Canvas",
  car: "Canvas",
  acc: "Highlight",
};

/** Tokens that follow the host; all others are ours in every host, so that their contrast is known. */
const HOST: [Token, string, string][] = [
  ["bg", "jp-layout-color0", "editor-background"],
  ["panel", "jp-layout-color1", "sideBar-background"],
  ["ink", "jp-ui-font-color1", "foreground"],
  ["rule", "jp-border-color2", "panel-border"],
];

/** Where the user forces colours, the drawing has those: form and stroke tell states and roots apart anyway. */
const forced = (Object.keys(TOKENS) as Token[])
  .map((token) => `--g-${token}:${FORCED[token] ?? "CanvasText"}`)
  .join(";");

/** The rules that come with the marks: the same table draws the static picture. */
export function markRules(): string {
  const scope = ".graphwidget";
  const themes = (["light", "dark"] as const).map((theme) => {
    const host = HOST.map(
      ([token, jupyter, code]) => `--g-${token}:var(--${jupyter},var(--vscode-${code},${tokenValue(token, theme)}))`,
    );
    const where = `${scope}[data-theme=${theme}]`;
    const all = `${where},${where}:not([data-own-colours])`;
    return (
      `${where}{${variables(theme)}}\n${where}:not([data-own-colours]){${host.join(";")}}\n` +
      `@media(forced-colors:active){${all}{${forced}}}\n`
    );
  });
  return themes.join("") + sheet(scope);
}

/**
 * Sets `data-theme` on the root by the background that it really has, whatever the host says (a high-contrast theme
 * says neither dark nor light), and `data-own-colours` where the host's colours would be hard to read.
 */
export function followTheme(root: HTMLElement, signal: AbortSignal, changed: () => void): void {
  let last = "";
  const apply = () => {
    const dress = (theme: Theme, own: boolean) => {
      setAttribute(root, "data-theme", theme);
      setAttribute(root, "data-own-colours", own);
      return theme + own;
    };
    const colours = () => {
      const { color, backgroundColor } = getComputedStyle(root);
      return { ink: parseColour(color), ground: parseColour(backgroundColor) };
    };
    let now = dress(hostTheme(root.parentElement ?? root), false);
    const theme = themeOn(colours().ground ?? [255, 255, 255]);
    if (colours().ground && theme !== root.dataset.theme) now = dress(theme, false);
    const { ink, ground } = colours();
    const second = parseHex(tokenValue("ink2", theme));
    if (ink && ground && (contrast(ink, ground) < LEAST_CONTRAST || contrast(second, ground) < LEAST_SECONDARY))
      now = dress(theme, true);
    if (last !== now) changed();
    last = now;
  };
  apply();
  const observer = new MutationObserver(apply);
  for (const el of [document.documentElement, document.body]) observer.observe(el, { attributes: true });
  SYSTEM()?.addEventListener?.("change", apply, { signal });
  // A theme's style sheet may arrive after the attribute that announces it.
  const later = setTimeout(apply, 300);
  signal.addEventListener("abort", () => {
    clearTimeout(later);
    observer.disconnect();
  });
}

/** Font families of the host for text and for code. */
export function fontsOf(root: Element): { ui: string; mono: string } {
  return { ui: themeValue(root, "font-ui"), mono: themeValue(root, "font-mono") };
}

/** A `--g-*` variable. */
export function themeValue(el: Element, name: string): string {
  return getComputedStyle(el).getPropertyValue(`--g-${name}`).trim();
}

export function prefersCalm(): boolean {
  return globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}
