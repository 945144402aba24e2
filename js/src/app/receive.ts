/** Reads the kernel's traits into a graph: a whole picture (`wire`), or the changes since then (`delta`). */

import { drive } from "../page/drive.ts";
import type { Graph } from "../picture/model.ts";
import { applyDelta, decodeSlices } from "../picture/wire.ts";
import { follow, type Model, Refused } from "../state/kernel.ts";

/** A stored picture that the kernel has sent; null: it is not wanted any more. */
export async function readPicture(wire: string, isWanted: () => boolean): Promise<Graph | null> {
  try {
    return await drive(decodeSlices(wire), isWanted);
  } catch (error) {
    console.error("graphwidget:", error);
    throw new Refused("The picture of that moment cannot be read.", "The picture of now is not affected.");
  }
}

export interface Receiving {
  /** The newest graph so far. */
  now(): Graph | null;
  received(graph: Graph): void;
  failed(error: unknown): void;
}

/** Reads each new picture until the view is closed. */
export function receivePictures(model: Model, signal: AbortSignal, { now, received, failed }: Receiving): void {
  /** The last value of the trait `wire`: its text, and the graph. */
  let wire = "";
  let base: Promise<Graph | null> | undefined;

  async function receive(): Promise<void> {
    const newest = String(model.get("wire") ?? "");
    const delta = String(model.get("delta") ?? "");
    if (!newest) return;
    if (newest !== wire) {
      wire = newest;
      base = drive(decodeSlices(newest), () => model.get("wire") === newest && !signal.aborted);
    }
    try {
      const picture = await base;
      if (!picture || delta !== model.get("delta")) return; // a newer delta has arrived
      const graph = delta ? applyDelta(picture, delta) : picture;
      const before = now();
      if (before && (graph === before || graph.serial < before.serial)) return; // never replace a newer graph
      received(graph);
    } catch (error) {
      // Traits of one change may arrive one by one: a delta then waits for its picture.
      if (!delta || !now()) failed(error);
    }
  }

  follow(model, signal, { "change:wire": receive, "change:delta": receive });
  void receive();
}
