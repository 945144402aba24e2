/** A folded graph: the boxes to draw, and the box of each node. */
import type { CodeLine, Graph, Root } from "../model.ts";

export interface Box {
  /** "n<uid>" for a node, else "g..." from cell, iteration, module, line and ordinal: the same in the next snapshot. */
  key: string;
  /**
   * Role in the code (cell, line, module, ordinal, op). When the cell runs again, the node that replaces this one has
   * the same seat.
   */
  seat: string;
  kind: "node" | "group" | "repeat" | "chain";
  /** Nodes inside, newest last; for a node box the node itself first. Without leaves and parameter preparation. */
  nodes: Int32Array;
  title: string;
  subtitle: string;
  /** The line that made all its nodes, else the line that called all of them. */
  line: CodeLine | undefined;
  /** Function nodes inside, parameter preparation included. */
  count: number;
  /** Leaf nodes that are drawn as badges of this box, in the order of use. Every box that uses a leaf has it. */
  leaves: Int32Array;
  /** Bytes of the saved tensors held inside; each storage counts once. */
  bytes: number;
  /** Key of the innermost open group around it, null at the top. */
  parent: string | null;
  /** Number of equal units of a repeat; else 1. */
  times: number;
}

/** An open group: its boxes are shown in its place. */
export interface OpenGroup {
  key: string;
  title: string;
  parent: string | null;
}

export interface Folded {
  boxes: Box[];
  /** Pairs of boxes: from (towards the loss), to (towards the inputs); each pair once. */
  edges: Int32Array;
  /** Node -> visible box; -1: drawn as a badge of another, or left out by the focus. */
  boxOf: Int32Array;
  /** Open groups, outer ones first. */
  open: OpenGroup[];
  /** The default view, with which the next picture begins. */
  standing: Standing | undefined;
  /** What is present, and which older graphs are left out. */
  present: Present;
}

/** Shown children of a group: none, only the wanted ones, all if they are few, or always all. */
export type Openness = "closed" | "reveal" | "open" | "all";

/** The default view before the user closed anything. */
export interface Standing {
  graph: Graph;
  /** State of each group and node in the picture, by key. null: the graph was small, every node was shown. */
  groups: ReadonlyMap<string, Openness> | null;
}

/** The box that contains the node of a uid, -1: none. */
export function boxOfUid({ graph, folded }: { graph: Graph; folded: Folded }, uid: number | null): number {
  return folded.boxOf[graph.indexOf(uid)] ?? -1;
}

/** The part of the graph that the default view shows, as present.ts decides. */
export interface Present {
  /** The newest cell that made or ran something; null: unknown, then all is present. */
  cell: number | null;
  /** 1 for every node of the present; null: all nodes are. */
  mask: Uint8Array | null;
  /** The roots of the present. */
  roots: readonly Root[];
  /** The roots of older graphs, the newest first. */
  older: readonly Root[];
}

/** What the user wants to see. All fields are optional: `{}` is the default view. */
export interface FoldState {
  closed?: ReadonlySet<string>;
  /** No folding at all. */
  expandAll?: boolean;
  /** Largest number of boxes in the default view. */
  maxBoxes?: number;
  /** uids that must be visible, the most important first: failing node, carriers, shared border, roots, findings. */
  visible?: readonly number[];
  focus?: Focus;
  /** Show older graphs, too. */
  older?: boolean;
  /** From the picture before: groups stay open or closed while there is room, so that nothing jumps. */
  standing?: Standing;
}

/** `from`: the start uid of "around" and "root", or the number of the "cell". `uids`: the nodes of "inside". */
export type Focus =
  | { kind: "around" | "freed" | "root" | "cell"; from: number | null }
  | { kind: "inside"; uids: ReadonlySet<number> };
