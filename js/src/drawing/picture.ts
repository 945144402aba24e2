/** The picture on screen: from the state to a folded graph, a scene and the canvas. */

import { type Canvas, MOST_CARDS } from "../canvas/canvas.ts";
import { LARGEST_FIT } from "../canvas/viewport.ts";
import { fontsOf, prefersCalm } from "../page/theme.ts";
import { boxOfUid, type FoldState, presentOf } from "../picture/fold/index.ts";
import { type Measure, measureAsCode, measureByFont } from "../picture/measure.ts";
import type { Graph } from "../picture/model.ts";
import { levelOf } from "../picture/scene/context.ts";
import { guessSigns } from "../picture/scene/guessing.ts";
import { unite } from "../picture/scene/rects.ts";
import type { Item, Level, SceneOptions } from "../picture/scene/types.ts";
import { choices, isAsked, slotKey } from "../state/guess.ts";
import type { Difference } from "../state/replies.ts";
import { type State, shown } from "../state/state.ts";
import type { Store } from "../state/store.ts";
import { Fitting } from "./fitting.ts";
import { type Drawing, drawn, redrawn } from "./pipeline.ts";
import { Playback } from "./playback.ts";
import type { Drawer } from "./schedule.ts";

/** Slots empty one after the other: milliseconds between two of them, and for all of them at most. */
const SLOT_MS = 60;
const ALL_SLOTS_MS = 900;
/** The nodes of a prediction are drawn one by one unless there are more. */
const MOST_ASKED = 60;

/** The height of the canvas, which may follow the picture. */
export interface CanvasHeight {
  /** The largest height that it may get, in px. */
  most(): number;
  /** Gives it this height, if it follows the picture. `still`: it may not shrink now. */
  fill(px: number, still: boolean): void;
}

/** Whether nothing of what is drawn is in the present of a graph, and no root has a name that is drawn. */
function isAnother(graph: Graph, { folded, graph: before, plan }: Drawing): boolean {
  const { mask, roots } = presentOf(graph);
  const stays = (uid: number) => {
    const node = graph.indexOf(uid);
    return node >= 0 && (mask === null || mask[node] === 1);
  };
  if (folded.boxes.some(({ nodes }) => stays(before.uid[nodes[0]!]!))) return false;
  const names = new Set(plan.flags.map(({ view }) => view.root.path));
  return !roots.some(({ path }) => names.has(path));
}

/** What to write on the cards of nodes that changed. A node that is new may have been run since: it is new. */
function changesOf({ added, freed, died }: Difference): Map<number, string> {
  const all = (uids: readonly number[], word: string) => uids.map((uid) => [uid, word] as const);
  return new Map([...all(freed, "freed"), ...all(added, "new"), ...all(died, "gone")]);
}

export class Picture implements Drawer {
  readonly fitting = new Fitting();
  /** The drawing on screen; null: none yet. */
  drawing: Drawing | null = null;
  /** Whether another picture of the view shows an item. */
  isElsewhere: (key: string) => boolean = () => false;
  readonly #root: HTMLElement;
  readonly #store: Store;
  readonly #canvas: Canvas;
  readonly #isWanted: () => boolean;
  readonly #height: CanvasHeight;
  /** Width of the code rail on screen; undefined: it is chosen anew. */
  #rail: number | undefined;
  /** Room for which the drawing on screen was made. */
  #room = { w: 0, h: 0 };
  readonly #playback: Playback;
  #measure: Measure = measureAsCode;
  /** Level of detail at the present scale; 3 is everything. */
  #level: Level = 3;
  /** Keys to bring into view after the next drawing; the first one gets the focus if `#takeFocus`. */
  #wanted: readonly string[] = [];
  #takeFocus = false;

  /** `isWanted`: whether the picture in progress is still the newest. `height`: default is that of the canvas. */
  constructor(root: HTMLElement, store: Store, canvas: Canvas, isWanted: () => boolean, height?: CanvasHeight) {
    this.#root = root;
    this.#height = height ?? { most: () => canvas.viewport.height, fill() {} };
    this.#store = store;
    this.#canvas = canvas;
    this.#isWanted = isWanted;
    this.#playback = new Playback(canvas);
  }

  /** Brings items into view after the next drawing. */
  bring(keys: readonly string[], takeFocus = false): void {
    this.#wanted = keys;
    this.#takeFocus = takeFocus;
  }

