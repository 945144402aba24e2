/** From a graph to a scene, in slices: no task of the page is held up for more than a few milliseconds. */
import { drive } from "./drive.ts";
import { type Folded, type FoldState, foldSlices, seedPositions } from "./picture/fold/index.ts";
import { type LayoutOutput, layoutSlices } from "./picture/layout/index.ts";
import type { Graph } from "./picture/model.ts";
import { layoutInput, type Plan, planSlices, positions, type SceneOptions, sceneSlices } from "./picture/scene.ts";
import type { Slices } from "./picture/slices.ts";
import { Space } from "./space.ts";

/** From here on the view says that it is drawing. */
const NOTICED_MS = 100;

/** How to draw so many boxes. */
type OptionsFor = (boxes: number) => SceneOptions;
type Places = Map<string, readonly [number, number]>;

export interface Drawing {
  graph: Graph;
  folded: Folded;
  plan: Plan;
  placed: LayoutOutput;
  space: Space;
}

export class Pipeline {
  #last: { folded: Folded; placed: LayoutOutput; places: Places } | null = null;

  /** null: not `wanted` any more. `slow` is called once when it takes long enough to be noticed. */
  async run(
    graph: Graph,
    state: FoldState,
    options: OptionsFor,
    wanted: () => boolean,
    slow: () => void,
  ): Promise<Drawing | null> {
    const begun = performance.now();
    let told = false;
    const paused = () => {
      if (told || performance.now() - begun < NOTICED_MS) return;
      told = true;
      slow();
    };
    const drawing = await drive(this.#draw(graph, state, options), wanted, paused);
    if (drawing) {
      const { folded, plan, placed } = drawing;
      this.#last = { folded, placed, places: positions(plan, placed) };
    }
    return drawing;
  }

  *#draw(graph: Graph, state: FoldState, options: OptionsFor): Slices<Drawing> {
    const folded = yield* foldSlices(graph, state);
    const plan = yield* planSlices(graph, folded, options(folded.boxes.length));
    const placed = yield* layoutSlices(layoutInput(plan, this.#seeds(folded)));
    yield;
    const scene = yield* sceneSlices(plan, placed);
    return { graph, folded, plan, placed, space: yield* new Space(scene).fill() };
  }

  /** Places of the last picture: by key, and for nodes of a cell that ran again by their seat in the code. */
  #seeds(folded: Folded): Places | undefined {
    if (!this.#last) return undefined;
    const places = new Map(this.#last.places);
    const { x, y } = seedPositions(this.#last.folded, this.#last.placed, folded);
    folded.boxes.forEach((box, i) => {
      if (!Number.isNaN(x[i]!)) places.set(box.key, [x[i]!, y[i]!]);
    });
    return places;
  }

  /** The same boxes at the same places, with other options (a forecast, a search, another scale). */
  again(drawing: Drawing, options: SceneOptions, wanted: () => boolean): Promise<Drawing | null> {
    return drive(redo(drawing, options), wanted);
  }

  /** The next run places everything afresh. */
  forget(): void {
    this.#last = null;
  }
}

function* redo(drawing: Drawing, options: SceneOptions): Slices<Drawing> {
  const plan = yield* planSlices(drawing.graph, drawing.folded, options);
  const scene = yield* sceneSlices(plan, drawing.placed);
  return { ...drawing, plan, space: yield* new Space(scene).fill() };
}
