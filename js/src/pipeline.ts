/** From a graph to a scene, in slices: no task of the page is held up for more than a few milliseconds. */
import { type Folded, type FoldState, fold, seedPositions } from "./picture/fold/index.ts";
import { type LayoutOutput, layoutSlices } from "./picture/layout/index.ts";
import type { Graph } from "./picture/model.ts";
import {
  buildScene,
  layoutInput,
  type Plan,
  planScene,
  positions,
  type Scene,
  type SceneOptions,
} from "./picture/scene.ts";

const SLICE_MS = 8;

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

  /** null: a newer run has begun meanwhile. */
  async run(graph: Graph, state: FoldState, options: SceneOptions): Promise<Drawing | null> {
    const turn = ++this.turn;
    const folded = fold(graph, state);
    const plan = planScene(graph, folded, options);
    const slices = layoutSlices(layoutInput(plan, this.seeds(folded)));
    let started = performance.now();
    let step = slices.next();
    while (!step.done) {
      if (performance.now() - started > SLICE_MS) {
        await pause();
        if (turn !== this.turn) return null;
        started = performance.now();
      }
      step = slices.next();
    }
    this.last = { folded, placed: step.value, places: positions(plan, step.value) };
    return { graph, folded, plan, placed: step.value, scene: buildScene(plan, step.value) };
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
