/** Long work in slices: a generator yields often, and its driver decides when to resume it. */

export type Slices<T> = Generator<void, T>;

/** Runs slices to the end without a pause; returns the result. */
export function runSlices<T>(slices: Slices<T>): T {
  for (;;) {
    const step = slices.next();
    if (step.done) return step.value;
  }
}

/** `work(i)` for i from 0 to n - 1, yielding after every `size`; ends early where `work` returns false. */
export function* eachSlice(n: number, work: (i: number) => unknown, size = 256): Slices<void> {
  for (let i = 0; i < n; ) {
    for (const end = Math.min(n, i + size); i < end; i++) if (work(i) === false) return;
    yield;
  }
}

/** `items.map(make)`, yielding now and then. */
export function* mapSlices<A, B>(items: readonly A[], make: (item: A, i: number) => B): Slices<B[]> {
  const made: B[] = [];
  yield* eachSlice(items.length, (i) => made.push(make(items[i]!, i)));
  return made;
}
