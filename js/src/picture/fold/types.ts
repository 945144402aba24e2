/** What a folded graph is: the boxes to draw, and which node is in which. */
import type { CodeLine, Graph } from "../model.ts";

export interface Box {
  /** "n<uid>" for a node, else "g..." from cell, iteration, module, line and ordinal: the same in the next snapshot. */
  key: string;
  /** Role in the code (cell, line, module, ordinal, op): the same for the node that takes this one's place when the cell runs again. */
  seat: string;
  kind: "node" | "group" | "repeat" | "chain";
  /** Nodes inside, newest last; for a node box the node itself first. Without leaves and parameter preparation. */
  nodes: Int32Array;
  title: string;
  subtitle: string;
  /** The line that made it: that of all its nodes, else the one that called them all. */
  line: CodeLine | undefined;
  /** Function nodes inside, parameter preparation included. */
  count: number;
  /** Leaf nodes drawn as badges, in the order of use. A leaf is on every box that uses it. */
  leaves: Int32Array;
  /** Of the saved tensors held inside, once per storage. */
  bytes: number;
  /** Key of the innermost open group around it, null at the top. */
  parent: string | null;
  /** How many equal units a repeat has, else 1. */
  times: number;
}

/** A group that is open: the hull around its boxes. */
export interface OpenGroup {
  key: string;
  title: string;
  parent: string | null;
  /** Opened by the user: gets a hull of its own, with its name and a way to close it. */
  byHand: boolean;
}

export interface Folded {
  boxes: Box[];
  /** Pairs of boxes: from (towards the loss), to (towards the inputs); each pair once. */
  edges: Int32Array;
  /** Node -> visible box; -1: drawn as a badge of another, or left out by the focus. */
  boxOf: Int32Array;
  /** Open groups, outer ones first. */
  open: OpenGroup[];
  /** What the next picture begins with. */
  standing: Standing | undefined;
}

/** How much of a group is shown: nothing, only what is wanted, its children where they are few, or all of them. */
export type Openness = "closed" | "reveal" | "open" | "all";

/** The default view before the user opened and closed anything. */
export interface Standing {
  graph: Graph;
  /** By the key of each group or node that was reached. null: the graph was small, every node was shown. */
  groups: ReadonlyMap<string, Openness> | null;
}

/** The box that a node is in, -1: none. */
export function boxOfUid({ graph, folded }: { graph: Graph; folded: Folded }, uid: number | null): number {
  return folded.boxOf[graph.indexOf(uid)] ?? -1;
}

/** What the user wants to see. Everything is optional: `{}` is the default view. */
export interface FoldState {
  opened?: ReadonlySet<string>;
  closed?: ReadonlySet<string>;
  /** No folding at all. */
  expandAll?: boolean;
  /** Most boxes of the default view; what was opened by hand comes on top. */
  maxBoxes?: number;
  /** uids that must be seen, the most important first: failing node, carriers, shared border, roots, findings. */
  visible?: readonly number[];
  focus?: Focus;
  /** Of the picture before: groups stay as they stood as long as the picture has room, so that nothing jumps. */
  standing?: Standing;
}

/** `from`: the uid that "around" and "root" start at, the number of the "cell". */
export interface Focus {
  kind: "around" | "freed" | "root" | "cell";
  from: number | null;
}
