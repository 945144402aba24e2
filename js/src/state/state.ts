/** What one view shows, and what its parts may ask of it. */

import type { ComponentChildren } from "preact";
import type { Focus } from "../picture/fold/index.ts";
import type { Graph, Root } from "../picture/model.ts";
import type { Item } from "../picture/scene/types.ts";
import type { Kernel, Link } from "./kernel.ts";
import type { Answer, Forecasts, Kept } from "./replies.ts";

export type Mode = "backward" | "retain";

export interface Preview {
  root: Root;
  mode: Mode;
  /** null: asked for, not there yet. */
  forecasts: Forecasts | null;
  problem: string;
}

export interface Running {
  request: number;
  /** "loss.backward()" */
  what: string;
  /** What it waits for, "": nothing. */
  behind: string;
}

export interface Search {
  text: string;
  hits: number[];
  at: number;
}

/** What part of the graph is drawn. */
export type Show = { what: "auto" | "all" | Focus["kind"]; from: Focus["from"] };

export interface State {
  /** The last picture from the kernel. */
  now: Graph | null;
  /** A stored picture while looking back in time. */
  past: Graph | null;
  /** Event of `past`, or of the one being fetched. */
  pastEvent: number | null;
  link: Link;
  busy: string;
  /** Name and label of each format in which the kernel writes the picture. */
  formats: readonly (readonly [string, string])[];
  /** How many nodes are being drawn, while that takes long enough to be noticed. */
  drawing: number | null;
  /** Key of the item that the inspector shows. */
  selected: string | null;
  /** Index of the chosen finding. */
  finding: number | null;
  /** Groups opened and closed by hand, by key. */
  opened: ReadonlySet<string>;
  closed: ReadonlySet<string>;
  show: Show;
  /** Nodes that were asked for by a finding; brought out like search hits. */
  spot: readonly number[] | null;
  /** Root whose line is brought out, by id. */
  highlight: number | null;
  preview: Preview | null;
  running: Running | null;
  answer: Answer | null;
  search: Search | null;
  keepGrad: boolean;
  table: boolean;
  kept: Map<number, KeptOrNot>;
}

export type KeptOrNot = Kept | "asked" | "unknown";

/** What is asked of the kernel, and stepping through the pictures that it has stored. */
export interface KernelActions {
  preview(root: Root | null, mode?: Mode): void;
  backward(root: Root, mode: Mode): void;
  /** Asks first. */
  rebuild(root: Root): void;
  cancel(): void;
  travel(event: number | null): void;
  step(by: number): void;
  cell(by: number): void;
  /** Asks once what keeps a node alive. */
  inspect(uid: number): void;
  /** Saves the picture as the kernel writes it. */
  save(format: string): void;
}

/** What a person does with the picture. */
export interface PictureActions {
  /** A click; `again`: on what is selected already. */
  press(item: Item, again?: boolean): void;
  /** Opens a closed group, closes an open one. */
  open(key: string): void;
  /** Brings nodes into view, out of closed groups too; several are marked like search hits. */
  reveal(uids: readonly number[]): void;
  /** The failing node, or the next finding. */
  failing(): void;
  /** Closes what was opened last. */
  escape(): void;
  show(what: Show["what"]): void;
  fit(): void;
  /** Lays out again, without regard to the picture on screen. */
  tidy(): void;
  export(what: "svg" | "text"): void;
  /** null: ends the search. */
  search(text: string | null): void;
  nextHit(by: number): void;
}

export interface DialogActions {
  legend(): void;
  more(): void;
  /** A question before something runs; its content has a button with `autofocus`. */
  ask(title: string, content: ComponentChildren): void;
  close(): void;
}

export interface Actions extends KernelActions, PictureActions, DialogActions {}

export interface Context {
  readonly root: HTMLElement;
  readonly signal: AbortSignal;
  readonly kernel: Kernel;
  readonly state: State;
  readonly act: Actions;
  /** Changes the state; what depends on it is drawn in the next frame. */
  set(patch: Partial<State>): void;
  /** Has the picture made again, of the same state. */
  redraw(): void;
}

/** The picture that is on screen: a stored one, or now. */
export function shown(state: State): Graph | null {
  return state.past ?? state.now;
}

/** Where in the list of events the picture on screen stands. */
export function position({ now, pastEvent }: State): number {
  const events = now?.events ?? [];
  const at = events.findIndex((event) => event.id === (pastEvent ?? now?.event));
  return at < 0 ? events.length - 1 : at;
}

export function firstState(): State {
  return {
    now: null,
    past: null,
    pastEvent: null,
    link: "asking",
    busy: "",
    formats: [],
    drawing: null,
    selected: null,
    finding: null,
    opened: new Set(),
    closed: new Set(),
    show: { what: "auto", from: null },
    spot: null,
    highlight: null,
    preview: null,
    running: null,
    answer: null,
    search: null,
    keepGrad: false,
    table: false,
    kept: new Map(),
  };
}

/** Why the buttons are off; "" when they work. */
export function whyOff(state: State, root: Root): string {
  if (state.link === "gone") return "backward() needs a kernel: run the notebook first.";
  if (state.past) return "This is a picture of the past. Go back to now to run something.";
  if (!root.alive) return "Nothing keeps this tensor any more.";
  return "";
}
