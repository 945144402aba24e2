/** Elements that are made and changed by hand: the drawing, the root. Text only ever enters as text. */

export type AttributeValue = string | number | boolean | null | undefined;
export type Attributes = Record<string, AttributeValue>;
type Child = Node | string;

/** An HTML element with its attributes and children. */
export function html<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** An SVG element with its attributes and children. */
export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** Sets or removes an attribute, and touches the DOM only if that changes something. false and null remove it. */
export function setAttribute(element: Element, name: string, value: AttributeValue): void {
  if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
}

/** The element that has the focus, in the document or the shadow tree that an element is in. */
export function focusedElement(element: Element): HTMLElement | null {
  return (element.getRootNode() as Document).activeElement as HTMLElement | null;
}

/** Ends an event here: neither the browser nor the notebook acts on it. */
export function endEvent(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}
