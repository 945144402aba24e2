/** What a scene is made of, and what it can be asked for. */

import type { Box } from "../fold/index.ts";
import type { Mark, SlotLook } from "../marks.ts";
import type { Measure } from "../measure.ts";
import type { Root } from "../model.ts";
import type { Rect } from "./rects.ts";

export type Role =
  | "hull"
  | "boundary"
  | "wire"
  | "rail"
  | "leaf"
  | "node"
  | "group"
  | "open"
  | "root"
  | "note"
  | "tag"
  | "octagon";

/** Something drawn, and what a pointer, a key or a screen reader can do with it. */
export interface Item {
  /** Stable across scenes: `n<uid>`, a group's key, `root<id>`, ... */
  key: string;
  role: Role;
  /** Of the node; of the node on which a tag, a leaf or an octagon sits. */
  uid?: number;
  /** Position of that node in the graph's columns. */
  index?: number;
  /** Root id, for role "root" and the line under it. */
  root?: number;
  x: number;
  y: number;
  w: number;
  h: number;
  marks: Mark[];
  /** Accessible name of what can have the focus. */
  label?: string;
  /** Attributes without their "data-". */
  data?: Record<string, string>;
  /** Room for the backward buttons under a live root, relative to the item. */
  buttons?: Rect | undefined;
}

export interface Scene {
  /** Top left corner; 0, 0 unless the layout was held at earlier places. */
  left: number;
  top: number;
  width: number;
  height: number;
  /** In drawing order. */
  items: Item[];
  /** From now on cards, leaves and wires have the marks for this scale. Their places stay. */
  look(scale: number): void;
}

/** What a backward call would do, to be drawn over what is. */
export interface ForecastOverlay {
  /** [uid, position of the saved tensor within its node]. */
  frees: readonly (readonly [number, number])[];
  failsAt: number | null;
}

export interface SceneOptions {
  measure: Measure;
  /** Default 3: everything is written out. */
  level?: Level;
  /** One-line cards. */
  compact?: boolean;
  /** Leave room for the two buttons under each live root. */
  buttons?: boolean;
  /** False: never draw the code rail. */
  rail?: boolean;
  /** uids that a search found, and the one it stands on; the rest is dimmed. */
  hits?: ReadonlySet<number> | null;
  hit?: number | null;
  forecast?: ForecastOverlay | null;
  /** Root id: the lines of the others are dimmed. */
  onlyRoot?: number | null;
}

/** How a root is drawn wherever it appears. */
export interface RootView {
  root: Root;
  /** Its bit in reach masks; 0: there are too many roots for it to have a line. */
  bit: number;
  /** Class that carries the hue. */
  hue: string;
  /** Stroke style, 1 to 4. */
  style: number;
  gone: boolean;
  /** Beside the name where other roots have the same: `iteration 1`. */
  sub: string;
}

/** 3: everything; 2: names and states; 1: states; 0: a bar per box. */
export type Level = 0 | 1 | 2 | 3;

export interface LeafPart {
  nodes: number[];
  text: string;
  w: number;
  /** Relative to the card; set once there is a place for it. */
  x: number;
  y: number;
}

export interface SlotText {
  slot: number;
  look: SlotLook;
  name: string;
  bytes: string;
  freedBy: number;
}

/** What a card says, before it is known how much of it fits. */
export interface Card {
  box: Box;
  w: number;
  h: number;
  stripes: RootView[];
  /** Op name without its suffix, and the suffix; or a group's title. */
  title: string;
  suffix: string;
  note: string;
  slots: SlotText[];
  /** Call that freed all freed slots; -1: none, or several. */
  freedBy: number;
  /** Saved tensors by state. */
  counts: number[];
  /** How many saved tensors have each look, without those that are not drawn. */
  looks: [SlotLook, number][];
  oneLine: boolean;
  leaves: LeafPart[];
  leavesAbove: boolean;
}