  async drawPicture(): Promise<boolean> {
    const { state } = this.#store;
    const graph = shown(state);
    const fold = this.foldState(state);
    if (!graph || !fold) return true;
    const { fitting } = this;
    if (this.hasOtherRoom()) this.#rail = undefined;
    this.#room = this.#roomNow();
    // Another graph is drawn on its own; a much smaller one may have room for everything again.
    const isOther = this.drawing !== null && isAnother(graph, this.drawing);
    if (isOther) fitting.fresh = true;
    if (isOther || (this.drawing && graph.n < this.drawing.graph.n / 2)) fitting.reset();
    const draw = () =>
      drawn(
        graph,
        { ...fold, maxBoxes: fitting.most },
        (boxes) => this.sceneOptions(state, boxes > MOST_CARDS),
        fitting.fresh ? null : this.drawing,
        this.#isWanted,
        () => this.#store.set({ drawing: graph.n }),
      );
    let drawing = await draw();
    while (drawing && fitting.leavesOut(drawing, this.#room, this.#canvas.viewport, this.#store.state))
      drawing = await draw();
    if (!drawing || !(await this.#show(drawing, this.#delays(graph), !fitting.fresh))) return false;
    this.#store.amend({ drawing: null });
    this.#fill(drawing, isOther);
    fitting.fresh = false;
    // Fewer cards may be elements now instead of a bitmap; elements do not pick their level of detail themselves.
    const isSmall = this.#canvas.big && drawing.folded.boxes.length <= MOST_CARDS;
    return isSmall && this.#level < 3 ? this.#redraw(drawing) : true;
  }

  async drawLook(): Promise<boolean> {
    if (!this.drawing) return true;
    if (!this.#canvas.big) return this.#redraw(this.drawing);
    this.#canvas.ringHits(this.#hits().map((uid) => this.keyOf(uid)));
    this.#bringWanted();
    return true;
  }

  /** Sets the level of detail after a move of the camera. True if the marks have to be drawn again. */
  changesLevel(): boolean {
    const level = levelOf(this.#canvas.viewport.scale);
    if (level === this.#level) return false;
    this.#level = level;
    if (this.#canvas.big) this.#canvas.look();
    return !this.#canvas.big;
  }

  /** Measures text with a canvas once the style sheet names the fonts. True at the first time. */
  measureFonts(): boolean {
    const context = document.createElement("canvas").getContext?.("2d");
    if (!context || this.#measure !== measureAsCode) return false;
    const width = (words: string, font: string) => {
      context.font = font;
      return context.measureText(words).width;
    };
    this.#measure = measureByFont(width, fontsOf(this.#root));
    return true;
  }

  /** Shows the position of the step-through, at once. */
  showStep(): void {
    const { walk, past, now } = this.#store.state;
    // A recorded call is shown on the picture before it, which may not be drawn yet.
    const isOn = this.drawing?.graph === (walk?.steps?.past ? past : now);
    this.#playback.show(isOn ? this.drawing : null, walk, prefersCalm());
  }

  /** Draws the marks of the prediction, at once. */
  showGuess(): void {
    const { guess, now } = this.#store.state;
    if (!guess || !now || this.drawing?.graph !== now) {
      this.#canvas.guess([]);
      return;
    }
    const { result, frees, failsAt } = guess;
    const verdicts =
      result && new Map(result.marks.map(([uid, position, verdict]) => [slotKey(uid, position), verdict]));
    const nodes = choices(now).map(({ uid }) => uid);
    const signs = { nodes, marked: frees, failsAt, verdicts, failsRight: result ? result.failsAt : null };
    this.#canvas.guess(guessSigns(now, this.#canvas.byKey, signs));
  }

  /** Key of the card of a node, or of the closed group that contains it. */
  keyOf(uid: number): string {
    const box = this.drawing?.folded.boxes[boxOfUid(this.drawing, uid)];
    return box?.key ?? `n${uid}`;
  }

  /** Draws the same boxes with other options. */
  async #redraw(drawing: Drawing): Promise<boolean> {
    const again = await redrawn(drawing, this.sceneOptions(this.#store.state, this.#canvas.big), this.#isWanted);
    return again !== null && this.#show(again, null);
  }

  /** Width of the canvas, and its largest height. */
  #roomNow() {
    return { w: this.#canvas.viewport.width, h: Math.max(1, this.#height.most()) };
  }

  /** Free room left of the drawing on screen, in px of the drawing. */
  #left(): number {
    const { x, scale } = this.#canvas.viewport;
    const content = this.drawing?.space.content.x ?? 0;
    return Math.max(0, Math.floor(content + x / scale));
  }

  /** Whether the canvas has another room than the one for which the drawing on screen was made. */
  hasOtherRoom(): boolean {
    const { w, h } = this.#roomNow();
    return w !== this.#room.w || h !== this.#room.h;
  }

  /** Lets the height of the view follow the drawing. While something runs it does not shrink. */
  #fill({ space: { content } }: Drawing, isOther: boolean): void {
    const scale = Math.min(LARGEST_FIT, this.#room.w / content.w);
    const runs = this.#store.state.now?.status.state === "busy";
    this.#height.fill(content.h * scale, runs || !isOther);
  }

  async #show(drawing: Drawing, delays: Map<number, number> | null, steady = true): Promise<boolean> {
    const options = { delays, calm: prefersCalm(), wanted: this.#isWanted, steady };
    if (!(await this.#canvas.draw(drawing.space, drawing.graph, options))) return false;
    this.drawing = drawing;
    this.#rail = drawing.scene.rail;
    const { selected } = this.#store.state;
    if (selected !== null && !this.#canvas.byKey.has(selected) && !this.isElsewhere(selected))
      this.#store.amend({ selected: null });
    this.#canvas.select(this.#store.state.selected);
    this.#bringWanted();
    this.showStep();
    this.showGuess();
    return true;
  }

  /** Brings the wanted items into view. */
  #bringWanted(): void {
    const items = this.#wanted.flatMap((key) => this.#itemsOf(key));
    const [first] = items;
    if (first) {
      if (this.#takeFocus) this.#canvas.focus(first.key);
      this.#canvas.viewport.show(unite(items));
    }
    this.bring([]);
  }

  /** The item of a key; for an open group the items inside. */
  #itemsOf(key: string): Item[] {
    const { byKey } = this.#canvas;
    const item = byKey.get(key);
    if (item) return [item];
    const inside = this.drawing?.folded.boxes.filter((box) => box.parent === key) ?? [];
    return inside.flatMap((box) => byKey.get(box.key) ?? []);
  }

  /** What is drawn; null: nothing. */
  protected foldState({ closed, spot, show, older, guess, now, comparison }: State): FoldState | null {
    const { what, from } = show;
    const asked = guess && now ? choices(now).map(({ uid }) => uid) : [];
    const visible = [...(spot ?? []), ...(asked.length <= MOST_ASKED ? asked : [])];
    const fold: FoldState = { closed, visible, older, expandAll: what === "all" };
    // What has died since the first moment belongs to older graphs.
    if (comparison?.difference) fold.older = true;
    if (what !== "auto" && what !== "all" && (what === "freed" || from !== null)) fold.focus = { kind: what, from };
    return fold;
  }

  /** `big`: drawn as a bitmap, which gets all details and picks its own level. */
  protected sceneOptions({ preview, highlight, search, walk, guess, comparison }: State, big: boolean): SceneOptions {
    const hits = this.#hits();
    const { drawing } = this;
    const { low, width } = this.#root.dataset;
    const compact = low !== undefined || width === "compact";
    return {
      measure: this.#measure,
      level: big ? 3 : this.#level,
      ...this.fitting.options,
      ...(compact && { compact: true, dense: false }),
      room: this.#room,
      seen: this.fitting.fresh || !drawing ? undefined : unite([drawing.space.content, this.#canvas.viewport.seen()]),
      railWidth: this.fitting.fresh || !this.#rail ? undefined : { least: this.#rail, most: this.#rail + this.#left() },
      // A low view is to be read; its buttons would take the room of the picture.
      buttons: low === undefined,
      asks: isAsked(guess),
      forecast: walk || guess ? null : (preview?.forecasts?.[preview.mode] ?? null),
      hits: hits.length > 0 ? new Set(hits) : null,
      hit: search?.hits[search.at] ?? null,
      onlyRoot: highlight,
      changes: comparison?.difference ? changesOf(comparison.difference) : null,
    };
  }

  /** Highlighted uids: the hits of a search, else the nodes of a chosen finding. */
  #hits(): readonly number[] {
    const { search, spot } = this.#store.state;
    if (search && search.hits.length > 0) return search.hits;
    return spot && spot.length > 1 ? spot : [];
  }

  /** Delays in ms by uid, for a new call: its slots empty in the engine's order. */
  #delays(graph: Graph): Map<number, number> | null {
    const before = this.drawing?.graph;
    const call = graph.calls.at(-1);
    const known = before?.calls.some(({ n, result }) => n === call?.n && result === call.result);
    if (!before || known || !call?.executed?.length) return null;
    const pace = Math.min(SLOT_MS, ALL_SLOTS_MS / call.executed.length);
    return new Map(call.executed.map((uid, i) => [uid, i * pace]));
  }
}
