/** The clipboard, which a page may not be allowed to write to. */

/** Resolves with whether the text is on the clipboard. */
export async function copy(words: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    return false;
  }
}
