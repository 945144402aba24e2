/** Runs slices of work, and lets the page handle input and paint in between. */
import type { Slices } from "../picture/slices.ts";

const SLICE_MS = 6;

function pause(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Resolves with the result of the slices; null if it is not `wanted` any more after a pause. */
export async function drive<T>(
  slices: Slices<T>,
  wanted: () => boolean,
  paused: () => void = () => {},
): Promise<T | null> {
  for (;;) {
    const end = performance.now() + SLICE_MS;
    do {
      const step = slices.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    paused();
    await pause();
    if (!wanted()) return null;
  }
}
