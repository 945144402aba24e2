/** What the model's traits say: a picture, and a change that was made to it since. */
import { drive } from "./drive.ts";
import type { Graph } from "./picture/model.ts";
import { applyDelta, decode, decodeSlices } from "./picture/wire.ts";

/** Characters from which on a picture is read in slices: about 30,000 nodes. */
const LONG = 500_000;

export class Reader {
  #wire = "";
  #base: Graph | undefined;
  /** The long picture that is being read. */
  #reading = "";

  /** null: it takes longer; `again` is called when it can be asked for, or says why it never can. */
  read(wire: string, delta: string, wanted: () => boolean, again: (error?: unknown) => void): Graph | null {
    if (this.#wire !== wire) {
      if (wire.length > LONG) {
        void this.#readLong(wire, wanted, again);
        return null;
      }
      this.#keep(wire, decode(wire));
    }
    return delta ? applyDelta(this.#base!, delta) : this.#base!;
  }

  async #readLong(wire: string, wanted: () => boolean, again: (error?: unknown) => void): Promise<void> {
    if (this.#reading === wire) return;
    this.#reading = wire;
    try {
      const graph = await drive(decodeSlices(wire), wanted);
      if (!graph) return;
      this.#keep(wire, graph);
      again();
    } catch (error) {
      again(error);
    } finally {
      if (this.#reading === wire) this.#reading = "";
    }
  }

  #keep(wire: string, graph: Graph): void {
    this.#wire = wire;
    this.#base = graph;
  }
}
