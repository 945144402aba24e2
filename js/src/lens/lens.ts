/**
 * The lens: a second drawing, beside the first, of what is inside a closed group.
 *
 * The first drawing stays as it is; a wedge leads from the group's card to the lens. A group that is opened inside
 * takes the place of the one around it.
 */

import { Canvas, type CanvasEvents } from "../canvas/canvas.ts";
import { Picture } from "../drawing/picture.ts";
import type { Drawing } from "../drawing/pipeline.ts";
import { Schedule } from "../drawing/schedule.ts";
import { setAttribute, svg } from "../page/elements.ts";
import type { Box, FoldState } from "../picture/fold/index.ts";
import type { SceneOptions } from "../picture/scene/types.ts";
import { type Opened, type State, shown } from "../state/state.ts";
import type { Need, Store } from "../state/store.ts";

/** The lens takes what the first drawing leaves, within these limits: a share of the width, and px. */
const SHARE = 0.62;
const LEAST = 320;
const MARGIN = 6;
/** In a narrower view it takes all. */
const NARROW = 520;

class InnerPicture extends Picture {
  protected override foldState({ lens, search, spot }: State): FoldState | null {
    const open = lens.at(-1);
    if (!open) return null;
    const hit = search?.hits[search.at];
    return {
      focus: { kind: "inside", uids: open.uids },
      visible: [...(spot ?? []), ...(hit === undefined ? [] : [hit])],
    };
  }

  protected override sceneOptions(state: State, big: boolean): SceneOptions {
    return { ...super.sceneOptions(state, big), rail: false, buttons: false, inner: true };
  }
}

export class Lens {
  readonly canvas: Canvas;
  readonly picture: Picture;
  /** From the card of the group to the lens. */
  readonly wedge = svg("svg", { class: "gw-wedge", "aria-hidden": "true" });
  readonly #store: Store;
  readonly #main: { canvas: Canvas; picture: Picture };
  readonly #schedule: Schedule;
  readonly #shape = svg("path", {});
  /** The trail for which it was drawn last. */
  #drawn: readonly Opened[] = [];
  #width = 0;
  /** Whether the focus goes into the lens once it is drawn. */
  #enters = false;

  constructor(
    root: HTMLElement,
    signal: AbortSignal,
    store: Store,
    main: { canvas: Canvas; picture: Picture },
    events: Pick<CanvasEvents, "press" | "open" | "mark" | "background">,
    changed: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#main = main;
    this.#schedule = new Schedule(
      signal,
      () => this.picture,
      () => {
        this.#enter();
        changed();
      },
      failed,
      (on) => this.canvas.draws(on),
    );
    this.canvas = new Canvas(root, signal, {
      ...events,
      moved: () => {
        if (this.picture.changesLevel()) this.#schedule.ask("look");
      },
      resized: () => {
        this.picture.measureFonts();
        this.picture.fitting.reset();
        this.ask("picture");
      },
    });
    this.picture = new InnerPicture(root, store, this.canvas, this.#schedule.isWanted);
    this.picture.isElsewhere = (key) => main.canvas.byKey.has(key);
    main.picture.isElsewhere = (key) => this.has(key);
    this.wedge.append(this.#shape);
  }

  get #trail(): readonly Opened[] {
    return this.#store.state.lens;
  }

  /** Whether an item is drawn in it. */
  has(key: string): boolean {
    return this.#trail.length > 0 && this.canvas.byKey.has(key);
  }

