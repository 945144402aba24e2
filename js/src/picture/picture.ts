/** All steps from a graph, or a wire message, to a picture; also a bundle of its own for engines without a page. */

import { type Folded, type FoldState, foldSlices, presentSlices } from "./fold/index.ts";
import type { LayoutInput, LayoutOutput } from "./layout/index.ts";
import { shelvedSlices } from "./layout/shelves.ts";
import { measureByTable } from "./measure.ts";
import type { Graph } from "./model.ts";
import { importantUids, sceneSlices } from "./scene/index.ts";
import { type Earlier, inputSlices, type Plan, planSlices } from "./scene/plan.ts";
import type { Scene, SceneOptions } from "./scene/types.ts";
import { sheetOf } from "./sheet.ts";
import { runSlices, type Slices } from "./slices.ts";
import { renderSvg, type SvgOptions } from "./svg.ts";
import { decode } from "./wire.ts";

export interface Picture {
  graph: Graph;
  folded: Folded;
  /** Size of every box. */
  plan: Plan;
  /** Place of every box. */
  placed: LayoutOutput;
  /** All items to draw. */
  scene: Scene;
}

/**
 * Nodes that are gone leave holes. A picture of at most `SMALL` boxes is laid out from the start if wires would be more
 * than `WORSE` times as long with the places kept.
 */
const SMALL = 200;
const WORSE = 1.5;

function isSomethingGone(graph: Graph, { plan: { context } }: Earlier): boolean {
  return context.folded.boxes.some(({ nodes }) => graph.indexOf(context.graph.uid[nodes[0]!]!) < 0);
}

/** Length of all edges together, in px. */
function wire({ edges }: LayoutInput, { x, y }: LayoutOutput): number {
  let length = 0;
  for (let e = 0; e < edges.length; e += 2) {
    const [a, b] = edges.subarray(e, e + 2);
    length += Math.abs(x[a]! - x[b]!) + Math.abs(y[a]! - y[b]!);
  }
  return length;
}

/** Draws a graph. `options`: by the number of boxes. `earlier`: the picture before, so that nothing jumps. */
export function* drawSlices(
  graph: Graph,
  state: FoldState,
  options: (boxes: number) => SceneOptions,
  earlier?: Earlier | null,
): Slices<Picture> {
  const { roots } = state.older || state.focus ? graph : yield* presentSlices(graph);
  const visible = [...(state.visible ?? []), ...importantUids(graph, roots)];
  const standing = earlier?.plan.context.folded.standing;
  const folded = yield* foldSlices(graph, { ...state, visible, standing });
  const plan = yield* planSlices(graph, folded, options(folded.boxes.length));
  const input = yield* inputSlices(plan, earlier);
  yield;
  let placed = yield* shelvedSlices(input);
  if (earlier && folded.boxes.length <= SMALL && isSomethingGone(graph, earlier)) {
    const fresh = yield* shelvedSlices({ ...input, previous: undefined });
    if (wire(input, placed) > WORSE * wire(input, fresh)) placed = fresh;
  }
  return { graph, folded, plan, placed, scene: yield* sceneSlices(plan, placed) };
}

/**
 * Draws the same boxes at the same places with other options (a forecast, a search, another scale). One-line cards and
 * the code rail stay as they are: the size of cards depends on both.
 */
export function* redrawSlices(picture: Picture, options: SceneOptions): Slices<Picture> {
  const { rail, options: before } = picture.plan.context;
  const { compact } = before;
  const plan = yield* planSlices(picture.graph, picture.folded, { ...options, rail, compact });
  return { ...picture, plan, scene: yield* sceneSlices(plan, picture.placed) };
}

export interface DrawOptions extends SvgOptions, Partial<SceneOptions> {
  fold?: FoldState;
  /** false: only the drawing, without title, finding and legend. */
  sheet?: boolean;
}

/** The scene of a graph without an earlier picture: folded and laid out from the start. */
export function sceneOf(graph: Graph, options: DrawOptions = {}): Scene {
  return runSlices(drawSlices(graph, options.fold ?? {}, () => ({ measure: measureByTable, ...options }))).scene;
}

/** A wire message as SVG text. */
export function draw(wire: string, options: DrawOptions = {}): string {
  const graph = decode(wire);
  const scene = sceneOf(graph, options);
  const { sheet = true, title = "" } = options;
  return renderSvg(sheet ? sheetOf(scene, graph, measureByTable, title) : scene, options);
}
