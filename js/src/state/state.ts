/** The state of one view, and the actions of its parts. */

import type { ComponentChildren } from "preact";
import type { Focus } from "../picture/fold/index.ts";
import type { Fix, Graph, Root } from "../picture/model.ts";
import type { Item } from "../picture/scene/types.ts";
import type { Guess } from "./guess.ts";
import type { Kernel, Link } from "./kernel.ts";
import type { Answer, Difference, Forecasts, Keepers, Kept } from "./replies.ts";
import type { StepSubject, Walk } from "./steps.ts";

export type Mode = "backward" | "retain";

export interface Preview {
  root: Root;
  mode: Mode;
  /** null: requested, not received yet. */
  forecasts: Forecasts | null;
  /** Whether it stays when the pointer and the focus leave its button. */
  kept: boolean;
  problem: string;
}

export interface Running {
  request: number;
  /** "loss.backward()" */
  what: string;
  /** What the call waits for; "": nothing. */
  behind: string;
}

export interface Search {
  text: string;
  hits: number[];
  at: number;
}

/** The part of the graph that is drawn. */
export type Show = { what: "auto" | "all" | Exclude<Focus["kind"], "inside">; from: number | null };

export interface Comparison {
  /** Ids of the events: the one it began at, and the one on screen, null: none yet. */
  from: number;
  to: number | null;
  /** null: asked for, or there is no second moment. */
  difference: Difference | null;
}

/** A group that is open in the lens. */
export interface Opened {
  key: string;
  title: string;
  /** Its nodes. */
  uids: ReadonlySet<number>;
  /** Whether a search opened it, which also closes it. */
  found: boolean;
}

export interface State {
  /** The last picture from the kernel. */
  now: Graph | null;
  /** The stored picture on screen, if an earlier event is shown. */
  past: Graph | null;
  /** Event of `past`, or of the stored picture that was requested. */
  pastEvent: number | null;
  link: Link;
  busy: string;
  /** Name and label of each format that the kernel can export. */
  formats: readonly (readonly [string, string])[];
  /** Number of nodes in a drawing in progress that takes noticeably long; else null. */
  drawing: number | null;
  /** Key of the selected item, which the inspector shows. */
  selected: string | null;
  /** Index of the chosen finding. */
  finding: number | null;
  /** Groups closed by hand, by key. */
  closed: ReadonlySet<string>;
  /** The groups that are open in the lens, each in the one before. */
  lens: readonly Opened[];
  show: Show;
  /** Whether older graphs are shown, too. */
  older: boolean;
  /** uids of nodes of a finding that the user wants to see; highlighted like search hits. */
  spot: readonly number[] | null;
  /** Id of the root whose line is highlighted. */
  highlight: number | null;
  preview: Preview | null;
  /** The call that is stepped through. */
  walk: Walk | null;
  /** Large, with little beside the picture, for an audience. */
  presents: boolean;
  /** What the user says that a call does. */
  guess: Guess | null;
  running: Running | null;
  answer: Answer | null;
  search: Search | null;
  /** Stretches of the timeline that the user opened, each in the one before: ids of the first and last event. */
  stretches: readonly (readonly [number, number])[];
  /** By how many px the timeline is enlarged, to show who keeps which bytes; 0: it is not. */
  enlarged: number;
  /** Who kept which bytes, and the last event that was there when it was asked for; null: not known. */
  keepers: (Keepers & { event: number }) | null;
  /** Two moments that are compared. */
  comparison: Comparison | null;
  keepGrad: boolean;
  table: boolean;
  kept: Map<number, KeptOrNot>;
}

export type KeptOrNot = Kept | "asked" | "unknown";

/** Requests to the kernel, and steps through its stored pictures. */
export interface KernelActions {
  /** Asks for a forecast; null: ends it, unless it is kept or the pointer goes to its panel. */
  preview(root: Root | null, mode?: Mode): void;
  /** Keeps the forecast of a mode; null: lets it go. */
  keepPreview(mode: Mode | null): void;
  /** Asks again for a forecast that is kept: the picture is a new one. */
  renewPreview(): void;
  backward(root: Root, mode: Mode): void;
  /** Asks the user first. */
  rebuild(root: Root): void;
  /** Runs the recorded cells again with a fix, in a process of their own. Asks the user first. */
  tryFix(fix: Fix): void;
  cancel(): void;
  travel(event: number | null): void;
  step(by: number): void;
  cell(by: number): void;
  /** Asks the kernel once for the owners of a node. */
  inspect(uid: number): void;
  /** Compares the moment on screen with all that are chosen from now on; ends it if it has begun. */
  compareMoments(): void;
  /** Asks who kept which bytes at all stored moments. */
  divide(): void;
  /** Saves the picture in a format that the kernel writes. */
  save(format: string): void;
}

