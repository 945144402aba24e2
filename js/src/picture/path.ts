/** Paths as they stand in Python code: `model.h[3].attn`, `heads['a']`. */

/** An attribute, or an index with all that stands between its brackets. */
const PART = /\[(?:'[^']*'|"[^"]*"|[^\]]*)\]|\.?[^.[]+/g;

/** A path after the paths of all objects that contain it, the outermost first: `h`, `h[3]`, `h[3].attn`. */
export function prefixesOf(path: string): string[] {
  let text = "";
  return (path.match(PART) ?? []).map((part) => (text += part));
}

/** `attn` of `h[3].attn`, `[3]` of `h[3]`. */
export function lastPart(path: string): string {
  return (path.match(PART)?.at(-1) ?? "").replace(/^\./, "");
}

/** Whether a path ends in a list: `h[3]`. */
export function isMember(path: string): boolean {
  return /\[\d+\]$/.test(path);
}
