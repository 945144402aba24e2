/** Long work in slices: a generator yields often, and whoever drives it decides when the page may go on. */

export type Slices<T> = Generator<void, T>;

/** Runs to the end. */
export function runSlices<T>(slices: Slices<T>): T {
  for (;;) {
    const step = slices.next();
    if (step.done) return step.value;
  }
}

const SLICE = 256;

/** `items.map(make)`, yielding now and then. */
export function* mapSlices<A, B>(items: readonly A[], make: (item: A, i: number) => B): Slices<B[]> {
  const made: B[] = [];
  for (let i = 0; i < items.length; i++) {
    made.push(make(items[i]!, i));
    if (i % SLICE === SLICE - 1) yield;
  }
  return made;
}
