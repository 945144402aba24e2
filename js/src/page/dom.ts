/** Small makers of elements. Text only ever enters through textContent and setAttribute. */

export type Child = Node | string | null | undefined | false | 0 | Child[];
type Value = string | number | boolean | null | undefined;
export type Props = Record<string, Value | ((event: never) => void)>;
type Made<Spec extends string, Map> = Spec extends `${infer Tag}.${string}`
  ? Tag extends keyof Map
    ? Map[Tag]
    : HTMLDivElement
  : Spec extends keyof Map
    ? Map[Spec]
    : never;

function make(namespace: string, spec: string, parts: (Props | Child)[]): Element {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElementNS(`http://www.w3.org/${namespace}`, tag || "div");
  if (classes[0]) attr(element, "class", classes.join(" "));
  for (const part of parts) {
    if (part?.constructor !== Object) element.append(...flat([part as Child]));
    else
      for (const [name, value] of Object.entries(part)) {
        if (typeof value === "function") element.addEventListener(name, value as EventListener);
        else attr(element, name, value);
      }
  }
  return element;
}

/**
 * An HTML element: `h("p.gw-mute", { title }, "words")`; no tag means a div. A property that is a function listens to
 * the event of that name, as long as the element lives; false and null leave an attribute out.
 */
export function h<S extends string>(spec: S, ...parts: (Props | Child)[]) {
  return make("1999/xhtml", spec, parts) as Made<S, HTMLElementTagNameMap>;
}

/** An SVG element. */
export function s<S extends string>(spec: S, ...parts: (Props | Child)[]) {
  return make("2000/svg", spec, parts) as Made<S, SVGElementTagNameMap>;
}

/** A button; `kind`: its classes. */
export function button(kind: string, press: (event: MouseEvent) => void, ...parts: (Props | Child)[]) {
  return h(`button.${kind}` as "button.", { type: "button", click: press }, ...parts);
}

/** Children as `append` and `replaceChildren` want them. */
export function flat(children: readonly Child[]): (Node | string)[] {
  return children.flat(9 as 1).filter(Boolean) as (Node | string)[];
}

/** Terms and what is said about them. */
export function list(rows: readonly (readonly [Child, Child])[]): HTMLElement {
  return h(
    "dl",
    rows.map(([what, words]) => [h("dt", what), h("dd", words)]),
  );
}

/** A table; the first cell of a row is its head. */
export function table(kind: string, titles: string[], rows: Child[], ...before: Child[]): HTMLTableElement {
  const head = h(
    "tr",
    titles.map((title) => h("th", { scope: "col" }, title)),
  );
  return h(`table.${kind}` as "table.", before, titles.length > 0 && h("thead", head), h("tbody", rows));
}

/** Cells of a row: the first is its head; numbers stand at the right. */
export function row(head: Child, ...cells: Child[]): HTMLTableRowElement {
  return h(
    "tr",
    h("th", { scope: "row" }, h("code", head)),
    cells.map((cell) => h(/^\d/.test(cell as string) ? "td.gw-num" : "td", cell)),
  );
}

/** Sets or removes an attribute, and touches the DOM only if that changes something. */
export function attr(element: Element, name: string, value: Value): void {
  if (value == null || value === false) element.removeAttribute(name);
  else {
    const words = value === true ? "" : String(value);
    if (element.getAttribute(name) !== words) element.setAttribute(name, words);
  }
}

export function attrs(element: Element, values: Record<string, Value>): void {
  for (const name in values) attr(element, name, values[name]);
}

/** Sets the text if it differs, so that live regions do not speak twice. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

/** Fills `element` anew when what `draw` depends on has changed. */
export function redraw(element: Element, draw: () => Child): (...dependsOn: unknown[]) => void {
  let last = "";
  return (...dependsOn) => {
    const now = JSON.stringify(dependsOn);
    if (now !== last) element.replaceChildren(...flat([draw()]));
    last = now;
  };
}

/** What has the focus, in the document or the shadow tree that an element is in. */
export function focused(element: Element): HTMLElement | null {
  return (element.getRootNode() as Document).activeElement as HTMLElement | null;
}

/** Ends an event here: neither the browser nor the notebook acts on it. */
export function done(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}

/** Listens to keys by their names, and keeps from the notebook what it has acted on. */
export function keys(element: HTMLElement, acts: Record<string, (event: KeyboardEvent) => void>): void {
  element.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (!act) return;
    act(event);
    done(event);
  });
}

/** A press that moves less than so many px stays a click. */
const SLACK = 4;

/** Follows the pointer from a press, if `press` does not refuse it, to the release; `move` gets the way since its last call. */
export function drag(
  element: Pick<HTMLElement, "addEventListener" | "setPointerCapture">,
  press: (event: PointerEvent) => boolean,
  move: (dx: number, dy: number, event: PointerEvent) => void,
): void {
  let from: PointerEvent | null = null;
  let moves = false;
  element.addEventListener("pointerdown", (event) => {
    moves = false;
    from = !event.button && press(event) ? event : null;
  });
  element.addEventListener("pointermove", (event) => {
    if (event.pointerId !== from?.pointerId) return;
    const dx = event.clientX - from.clientX;
    const dy = event.clientY - from.clientY;
    if (!moves && Math.abs(dx) + Math.abs(dy) < SLACK) return;
    if (!moves) element.setPointerCapture?.(event.pointerId);
    moves = true;
    from = event;
    move(dx, dy, event);
  });
  for (const end of ["pointerup", "pointercancel"] as const) element.addEventListener(end, () => (from = null));
}
