/** Small makers of elements. Text only ever enters through textContent and setAttribute. */

export type Child = Node | string | null | undefined | false | Child[];
export type Props = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

const SVG_NS = "http://www.w3.org/2000/svg";

function fill(element: Element, props: Props, children: Child[], signal?: AbortSignal): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.slice(2).toLowerCase(), value as EventListener, signal ? { signal } : undefined);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** An HTML element. A property that starts with "on" is a listener; false and null leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG_NS, tag) as SVGElementTagNameMap[K];
  fill(element, props, children);
  return element;
}

/** Children as `replaceChildren` wants them. */
export function flat(children: Child[]): (Node | string)[] {
  return children.flatMap((child) => (Array.isArray(child) ? flat(child) : child ? [child] : []));
}

/** Sets or removes an attribute, and touches the DOM only if that changes something. */
export function attr(element: Element, name: string, value: string | number | boolean | null | undefined): void {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Sets the text if it differs, so that live regions do not speak twice. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

/** Runs `draw` again only when `signature` differs from the last one. */
export function memo(draw: () => void): (signature: string) => void {
  let last: string | null = null;
  return (signature) => {
    if (signature === last) return;
    last = signature;
    draw();
  };
}

const ICONS = {
  search: ["M6 2a4 4 0 1 1 0 8a4 4 0 1 1 0-8M9 9l3.4 3.4", ""],
  fit: ["M1.5 5V1.5H5M9 1.5h3.5V5M12.5 9v3.5H9M5 12.5H1.5V9", ""],
  legend: ["M1.5 8.5h4v3.4h-4zM8 4h5M8 10.2h5", "M1 2h5v4H1z"],
  more: [
    "",
    "M1.3 7a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0-2.4 0M5.8 7a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0-2.4 0M10.3 7a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0-2.4 0",
  ],
  prev: ["", "M9.5 2.5L4.5 7l5 4.5z"],
  next: ["", "M4.5 2.5L9.5 7l-5 4.5z"],
  first: ["", "M11 2.5L6 7l5 4.5zM3 2.5h1.8v9H3z"],
  last: ["", "M3 2.5L8 7l-5 4.5zM9.2 2.5H11v9H9.2z"],
  close: ["M3.5 3.5l7 7M10.5 3.5l-7 7", ""],
  plus: ["M7 2.5v9M2.5 7h9", ""],
  minus: ["M2.5 7h9", ""],
} as const;

export type IconName = keyof typeof ICONS;

/** A line icon of 14 px; decoration only, so hidden from screen readers. */
export function icon(name: IconName): SVGSVGElement {
  const [line, solid] = ICONS[name];
  return s(
    "svg",
    { class: "gw-icon", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" },
    line && s("path", { d: line, class: "gw-ic" }),
    solid && s("path", { d: solid, class: "gw-icf" }),
  );
}

/** The mark of the widget: two lines of a metro map that meet, one slot full, one empty. */
export function logo(): SVGSVGElement {
  return s(
    "svg",
    { class: "gw-logo", viewBox: "0 0 18 18", width: 18, height: 18, "aria-hidden": "true" },
    s("path", { d: "M5 14V9.5Q5 7 9 7t4-2.5V4", class: "gw-lg1" }),
    s("path", { d: "M13 14v-3q0-2-4-4", class: "gw-lg2" }),
    s("rect", { x: 2.5, y: 12, width: 5, height: 4, rx: 1, class: "gw-lgn" }),
    s("rect", { x: 10.6, y: 12.1, width: 4.8, height: 3.8, rx: 1, class: "gw-lgh" }),
  );
}
