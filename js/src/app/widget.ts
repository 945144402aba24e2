/** The entry that anywidget calls. One model may have many views; each view ends with its signal. */
import type { Model } from "../state/kernel.ts";
import { openRecording } from "./recorded.ts";
import { View } from "./view.ts";

interface RenderProps {
  model: Model;
  el: HTMLElement;
  signal?: AbortSignal;
}

function render({ model, el, signal }: RenderProps): () => void {
  const life = new AbortController();
  signal?.addEventListener("abort", () => life.abort());
  new View(model, el, life.signal);
  return () => life.abort();
}

export { openRecording };
export default { initialize: () => {}, render };
