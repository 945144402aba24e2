/**
 * A view without a kernel: a page of its own (`exports/page.py`) holds a picture and the answers that were written down
 * with it, and this front end.
 */

import type { Model, Recorded } from "../state/kernel.ts";
import { View } from "./view.ts";

interface Recording {
  wire: string;
  answers: Recorded;
}

/** The same as it is packed: a message among the answers is a list of stretches of pieces, each its start and length. */
interface Packed {
  wire: string;
  answers: Record<string, Record<string, unknown>>;
  pieces?: readonly string[];
}

function unfold({ wire, answers, pieces = [] }: Packed): Recording {
  const messageOf = (stretches: readonly number[]) => {
    let message = "";
    for (let i = 0; i < stretches.length; i += 2)
      message += pieces.slice(stretches[i], stretches[i]! + stretches[i + 1]!).join("");
    return message;
  };
  const whole = Object.entries(answers).map(([name, answer]) => [
    name,
    Array.isArray(answer.wire) ? { ...answer, wire: messageOf(answer.wire) } : answer,
  ]);
  return { wire, answers: Object.fromEntries(whole) };
}

/** Height of what stands above the view on the page, and the least height of the view, in px. */
const ABOVE = 96;
const LEAST = 420;

/** The model of a recording: nothing changes but the height, and nothing is sent. */
class RecordedModel implements Model {
  readonly #values: Map<string, unknown>;

  constructor({ wire, answers }: Recording) {
    const height = Math.max(LEAST, globalThis.innerHeight - ABOVE);
    this.#values = new Map(
      Object.entries({ link: "recorded", wire, answers, delta: "", busy: "", formats: [], height }),
    );
  }

  get(name: string): unknown {
    return this.#values.get(name);
  }

  set(name: string, value: unknown): void {
    this.#values.set(name, value);
  }

  save_changes(): void {}
  send(): void {}
  on(): void {}
  off(): void {}
}

/** The JSON text in `packed`: compressed by gzip, then in base64. */
async function unpack(packed: string): Promise<string> {
  const bytes = Uint8Array.from(atob(packed.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

/** Shows a recording in `parent`. A browser that cannot read it leaves what `parent` holds. */
export async function openRecording(parent: HTMLElement, packed: string): Promise<void> {
  const recording = unfold(JSON.parse(await unpack(packed)) as Packed);
  parent.replaceChildren();
  new View(new RecordedModel(recording), parent, new AbortController().signal);
}
