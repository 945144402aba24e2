/**
 * From a graph, its folding and its layout to a list of things to draw. Pure: no DOM, no theme.
 *
 * Three steps, so that a page can run the middle one in slices:
 *
 *     const plan = planScene(graph, fold(graph, state), options);   // how large is every box
 *     const placed = layout(layoutInput(plan, previous));           // where does it stand
 *     const scene = buildScene(plan, placed);                       // what is drawn
 */

import type { Box, Folded } from "./fold/index.ts";
import type { LayoutInput, LayoutOutput } from "./layout/index.ts";
import type { Measure } from "./measure.ts";
import type { Graph, Root } from "./model.ts";

/** One drawn shape, relative to its item. `c`: class names of tokens.ts, separated by spaces. */
export type Mark =
  | { t: "rect"; x: number; y: number; w: number; h: number; r?: number; c: string }
  | { t: "path"; d: string; c: string }
  | { t: "circle"; x: number; y: number; r: number; c: string }
  | {
      t: "text";
      x: number;
      y: number;
      /** The whole text. */
      s: string;
      c: string;
      anchor?: "start" | "middle" | "end";
      /** Parts in a style of their own; together they are `s`. Each `c` is added to the classes of the mark. */
      runs?: { s: string; c: string }[];
      /** Read upwards, turned about x, y. */
      turned?: boolean;
    };

export type Role =
  | "hull"
  | "boundary"
  | "wire"
  | "rail"
  | "leaf"
  | "node"
  | "group"
  | "root"
  | "note"
  | "tag"
  | "octagon";

/** A backward button under a live root, to be placed over the drawing: x, y are relative to the item. */
export interface ButtonBox {
  verb: "backward" | "retain";
  /** What stands on it: `backward()`, `retain_graph`. */
  text: string;
  /** Its accessible name: `loss.backward()`, `loss.backward(retain_graph=True)`. */
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

/** A saved tensor on a card: where it stands (relative to the item) and its position in the graph's slot columns. */
export interface SlotBox {
  slot: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Something drawn, and what a pointer, a key or a screen reader can do with it. */
export interface Item {
  /** Stable across scenes: `n<uid>`, a group's key, `root<id>`, ... */
  key: string;
  role: Role;
  /** Of the node; of the node on which a tag, a leaf or an octagon sits. */
  uid?: number;
  /** Position of that node in the graph's columns. */
  index?: number;
  /** Root id, for role "root" and for wires of one root. */
  root?: number;
  x: number;
  y: number;
  w: number;
  h: number;
  marks: Mark[];
  /** Accessible name. */
  label?: string;
  /** Attributes without their "data-". */
  data?: Record<string, string>;
  buttons?: ButtonBox[];
  slots?: SlotBox[];
}

export interface Scene {
  width: number;
  height: number;
  /** In drawing order. */
  items: Item[];
}

/** What a backward call would do, to be drawn over what is. */
export interface ForecastOverlay {
  /** uids in engine order. */
  executes: readonly number[];
  /** [uid, position of the saved tensor within its node]. */
  frees: readonly (readonly [number, number])[];
  failsAt: number | null;
  /** Beside the dashed octagon; "would raise" by default. */
  note?: string;
  /** Root id of the button that asked. */
  root?: number;
}

export interface SceneOptions {
  measure: Measure;
  /** At which scale the scene will be looked at: picks the level of detail. Default 1. */
  scale?: number;
  /** One-line cards. */
  compact?: boolean;
  /** Leave room for the two buttons under each live root. */
  buttons?: boolean;
  /** False: never draw the code rail. */
  rail?: boolean;
  /** Keys of items. */
  selected?: string | null;
  focus?: string | null;
  /** uids that a search found, and the one it stands on; the rest is dimmed. */
  hits?: ReadonlySet<number> | null;
  hit?: number | null;
  /** uid of the node that a step-through stands on. */
  running?: number | null;
  forecast?: ForecastOverlay | null;
  /** Root id: the lines of the others are dimmed. */
  onlyRoot?: number | null;
}

/** How many px a box needs and what belongs where inside; made once, used by the layout and by the drawing. */
export interface Plan {
  graph: Graph;
  folded: Folded;
  options: SceneOptions;
  /** Keys of the laid-out boxes: those of `folded`, then one for each root's flag. */
  keys: string[];
  width: Float32Array;
  height: Float32Array;
}

export declare function planScene(graph: Graph, folded: Folded, options: SceneOptions): Plan;
/** `previous`: centres by key, from `positions`, so that nothing jumps. */
export declare function layoutInput(plan: Plan, previous?: ReadonlyMap<string, readonly [number, number]>): LayoutInput;
export declare function positions(plan: Plan, placed: LayoutOutput): Map<string, readonly [number, number]>;
export declare function buildScene(plan: Plan, placed: LayoutOutput): Scene;
export type { Box, Root };
