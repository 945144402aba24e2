/** Typed arrays of n zeros. */

export const ints = (n: number) => new Int32Array(n);
export const doubles = (n: number) => new Float64Array(n);
export const bytes = (n: number) => new Uint8Array(n);
