/** From a graph to a scene, in slices: no task of the page is held up for more than a few milliseconds. */
import { type Folded, type FoldState, foldSlices, seedPositions } from "./picture/fold/index.ts";
import { type LayoutOutput, layoutSlices } from "./picture/layout/index.ts";
import type { Graph } from "./picture/model.ts";
import {
  buildScene,
  layoutInput,
  type Plan,
  planScene,
  planSlices,
  positions,
  type Scene,
  type SceneOptions,
  sceneSlices,
} from "./picture/scene.ts";
import type { Slices } from "./picture/slices.ts";

const SLICE_MS = 8;
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
  scene: Scene;
}

/** Lets the page do what waits: input, painting. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}

export class Pipeline {
  private turn = 0;
  private last: { folded: Folded; placed: LayoutOutput; places: Places } | null = null;

  /** null: a newer run has begun meanwhile. `slow` is called once when it takes long enough to be noticed. */
  async run(graph: Graph, state: FoldState, options: OptionsFor, slow: () => void): Promise<Drawing | null> {
    const turn = ++this.turn;
    const slices = this.draw(graph, state, options);
    const begun = performance.now();
    let told = false;
    let started = begun;
    let step = slices.next();
    while (!step.done) {
      if (performance.now() - started > SLICE_MS) {
        if (!told && performance.now() - begun > NOTICED_MS) {
          told = true;
          slow();
        }
        await pause();
        if (turn !== this.turn) return null;
        started = performance.now();
      }
      step = slices.next();
    }
    const { folded, plan, placed } = step.value;
    this.last = { folded, placed, places: positions(plan, placed) };
    return step.value;
  }

  private *draw(graph: Graph, state: FoldState, options: OptionsFor): Slices<Drawing> {
    const folded = yield* foldSlices(graph, state);
    const plan = yield* planSlices(graph, folded, options(folded.boxes.length));
    const placed = yield* layoutSlices(layoutInput(plan, this.seeds(folded)));
    yield;
    return { graph, folded, plan, placed, scene: yield* sceneSlices(plan, placed) };
  }

  /** Places of the last picture: by key, and for nodes of a cell that ran again by their seat in the code. */
  private seeds(folded: Folded): Places | undefined {
    if (!this.last) return undefined;
    const places = new Map(this.last.places);
    const { x, y } = seedPositions(this.last.folded, this.last.placed, folded);
    folded.boxes.forEach((box, i) => {
      if (!Number.isNaN(x[i]!)) places.set(box.key, [x[i]!, y[i]!]);
    });
    return places;
  }

  /** The same boxes at the same places, with other options (a forecast, a search, another scale). */
  again(drawing: Drawing, options: SceneOptions): Drawing {
    const plan = planScene(drawing.graph, drawing.folded, options);
    return { ...drawing, plan, scene: buildScene(plan, drawing.placed) };
  }

  /** The next run places everything afresh. */
  forget(): void {
    this.last = null;
  }
}
