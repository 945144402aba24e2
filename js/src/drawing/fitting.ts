/**
 * Reduces a picture until it can be read in the room that it has: lower cards, fewer boxes, no code rail, graphs that
 * share nothing below each other.
 */

import { MOST_CARDS } from "../canvas/canvas.ts";
import type { Viewport } from "../canvas/viewport.ts";
import { MAX_BOXES, ONE_SCREEN } from "../picture/fold/index.ts";
import { partsOf } from "../picture/layout/shelves.ts";
import { nodeCount } from "../picture/model.ts";
import { FULL_SCALE } from "../picture/scene/context.ts";
import type { SceneOptions } from "../picture/scene/types.ts";
import type { State } from "../state/state.ts";
import type { Drawing } from "./pipeline.ts";

/** The forms of cards, from the highest to the lowest. */
const FORMS: readonly Pick<SceneOptions, "dense" | "compact">[] = [{}, { dense: true }, { compact: true }];
/** If the whole picture needs a smaller scale, no more than a row would be readable at once: it is folded further, */
const CUT = 0.53;
/** but not to fewer boxes than this. */
const LEAST = 12;
/** Share of the boxes that is left after one more folding. */
const FOLDED = 0.7;
/** Smallest scale for which buttons get room. A picture that needs a scale smaller by this is planned for it. */
const SMALLEST = 0.55;
const SMALLER = 0.03;
/** Room at both sides of a picture, in px. */
const SIDES = 44;

export class Fitting {
  /** No code rail, because there is no room for it. */
  bare = false;
  /** Largest number of boxes; it is reduced while they would not be readable. */
  most = MAX_BOXES;
  /** The next picture is laid out without regard to the one on screen. */
  fresh = false;
  #form = 0;
  /** Graphs that share nothing stand below each other where they are wider together, in px. */
  #widest: number | undefined;
  /** The scale that the picture is planned for. */
  #scale = 1;

  /** Tries the full picture again. */
  reset(): void {
    this.bare = false;
    this.most = MAX_BOXES;
    this.#form = 0;
    this.#widest = undefined;
    this.#scale = 1;
  }

  /** What it sets of the options of a scene. */
  get options(): Pick<SceneOptions, "dense" | "compact" | "rail" | "widest" | "scale"> {
    return { ...FORMS[this.#form], rail: !this.bare, widest: this.#widest, scale: this.#scale };
  }

  /** Whether the drawing has to be reduced; sets what to leave out. `room`: size of the view, as large as it may get. */
  leavesOut(drawing: Drawing, room: { w: number; h: number }, viewport: Viewport, state: State): boolean {
    const { graph, folded, plan, space } = drawing;
    const { content } = space;
    if (viewport.taken || folded.boxes.length > MOST_CARDS) return false;
    // A wide picture is drawn smaller anyway: then higher cards have room, too.
    const needed = Math.min(FULL_SCALE, room.w / content.w);
    if (this.#form + 1 < FORMS.length && content.h * needed > room.h) {
      this.#form++;
      this.fresh = true;
      return true;
    }
    const whole = Math.min(room.w / content.w, room.h / content.h);
    const { show } = state;
    const mayFold = show.what !== "all" && !viewport.fits && nodeCount(graph) > ONE_SCREEN;
    if (mayFold && this.most > LEAST && whole < CUT) {
      this.most = Math.min(ONE_SCREEN, this.most * FOLDED);
      this.#form = 0;
      return true;
    }
    if (plan.context.rail && content.w * FULL_SCALE > room.w) {
      this.bare = true;
      return true;
    }
    if (!this.#widest && content.w * FULL_SCALE > room.w && this.#shelvesHelp(drawing, room, whole)) {
      this.#widest = room.w / FULL_SCALE - SIDES;
      this.fresh = true;
      return true;
    }
    const scale = Math.max(SMALLEST, Math.floor(whole / SMALLER) * SMALLER);
    if (scale >= this.#scale) return false;
    this.#scale = scale;
    this.fresh = true;
    return true;
  }

  /** Whether the picture would be larger with its parts in shelves. */
  #shelvesHelp({ plan, space }: Drawing, room: { w: number; h: number }, whole: number): boolean {
    const { edges, width } = plan;
    if (!partsOf({ n: width.length, edges }).some((part) => part > 0)) return false;
    const shelves = Math.ceil((space.content.w * FULL_SCALE) / room.w);
    return Math.min(FULL_SCALE, room.h / (shelves * space.content.h)) > whole;
  }
}
