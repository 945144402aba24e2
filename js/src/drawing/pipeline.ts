/** From a graph to a drawing, in slices: no task of the page waits for more than a few milliseconds. */

import { Space } from "../canvas/space.ts";
import { drive } from "../page/drive.ts";
import type { FoldState } from "../picture/fold/index.ts";
import type { Graph } from "../picture/model.ts";
import { drawSlices, type Picture, redrawSlices } from "../picture/picture.ts";
import type { SceneOptions } from "../picture/scene/types.ts";
import type { Slices } from "../picture/slices.ts";

/** After this many milliseconds the view says that it is drawing. */
const NOTICED_MS = 100;

export interface Drawing extends Picture {
  space: Space;
}

/** Draws a graph. null: not `wanted` any more. `slow`: called if it takes noticeably long. `earlier`: now on screen. */
export function drawn(
  graph: Graph,
  state: FoldState,
  options: (boxes: number) => SceneOptions,
  earlier: Drawing | null,
  wanted: () => boolean,
  slow: () => void,
): Promise<Drawing | null> {
  const begun = performance.now();
  const paused = () => {
    if (performance.now() - begun > NOTICED_MS) slow();
  };
  return drive(withSpace(drawSlices(graph, state, options, earlier)), wanted, paused);
}

/** Draws the same boxes at the same places with other options (a forecast, a search, another scale). */
export function redrawn(drawing: Drawing, options: SceneOptions, wanted: () => boolean): Promise<Drawing | null> {
  return drive(withSpace(redrawSlices(drawing, options)), wanted);
}

function* withSpace(slices: Slices<Picture>): Slices<Drawing> {
  const picture = yield* slices;
  return { ...picture, space: yield* new Space(picture.scene).fill() };
}
