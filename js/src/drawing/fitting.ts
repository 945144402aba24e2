/** Reduces a picture until it can be read: one-line cards, fewer boxes, no code rail. */

import { MOST_CARDS } from "../canvas/canvas.ts";
import type { Viewport } from "../canvas/viewport.ts";
import { MAX_BOXES, ONE_SCREEN } from "../picture/fold/index.ts";
import { nodeCount } from "../picture/model.ts";
import type { State } from "../state/state.ts";
import type { Drawing } from "./pipeline.ts";

/** A picture that would need a smaller scale than this is reduced. */
const ROOMY = 0.8;
/** If the whole picture needs a smaller scale, no more than a row would be readable at once: it is folded further, */
const CUT = 0.53;
/** but not to fewer boxes than this. */
const LEAST = 12;
/** Share of the boxes that is left after one more folding. */
const FOLDED = 0.7;

export class Fitting {
  /** One-line cards, because cards of two lines would not fit. */
  dense = false;
  /** No code rail, because there is no room for it. */
  bare = false;
  /** Largest number of boxes; it is reduced while they would not be readable. */
  most = MAX_BOXES;
  /** The next picture is laid out without regard to the one on screen. */
  afresh = false;

  /** Tries the full picture again. */
  reset(): void {
    this.dense = false;
    this.bare = false;
    this.most = MAX_BOXES;
  }

  /** Whether the drawing has to be reduced; sets what to leave out. */
  leavesOut({ graph, folded, plan, space: { content } }: Drawing, viewport: Viewport, state: State): boolean {
    if (viewport.taken || folded.boxes.length > MOST_CARDS) return false;
    if (!this.dense && content.h * ROOMY > viewport.height) {
      this.dense = true;
      this.afresh = true;
      return true;
    }
    const { show } = state;
    const mayFold = show.what !== "all" && !viewport.fits && nodeCount(graph) > ONE_SCREEN;
    if (mayFold && this.most > LEAST && viewport.whole(content) < CUT) {
      this.most = Math.min(ONE_SCREEN, this.most * FOLDED);
      this.dense = false;
      return true;
    }
    if (!plan.context.rail) return false;
    this.bare = content.w * ROOMY > viewport.width;
    return this.bare;
  }
}