/** Stepping through one call, node by node. */
export interface StepActions {
  /** Opens a call; without one, the call that the picture is about. null: ends the stepping. */
  walk(subject?: StepSubject | null): void;
  /** Goes to a position of the call. */
  stepTo(at: number): void;
  /** Lets the steps follow each other, or stops that. */
  play(): void;
  pace(pace: number): void;
}

/** Showing the view to an audience, and beside the notebook. */
export interface StageActions {
  /** Begins to present, or ends that. Views that are made later in the session begin alike. */
  present(): void;
  /** Opens JupyterLab's menu with which the view can be shown beside the notebook, or says how. */
  dock(): void;
  /** Makes a low view as high as its content. */
  full(): void;
}

/** Predicting what a call does. */
export interface GuessActions {
  /** Begins with a root, or with the selected or last one; null: ends it. */
  guess(root?: Root | null, retain?: boolean): void;
  say(patch: Partial<Pick<Guess, "fails" | "failsAt">>): void;
  /** Marks a slot, or takes the mark back. */
  mark(key: string): void;
  /** Makes the call, and compares. */
  compare(): void;
}

/** Actions on the picture. */
export interface PictureActions {
  /** A click on an item; `again`: the item is selected already. */
  press(item: Item, again?: boolean): void;
  /** Opens a closed group in the lens; closes an open one. */
  open(key: string): void;
  /** Closes the groups in the lens until this number of them is open. */
  closeLens(open: number): void;
  /** Brings nodes into view, also out of closed groups; several nodes are marked like search hits. */
  reveal(uids: readonly number[]): void;
  /** The failing node, or the next finding. */
  failing(): void;
  /**
   * Ends the search, the stepping, the forecast, the selection, the table, an open group, the comparison, an
   * opened part of the timeline or the stored picture, in this order, one per press.
   */
  escape(): void;
  show(what: Show["what"]): void;
  /** Shows older graphs, too, or leaves them out again. */
  showOlder(shown: boolean): void;
  fit(): void;
  /** Lays out again, without regard to the picture on screen. */
  tidy(): void;
  export(what: "svg" | "png" | "text"): void;
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

export interface Actions
  extends KernelActions,
    PictureActions,
    StepActions,
    GuessActions,
    StageActions,
    DialogActions {}

export interface Context {
  readonly root: HTMLElement;
  readonly signal: AbortSignal;
  readonly kernel: Kernel;
  readonly state: State;
  readonly act: Actions;
  /** Changes the state; the next frame draws what depends on the changed parts. */
  set(patch: Partial<State>): void;
  /** Draws the picture of the same state again. */
  redraw(): void;
}

/** By how many px the button and the key enlarge the timeline. */
export const ENLARGED = 190;

/** The picture that is on screen: a stored one, or now. */
export function shown(state: State): Graph | null {
  return state.past ?? state.now;
}

/** Index in the list of events of the picture on screen. */
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
    closed: new Set(),
    lens: [],
    show: { what: "auto", from: null },
    older: false,
    spot: null,
    highlight: null,
    preview: null,
    walk: null,
    guess: null,
    presents: false,
    running: null,
    answer: null,
    search: null,
    stretches: [],
    enlarged: 0,
    keepers: null,
    comparison: null,
    keepGrad: false,
    table: false,
    kept: new Map(),
  };
}

/** Why the buttons are off; "" when they work. */
export function whyOff(state: State, root: Root): string {
  if (state.link === "gone") return "backward() needs a kernel: run the notebook first.";
  if (state.past) return "This is a picture of the past. Go back to now to run something.";
  if (state.now?.status.why && root.id < 0) return state.now.status.why;
  if (!root.alive) return "Nothing keeps this tensor any more.";
  if (root.lost) return "Only the last error keeps this tensor: your program has no name for it any more.";
  return "";
}
