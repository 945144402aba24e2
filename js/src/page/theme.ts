/** Light or dark, as the host; and our own colours if the host's would be hard to read. */

import { sheet, type Theme, type Token, tokenValue, variables } from "../picture/tokens.ts";
import { setAttribute } from "./elements.ts";

const LEAST_CONTRAST = 7;

type Rgb = [number, number, number];

export function parseColour(text: string): Rgb | null {
  const [r, g, b, alpha] = (/^rgb/.test(text) && text.match(/[\d.]+/g)?.map(Number)) || [];
  return b === undefined || alpha === 0 ? null : [r!, g!, b];
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

/** The theme of the host: of the nearest element that sets one, through shadow roots; else of the system. */
export function hostTheme(el: Element): Theme {
  for (let at: Element | null = el; at; at = at.parentElement ?? (at.getRootNode() as ShadowRoot).host) {
    const light = at.getAttribute("data-jp-theme-light");
    const said =
      (light && (light === "false" ? "dark" : "light")) ??
      /(?:^| )(?:vscode-)?(dark|light)(?:-theme)?(?: |$)/.exec(at.getAttribute("class") ?? "")?.[1] ??
      /dark|light/.exec(`${at.getAttribute("data-theme")} ${at.getAttribute("data-vscode-theme-kind")}`)?.[0];
    if (said) return said as Theme;
  }
  return SYSTEM()?.matches ? "dark" : "light";
}

/** Tokens that follow the host; all others are ours in every host, so that their contrast is known. */
const HOST: [Token, string, string][] = [
  ["bg", "jp-layout-color0", "editor-background"],
  ["panel", "jp-layout-color1", "sideBar-background"],
  ["ink", "jp-ui-font-color1", "foreground"],
  ["ink2", "jp-ui-font-color2", "descriptionForeground"],
  ["rule", "jp-border-color2", "panel-border"],
];

/** The rules that come with the marks: the same table draws the static picture. */
export function markRules(): string {
  const scope = ".graphwidget";
  const themes = (["light", "dark"] as const).map((theme) => {
    const host = HOST.map(
      ([token, jupyter, code]) => `--g-${token}:var(--${jupyter},var(--vscode-${code},${tokenValue(token, theme)}))`,
    );
    const where = `${scope}[data-theme=${theme}]`;
    return `${where}{${variables(theme)}}\n${where}:not([data-own-colours]){${host.join(";")}}\n`;
  });
  return themes.join("") + sheet(scope);
}

/** Sets `data-theme` on the root, and `data-own-colours` where the host's ink on its background is below 7:1. */
export function followTheme(root: HTMLElement, signal: AbortSignal, changed: () => void): void {
  let last = "";
  const apply = () => {
    const dress = (theme: Theme, own: boolean) => {
      setAttribute(root, "data-theme", theme);
      setAttribute(root, "data-own-colours", own);
      return theme + own;
    };
    let now = dress(hostTheme(root.parentElement ?? root), false);
    const style = getComputedStyle(root);
    const ink = parseColour(style.color);
    const ground = parseColour(style.backgroundColor);
    if (ink && ground && contrast(ink, ground) < LEAST_CONTRAST)
      now = dress(luminance(ground) < 0.2 ? "dark" : "light", true);
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
