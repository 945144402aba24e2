/** From a graph to what is on screen, in slices: no task of the page is held up for more than a few milliseconds. */
import { drive } from "./drive.ts";
import type { FoldState } from "./picture/fold/index.ts";
import type { Graph } from "./picture/model.ts";
import { drawSlices, type Picture, redrawSlices } from "./picture/picture.ts";
import type { SceneOptions } from "./picture/scene.ts";
import type { Slices } from "./picture/slices.ts";
import { Space } from "./space.ts";

/** From here on the view says that it is drawing. */
const NOTICED_MS = 100;

export interface Drawing extends Picture {
  space: Space;
}

export class Pipeline {
  #last: Picture | undefined;

  /** null: not `wanted` any more. `slow` is called while it takes long enough to be noticed. */
  async run(
    graph: Graph,
    state: FoldState,
    options: (boxes: number) => SceneOptions,
    wanted: () => boolean,
    slow: () => void,
  ): Promise<Drawing | null> {
    const begun = performance.now();
    const paused = () => {
      if (performance.now() - begun > NOTICED_MS) slow();
    };
    const drawing = await drive(withSpace(drawSlices(graph, state, options, this.#last)), wanted, paused);
    if (drawing) this.#last = drawing;
    return drawing;
  }

  /** The same boxes at the same places, with other options (a forecast, a search, another scale). */
  again(drawing: Drawing, options: SceneOptions, wanted: () => boolean): Promise<Drawing | null> {
    return drive(withSpace(redrawSlices(drawing, options)), wanted);
  }

  /** The next run places everything afresh. */
  forget(): void {
    this.#last = undefined;
  }
}

function* withSpace(slices: Slices<Picture>): Slices<Drawing> {
  const picture = yield* slices;
  return { ...picture, space: yield* new Space(picture.scene).fill() };
}
