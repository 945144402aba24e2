/** The other half of `wire.ts`: columns as text, as the kernel writes them. For the dev page and the tests. */

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Numbers as the differences to the one before; `sum` false: as they are. */
export function columnText(values: readonly number[], sum = true): string {
  let last = 0;
  let text = "";
  for (const value of values) {
    const number = sum ? value - last : value;
    let left = number >= 0 ? 2 * number : -2 * number - 1;
    for (; left > 31; left = Math.floor(left / 32)) text += BASE64[32 + (left % 32)];
    text += BASE64[left];
    last = value;
  }
  return text;
}

/** Numbers from 0 to 15 as they are. */
export const smallText = (values: readonly number[]) => columnText(values, false);

/** Where the rows of a list of counts end. */
export function endsText(counts: readonly number[]): string {
  let end = 0;
  return columnText(counts.map((count) => (end += count)));
}
