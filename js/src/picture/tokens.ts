/**
 * The style of every mark: class name -> fill, stroke, dash and font, by token names; and the values of the tokens for
 * the light and the dark theme.
 *
 * The style sheet of the page, the static SVG and the canvas all read this table, so that all three draw the same.
 */

export type Theme = "light" | "dark";

/** Tokens: [light, dark]. The page maps bg, panel, ink, ink2 and rule on the host's variables (see theme.css). */
export const TOKENS = {
  bg: ["#ffffff", "#13161a"],
  panel: ["#f6f7f9", "#1a1e23"],
  ink: ["#1b2027", "#e7eaee"],
  ink2: ["#525c67", "#aab3bd"],
  ink3: ["#616b76", "#929ca7"],
  rule: ["#dde2e7", "#2d333b"],
  node: ["#ffffff", "#1d2228"],
  nodeb: ["#7d8792", "#6d7884"],
  slot: ["#39434e", "#d5dbe2"],
  r1: ["#0072b2", "#56b4e9"],
  r2: ["#b04c00", "#eda13c"],
  r3: ["#00785a", "#35c79a"],
  r4: ["#98467a", "#e59cc6"],
  err: ["#bf1136", "#ff7d95"],
  errbg: ["#fdeef0", "#331a20"],
  // Stale slots, and carriers.
  st: ["#7d5a00", "#f0c24e"],
  stbg: ["#fdf3d9", "#2e2712"],
  ok: ["#1b7a45", "#5fd190"],
  acc: ["#1a6fc4", "#6db3f7"],
  accbg: ["#e8f1fb", "#17283a"],
  hull: ["#eef1f5", "#1b2027"],
  car: ["#ffe9a8", "#4a3c0e"],
} as const satisfies Record<string, readonly [string, string]>;

export type Token = keyof typeof TOKENS;

export function tokenValue(token: Token, theme: Theme): string {
  return TOKENS[token][theme === "light" ? 0 : 1];
}

export const FONTS = {
  ui: "Helvetica, Arial, sans-serif",
  mono: 'Menlo, Consolas, "DejaVu Sans Mono", monospace',
} as const;

/** A paint is a token, nothing, or the hue of the root whose class (`r1` ... `r4`, `r0`) the mark also has. */
export type Paint = Token | "none" | "hue";

export interface Style {
  fill?: Paint;
  stroke?: Paint;
  width?: number;
  dash?: readonly number[];
  cap?: "round" | "butt";
  font?: "ui" | "mono";
  size?: number;
  weight?: 400 | 600 | 700;
  /** Set by the root classes only. */
  hue?: Token;
}

const line = (stroke: Paint, width: number, rest: Style = {}): Style => ({ fill: "none", stroke, width, ...rest });
const text = (fill: Paint, size: number, weight: 400 | 600 | 700 = 400, font: "ui" | "mono" = "ui"): Style => ({
  fill,
  size,
  weight,
  font,
});

