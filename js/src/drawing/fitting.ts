/** How much of a graph is shown so that it can be read: cards of one line, fewer boxes, no code beside them. */

import { MOST_CARDS } from "../canvas/canvas.ts";
import type { Viewport } from "../canvas/viewport.ts";
import { MAX_BOXES, ONE_SCREEN } from "../picture/fold/index.ts";
import { nodeCount } from "../picture/model.ts";
import type { State } from "../state/state.ts";
import type { Drawing } from "./pipeline.ts";

/** A picture that would need a smaller scale shows less. */
const ROOMY = 0.8;
/** Where all of it would need a smaller scale, more than a row could not be seen and read: it is folded further. */
const CUT = 0.53;
/** But not to fewer boxes than these. */
const LEAST = 12;
/** How many boxes are left by one more folding. */
const FOLDED = 0.7;

export class Fitting {
  /** One-line cards, because cards of two lines would not fit. */
  dense = false;
  /** No code beside the drawing, because there is no room for it. */
  bare = false;
  /** No more boxes than so many: less where they would not be readable. */
  most = MAX_BOXES;
  /** The next picture is laid out without regard to the one on screen. */
  afresh = false;

  /** What was left out for want of room is tried again. */
  reset(): void {
    this.dense = false;
    this.bare = false;
    this.most = MAX_BOXES;
  }

  /** Whether what has been drawn has to show less; then it is known what is left out. */
  leavesOut({ graph, folded, plan, space: { content } }: Drawing, viewport: Viewport, state: State): boolean {
    if (viewport.taken || folded.boxes.length > MOST_CARDS) return false;
    if (!this.dense && content.h * ROOMY > viewport.height) {
      this.dense = true;
      this.afresh = true;
      return true;
    }
    const { opened, show } = state;
    const mayFold = opened.size === 0 && show.what !== "all" && !viewport.fits && nodeCount(graph) > ONE_SCREEN;
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
