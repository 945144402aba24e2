/** Items whose marks and words are made when first asked for: in a large graph, most never are. */

import type { Item } from "../scene.ts";

type Made = Pick<Item, "marks" | "label" | "data" | "slots">;

export function lazyItem(place: Omit<Item, keyof Made>, make: () => Made): Item {
  let made: Made | undefined;
  const get = () => {
    made ??= make();
    return made;
  };
  return {
    ...place,
    get marks() {
      return get().marks;
    },
    get label() {
      return get().label;
    },
    get data() {
      return get().data;
    },
    get slots() {
      return get().slots;
    },
  };
}
