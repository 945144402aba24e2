/** The whole way from a wire message to a static picture; also bundled alone, for engines without a page. */

import type { FoldState } from "./fold/index.ts";
import { fold } from "./fold/index.ts";
import { layout } from "./layout/index.ts";
import { measureByTable } from "./measure.ts";
import type { Graph } from "./model.ts";
import { buildScene, importantUids, layoutInput, planScene, type Scene, type SceneOptions } from "./scene.ts";
import { withStory } from "./story.ts";
import { renderSvg, type SvgOptions } from "./svg.ts";
import { decode } from "./wire.ts";

export interface DrawOptions extends SvgOptions, Partial<SceneOptions> {
  fold?: FoldState;
  /** False: the drawing without the finding's sentences below it. */
  story?: boolean;
}

/** The scene of a graph at rest: folded, laid out afresh. */
export function sceneOf(graph: Graph, options: DrawOptions = {}): Scene {
  const folded = fold(graph, { visible: importantUids(graph), ...options.fold });
  const plan = planScene(graph, folded, { measure: measureByTable, ...options });
  return buildScene(plan, layout(layoutInput(plan)));
}

/** A wire message as SVG text. */
export function draw(wire: string, options: DrawOptions = {}): string {
  const graph = decode(wire);
  const scene = sceneOf(graph, options);
  return renderSvg(options.story === false ? scene : withStory(scene, graph, measureByTable), options);
}
