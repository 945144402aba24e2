/** The parts of a scene, and its options. */

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
  | "root"
  | "note"
  | "tag"
  | "octagon";

/** Something drawn, with the data that pointers, keys and screen readers need. */
export interface Item {
  /** Stable across scenes: `n<uid>`, a group's key, `root<id>`, ... */
  key: string;
  role: Role;
  /** uid of the node; for a tag, a leaf or an octagon of the node that it belongs to. */
  uid?: number;
  /** Index of that node in the graph's columns. */
  index?: number;
  /** Root id, for role "root" and the line under it. */
  root?: number;
  x: number;
  y: number;
  w: number;
  h: number;
  marks: Mark[];
  /** Accessible name; only for items that can have the focus. */
  label?: string;
  /** Data attributes, without the prefix "data-". */
  data?: Record<string, string>;
  /** Room for the backward buttons under a live root, relative to the item. */
  buttons?: Rect | undefined;
  /** Where each saved tensor of a card is drawn, relative to the item; none where they are not drawn one by one. */
  slots?(): SlotPlace[];
  /** Lets the marks be made again from what the graph holds by now. */
  renew?(): void;
}

export interface SlotPlace extends Rect {
  slot: number;
}

export interface Scene {
  /** Top left corner; 0, 0 unless the layout kept earlier places. */
  left: number;
  top: number;
  width: number;
  height: number;
  /** In drawing order. */
  items: Item[];
  /** Width of the code rail; 0: there is none. */
  rail: number;
  /** Gives cards, leaves and wires the marks for this scale. Their places stay. */
  look(scale: number): void;
}

/** Effects of a backward call that was forecast, drawn over the present state. */
export interface ForecastOverlay {
  /** Slots that it would free: [uid, position of the slot within its node]. */
  frees: readonly (readonly [number, number])[];
  failsAt: number | null;
}

export interface SceneOptions {
  measure: Measure;
  /** Level of detail; default 3: everything is written out. */
  level?: Level;
  /** Two-line cards with less room between them. */
  dense?: boolean;
  /** One-line cards. */
  compact?: boolean;
  /** The scale at which it will be drawn, about: buttons keep their size on screen. Default 1. */
  scale?: number;
  /** Size of the view in px, to fill it; absent: unknown. */
  room?: { w: number; h: number };
  /** The part of the picture on screen: a note that stands in it moves nothing. Absent: nothing is on screen yet. */
  seen?: Rect | undefined;
  /** Whether to leave room for the two buttons under each live root. */
  buttons?: boolean;
  /** false: never draw the code rail. */
  rail?: boolean;
  /** Graphs that share nothing stand below each other where they are wider than this together, in px. */
  widest?: number | undefined;
  /**
   * The width that the rail has, and the largest that it can have while the picture stays where it is, in px: a longer
   * line of code must not move anything.
   */
  railWidth?: { least: number; most: number } | undefined;
  /** The inside of a group: roots outside of it have their lines here, too, and bytes are drawn as bars. */
  inner?: boolean;
  /** uids that a search found, and its current hit; all else is dimmed. */
  hits?: ReadonlySet<number> | null;
  hit?: number | null;
  forecast?: ForecastOverlay | null;
  /** uid -> what happened to a node between two moments that are compared: "new", "freed", "gone". */
  changes?: ReadonlyMap<number, string> | null;
  /** Somebody predicts what a call does: nothing that gives it away is drawn. */
  asks?: boolean;
  /** Id of a root; the lines of other roots are dimmed. */
  onlyRoot?: number | null;
}

/** How a root is drawn wherever it appears. */
export interface RootView {
  root: Root;
  /** Its bit in reach masks; 0: there are too many roots, and this one has no line. */
  bit: number;
  /** Class that carries the hue. */
  hue: string;
  /** Stroke style, 1 to 4. */
  style: number;
  gone: boolean;
  /** Text beside the name if other roots have the same name: `iteration 1`. */
  sub: string;
}

/** 3: everything; 2: names and states; 1: states; 0: a bar per box. */
export type Level = 0 | 1 | 2 | 3;

export interface LeafPart {
  nodes: number[];
  text: string;
  w: number;
  /** Position relative to the card; set when a place is found. */
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

/** The full content of a card; how much of it fits is decided when it is drawn. */
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
  /** n of the call that freed all freed slots; -1: none, or several. */
  freedBy: number;
  /** Number of saved tensors in each state. */
  counts: number[];
  /** Number of saved tensors with each look, without those that are not drawn. */
  looks: [SlotLook, number][];
  oneLine: boolean;
  leaves: LeafPart[];
  leavesAbove: boolean;
}