/** If a mark has several classes, later entries of this table win, whatever the order of classes on the mark. */
export const STYLES = {
  // Roots: hue, then stroke style of a wire or a card's stripe.
  r0: { hue: "ink3" },
  r1: { hue: "r1" },
  r2: { hue: "r2" },
  r3: { hue: "r3" },
  r4: { hue: "r4" },
  wire: line("hue", 2.4),
  stripe: line("hue", 3),
  line2: { width: 4 },
  line3: { dash: [5, 3] },
  line4: { dash: [6, 2, 1.5, 2] },
  linein: line("bg", 1.3),
  gone: { width: 2, dash: [0.1, 4.2], cap: "round" },
  thin: { width: 1.2 },

  // Areas in the background.
  hull: { fill: "hull" },
  boundary: line("st", 1.3, { dash: [5, 4] }),
  band: line("rule", 1),

  // Cards.
  node: { fill: "node", stroke: "nodeb", width: 1.1 },
  hitring: line("acc", 1.2),
  focus: line("acc", 2),
  badge: { fill: "ink" },
  changed: { fill: "acc" },
  running: line("ink", 2.4),
  ran: line("ink", 2.6),
  mayring: line("ink3", 1, { dash: [1.5, 2.5], cap: "round" }),
  ring: line("acc", 2.2),
  ringmissed: line("err", 2.2, { dash: [3, 2] }),
  ringextra: line("err", 2.2),
  disc: { fill: "bg" },
  cross: line("err", 2, { cap: "round" }),
  said: { fill: "bg", stroke: "ink", width: 1.2 },

  // Saved tensors.
  held: { fill: "slot" },
  freed: line("ink3", 1.2, { dash: [2.2, 1.5] }),
  slash: line("ink3", 1.3, { cap: "round" }),
  stale: { fill: "st" },
  cut: line("bg", 1.25, { cap: "round" }),
  packed: line("slot", 1.4),
  none: line("ink3", 1.4, { cap: "round" }),
  unknown: line("ink3", 1.2, { dash: [1, 1.6] }),
  will: line("slot", 1.2, { dash: [2.2, 1.5] }),
  bytebar: { fill: "nodeb" },

  // Leaves, flags, tags.
  leaf: { fill: "hull", stroke: "nodeb", width: 1 },
  leafline: line("nodeb", 1.3),
  bowl: { fill: "slot" },
  bowlempty: line("slot", 1.1),
  flag: { fill: "node", stroke: "hue", width: 1.6 },
  tag: { fill: "node", stroke: "ink3", width: 1.1 },
  taghole: { fill: "bg", stroke: "ink3", width: 1 },
  carrier: { fill: "car", stroke: "st", width: 1.5 },

  // State of a card, a leaf, a flag, a tag or a wire.
  ghost: { fill: "bg", stroke: "ink3", dash: [1.2, 3], cap: "round" },
  stalecard: { fill: "stbg", stroke: "st", width: 2 },
  failcard: { fill: "errbg", stroke: "err", width: 2.2 },
  dim: { stroke: "rule" },
  hitcard: { stroke: "acc", width: 2 },

  // Calls, errors, warnings.
  call: { fill: "bg", stroke: "hue", width: 1.4 },
  octagon: { fill: "err", stroke: "bg", width: 1.5 },
  octagonx: line("bg", 2, { cap: "round" }),
  octagonopen: { fill: "bg", stroke: "err", width: 1.8, dash: [3, 1.6] },
  octagonopenx: line("err", 1.8, { cap: "round" }),
  warning: { fill: "st", stroke: "bg", width: 1.5 },
  warningbar: line("bg", 1.8, { cap: "round" }),
  pencil: line("st", 1.5),
  pencilline: line("st", 1.4, { dash: [4, 3] }),
  tick: line("ok", 2, { cap: "round" }),

  // Code rail; dots, arrows, and calls at their own place.
  rail: { fill: "nodeb" },
  solid: { fill: "hue" },

  // Text. Sizes in px; no text is drawn smaller than 9 px.
  op: text("ink", 11.5, 600, "mono"),
  suffix: { fill: "ink2", weight: 400 },
  note: text("ink2", 11),
  code: text("ink", 11, 400, "mono"),
  hot: { fill: "st", weight: 700 },
  tagname: text("ink", 11, 700, "mono"),
  leafname: text("ink", 11, 400, "mono"),
  flagname: text("ink", 11.5, 700, "mono"),
  hullname: text("ink2", 11, 600),
  carry: text("st", 11, 600),
  order: text("ink2", 11, 700),
  raised: text("err", 11, 600),
  callno: text("hue", 11, 700),
  times: text("bg", 11, 700),
  far: { size: 16.5 },
  quiet: { fill: "ink3", weight: 400 },
  changeword: { fill: "bg" },
  staleword: { fill: "st", weight: 600 },
  failword: { fill: "err" },

  // The sentences under a static picture.
  headline: text("ink", 13.5, 600),
  sentence: text("ink", 12),

  // Marks on top of ink.
  paper: { fill: "bg" },
} as const satisfies Record<string, Style>;

export type ClassName = keyof typeof STYLES;

const order = new Map(Object.keys(STYLES).map((name, position) => [name, position]));
const merged = new Map<string, Style>();

/** The style of a mark with these classes (separated by spaces); the root's token replaces every hue paint. */
export function styleOf(classes: string): Style {
  let style = merged.get(classes);
  if (!style) {
    const names = classes.split(" ").sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    style = Object.assign({}, ...names.map((name) => STYLES[name as ClassName])) as Style;
    const hue = style.hue ?? "ink3";
    if (style.fill === "hue") style.fill = hue;
    if (style.stroke === "hue") style.stroke = hue;
    merged.set(classes, style);
  }
  return style;
}

/** The `class` attribute of a mark. A prefix keeps the rules of the host page away. */
export function classAttribute(classes: string): string {
  return classes
    .split(" ")
    .map((name) => `g-${name}`)
    .join(" ");
}

function declarations({ hue, fill, stroke, width, dash, cap, font, size, weight }: Style): string {
  const paint = (value?: Paint) => value && (value === "none" ? value : `var(--g-${value})`);
  const values = {
    "--g-hue": paint(hue),
    fill: paint(fill),
    stroke: paint(stroke),
    "stroke-width": width,
    "stroke-dasharray": dash,
    "stroke-linecap": cap,
    "font-family": font && `var(--g-font-${font});white-space:pre`,
    "font-size": size && `${size}px`,
    "font-weight": weight,
  };
  return Object.entries(values)
    .flatMap(([name, value]) => (value ? `${name}:${value}` : []))
    .join(";");
}

/** CSS of all mark classes, or `only` of some, under the selector `scope` (".graphwidget"); needs `--g-*` variables. */
export function sheet(scope: string, only?: ReadonlySet<string>): string {
  return Object.entries(STYLES)
    .filter(([name]) => !only || only.has(name))
    .map(([name, style]) => `${scope} .g-${name}{${declarations(style)}}`)
    .join("\n");
}

/** The `--g-*` variables of one theme, as CSS declarations. */
export function variables(theme: Theme): string {
  return (Object.keys(TOKENS) as Token[]).map((token) => `--g-${token}:${tokenValue(token, theme)}`).join(";");
}