  /** Draws again after a change of the view's state. */
  ask(need: Need): void {
    if (this.#trail.length > 0 && need !== "panels") this.#schedule.ask(need);
  }

  /** Opens a closed group, of the lens or of the first drawing; goes into it if it is open. `found`: for a search. */
  open(key: string, found = false): void {
    // The second click of a double click may have opened it.
    if (this.#trail.at(-1)?.key === key) {
      this.#enters = !found;
      this.#enter();
      return;
    }
    const inner = this.#trail.length > 0 ? closedGroup(this.picture, key) : undefined;
    const group = inner ?? closedGroup(this.#main.picture, key);
    if (!group) return;
    this.#enters = !found;
    this.picture.fitting.reset();
    this.picture.fitting.fresh = true;
    Object.assign(this.canvas.viewport, { taken: false, fits: false });
    this.#store.set({ lens: [...(inner ? this.#trail : []), { ...group, found }], selected: null });
  }

  /** Opens the group in which the first drawing hides a node, for a search. False: it hides it in none. */
  find(uid: number): boolean {
    const { drawing } = this.#main.picture;
    const box = drawing ? boxAround(drawing, drawing.graph.indexOf(uid)) : undefined;
    if (!box || box.kind === "node") return false;
    if (this.#trail.length === 1 && this.#trail[0]!.key === box.key) this.#schedule.ask("picture");
    else {
      this.#store.amend({ lens: [] });
      this.open(box.key, true);
    }
    this.picture.bring([`n${uid}`]);
    return true;
  }

  /** Leaves this number of groups open. The focus goes back to the card that was opened. */
  close(open: number): void {
    const trail = this.#trail;
    const closed = trail[open];
    if (!closed) return;
    this.#enters = open > 0;
    this.picture.fitting.reset();
    this.picture.fitting.fresh = true;
    this.#store.set({ lens: trail.slice(0, open), selected: null });
    if (open > 0) this.picture.bring([closed.key], true);
    else if (!closed.found) this.#main.canvas.focus(closed.key);
  }

  /** Follows the state and the first drawing; called whenever one of them may have changed. */
  follow(): void {
    const trail = this.#present();
    if (trail !== this.#trail) this.#store.set({ lens: trail });
    if (trail !== this.#drawn) {
      this.#drawn = trail;
      this.ask("picture");
    }
    this.place();
  }

  /** Moves the wedge, and keeps the first drawing beside the lens. */
  place(): void {
    const { canvas } = this.#main;
    const [first] = this.#trail;
    const { clientWidth: width, clientHeight: height } = canvas.element;
    if (!first || width < NARROW) this.#width = 0;
    else this.#width ||= this.#widthBeside(width);
    const lens = this.#width;
    canvas.cover(lens && lens + MARGIN);
    const item = first && lens ? canvas.byKey.get(first.key) : undefined;
    setAttribute(this.wedge, "hidden", !item);
    if (!item) return;
    const { scale } = canvas.viewport;
    const [x, y] = canvas.viewport.toScreen(item.x + item.w, item.y);
    const left = width - lens - MARGIN;
    const d = x < left ? `M${x} ${y}L${left} ${MARGIN}V${height - MARGIN}L${x} ${y + item.h * scale}Z` : "";
    setAttribute(this.#shape, "d", d);
  }

  /** Width of the lens in px; 0: it is closed, or there is no room beside it. */
  get width(): number {
    return this.#width;
  }

  #widthBeside(width: number): number {
    const { space, viewport } = this.#main.canvas;
    const left = width - space.content.w * viewport.scale - 2 * MARGIN;
    return Math.round(Math.max(LEAST, Math.min(SHARE * width, left)));
  }

  /** The groups that are open and still there, with the nodes that they have now. */
  #present(): readonly Opened[] {
    const graph = shown(this.#store.state);
    const trail = this.#trail;
    if (!graph || trail.length === 0) return trail;
    const [first] = trail;
    const now = closedGroup(this.#main.picture, first!.key);
    const isNewest = this.#main.picture.drawing?.graph === graph;
    if (now && isNewest && !sameNodes(first!, now)) return [{ ...now, found: first!.found }];
    const gone = trail.findIndex(({ uids }) => ![...uids].some((uid) => graph.indexOf(uid) >= 0));
    return gone < 0 ? trail : trail.slice(0, gone);
  }

  /** After a drawing: the focus goes in, and the card of the group stays in sight. */
  #enter(): void {
    const [first] = this.#trail;
    const item = first && this.#main.canvas.byKey.get(first.key);
    if (item) this.#main.canvas.viewport.show(item);
    if (!this.#enters || !this.canvas.focusKey) return;
    this.#enters = false;
    this.canvas.focus(this.canvas.focusKey);
  }
}

/** The box that a node is in; of a leaf, or of what only prepares one, the box of its user. */
function boxAround({ graph, folded }: Drawing, index: number): Box | undefined {
  const { edgeStart, edgeTo } = graph;
  for (let node = index; node >= 0; ) {
    const box = folded.boxes[folded.boxOf[node]!];
    if (box) return box;
    const edge = edgeTo.indexOf(node);
    node = edge < 0 ? -1 : edgeStart.findLastIndex((start) => start <= edge);
  }
  return undefined;
}

type Group = Omit<Opened, "found">;

/** A closed group of a picture. */
function closedGroup({ drawing }: Picture, key: string): Group | undefined {
  const box = drawing?.folded.boxes.find((each) => each.key === key && each.kind !== "node");
  if (!drawing || !box) return undefined;
  return { key, title: box.title, uids: new Set(Array.from(box.nodes, (node) => drawing.graph.uid[node]!)) };
}

function sameNodes(a: Group, b: Group): boolean {
  return a.uids.size === b.uids.size && [...a.uids].every((uid) => b.uids.has(uid));
}
