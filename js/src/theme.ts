/** Light or dark, as the host is; and our own colours where the host's would be hard to read. */
import { sheet, type Theme, type Token, tokenValue, variables } from "./picture/tokens.ts";

const LEAST_CONTRAST = 7;

type Rgb = [number, number, number];

export function parseColour(text: string): Rgb | null {
  const match = /rgba?\(\s*([\d.]+)[\s,]+([\d.]+)[\s,]+([\d.]+)(?:[\s,/]+([\d.]+%?))?/.exec(text);
  if (!match || match[4] === "0") return null;
  return [Number(match[1]), Number(match[2]), Number(match[3])];
}

export function luminance([r, g, b]: Rgb): number {
  const linear = (v: number) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Ancestors, through shadow roots. */
function* ancestors(el: Element): Generator<Element> {
  for (let at: Element | null = el; at; ) {
    yield at;
    const parent: Node | null = at.parentElement ?? (at.getRootNode() as ShadowRoot).host ?? null;
    at = parent as Element | null;
  }
}

/** What the host says, nearest first; else what the system says. */
export function hostTheme(el: Element): Theme {
  for (const at of ancestors(el)) {
    const jupyter = at.getAttribute("data-jp-theme-light");
    if (jupyter !== null) return jupyter === "false" ? "dark" : "light";
    const { classList } = at;
    const named = at.getAttribute("data-theme") ?? at.getAttribute("data-vscode-theme-kind");
    if (
      classList.contains("vscode-dark") ||
      classList.contains("dark") ||
      classList.contains("dark-theme") ||
      named?.includes("dark")
    )
      return "dark";
    if (
      classList.contains("vscode-light") ||
      classList.contains("light") ||
      classList.contains("light-theme") ||
      named?.includes("light")
    )
      return "light";
  }
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Tokens that follow the host; all others are ours in every host, so that their contrast is known. */
const HOST: [Token, string[]][] = [
  ["bg", ["--jp-layout-color0", "--vscode-editor-background"]],
  ["panel", ["--jp-layout-color1", "--vscode-sideBar-background"]],
  ["ink", ["--jp-ui-font-color1", "--vscode-foreground"]],
  ["ink2", ["--jp-ui-font-color2", "--vscode-descriptionForeground"]],
  ["rule", ["--jp-border-color2", "--vscode-panel-border"]],
];

function hostVariables(theme: Theme): string {
  const chain = (names: string[], own: string) => names.reduceRight((rest, name) => `var(${name},${rest})`, own);
  return HOST.map(([token, names]) => `--g-${token}:${chain(names, tokenValue(token, theme))}`).join(";");
}

/** The rules that come with the marks: the same table draws the static picture. */
export function markRules(): string {
  const scope = ".graphwidget";
  const dark = `${scope}[data-theme=dark]`;
  const host = ":not([data-own-colours])";
  return [
    `${scope}{${variables("light")}}`,
    `${dark}{${variables("dark")}}`,
    `${scope}${host}{${hostVariables("light")}}`,
    `${dark}${host}{${hostVariables("dark")}}`,
    sheet(scope),
  ].join("\n");
}

/** Sets `data-theme` on the root, and `data-own-colours` where the host's ink on its background is below 7:1. */
export function followTheme(root: HTMLElement, signal: AbortSignal, changed: () => void): void {
  let last = "";
  const apply = () => {
    const host = root.parentElement;
    let theme = host ? hostTheme(host) : "light";
    root.removeAttribute("data-own-colours");
    root.setAttribute("data-theme", theme);
    const style = getComputedStyle(root);
    const ink = parseColour(style.color);
    const ground = parseColour(style.backgroundColor);
    let own = false;
    if (ink && ground && contrast(ink, ground) < LEAST_CONTRAST) {
      own = true;
      theme = luminance(ground) < 0.2 ? "dark" : "light";
      root.setAttribute("data-theme", theme);
      root.setAttribute("data-own-colours", "");
    }
    if (last !== `${theme}${own}`) {
      last = `${theme}${own}`;
      changed();
    }
  };
  apply();
  const observer = new MutationObserver(apply);
  const watched = {
    attributes: true,
    attributeFilter: ["class", "data-jp-theme-light", "data-jp-theme-name", "data-theme", "data-vscode-theme-kind"],
  };
  for (const el of [document.documentElement, document.body]) if (el) observer.observe(el, watched);
  const system = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
  system?.addEventListener?.("change", apply, { signal });
  // A theme's style sheet may arrive after the attribute that announces it.
  const later = setTimeout(apply, 300);
  signal.addEventListener("abort", () => {
    clearTimeout(later);
    observer.disconnect();
  });
}

export function prefersCalm(): boolean {
  return globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}
