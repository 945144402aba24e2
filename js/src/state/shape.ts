/** Shapes of what the kernel sends: a value that has a shape can be used, one that has not is refused at the door. */

/** Says where a value differs from a shape ("frees[3] is no number"); "": it does not. */
export type Shape<T> = { differs(value: unknown, at: string): string; readonly of?: T };

/** What a value of a shape is. */
export type Of<S> = S extends Shape<infer T> ? T : never;

const simple = <T>(what: string, holds: (value: unknown) => boolean): Shape<T> => ({
  differs: (value, at) => (holds(value) ? "" : `${at} is no ${what}`),
});

export const text: Shape<string> = simple("text", (value) => typeof value === "string");
export const number: Shape<number> = simple("number", (value) => typeof value === "number");
export const count: Shape<number> = simple(
  "number of things",
  (value) => Number.isInteger(value) && Number(value) >= 0,
);
export const truth: Shape<boolean> = simple("yes or no", (value) => typeof value === "boolean");

/** One of some texts. */
export function word<const T extends string>(...words: T[]): Shape<T> {
  return simple(`word of ${words.join(", ")}`, (value) => words.includes(value as T));
}

export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return { differs: (value, at) => (value === null ? "" : shape.differs(value, at)) };
}

/** The first difference among these values. */
function first<T>(values: readonly T[], differs: (value: T, i: number) => string): string {
  for (const [i, value] of values.entries()) {
    const difference = differs(value, i);
    if (difference) return difference;
  }
  return "";
}

export function list<T>(shape: Shape<T>): Shape<T[]> {
  return {
    differs: (value, at) =>
      Array.isArray(value) ? first(value, (each, i) => shape.differs(each, `${at}[${i}]`)) : `${at} is no list`,
  };
}

/** A list of a fixed length. */
export function row<T extends unknown[]>(...shapes: { [K in keyof T]: Shape<T[K]> }): Shape<T> {
  return {
    differs: (value, at) =>
      Array.isArray(value) && value.length === shapes.length
        ? first(shapes, (shape, i) => shape.differs(value[i], `${at}[${i}]`))
        : `${at} is no list of ${shapes.length}`,
  };
}

/** An object that has these fields; it may have more. `agree`: whether they fit each other. */
export function fields<T extends object>(
  shapes: { [K in keyof T]: Shape<T[K]> },
  agree: (value: T) => boolean = () => true,
): Shape<T> {
  return {
    differs: (value, at) => {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return `${at} is no object`;
      const names = Object.keys(shapes) as (keyof T & string)[];
      const within = (name: keyof T & string) => shapes[name].differs((value as T)[name], at ? `${at}.${name}` : name);
      return first(names, within) || (agree(value as T) ? "" : `${at} contradicts itself`);
    },
  };
}

/** A value of one of these shapes. */
export function either<T extends unknown[]>(...shapes: { [K in keyof T]: Shape<T[K]> }): Shape<T[number]> {
  return {
    differs: (value, at) => {
      const found = shapes.map((shape) => shape.differs(value, at));
      return found.every(Boolean) ? found[0]! : "";
    },
  };
}
