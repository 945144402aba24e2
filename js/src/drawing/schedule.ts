/**
 * When what is drawn: changes are coalesced to one answer a frame, one drawing is made at a time, and what changes
 * meanwhile is drawn after it.
 */

import type { Need } from "../state/store.ts";

/** The least first. */
const NEEDS: readonly Need[] = ["panels", "look", "picture"];

export interface Drawer {
  /** Whether it is on screen: not if a newer picture is wanted by now. */
  drawPicture(): Promise<boolean>;
  drawLook(): Promise<boolean>;
}

export class Schedule {
  readonly #signal: AbortSignal;
  readonly #drawer: () => Drawer;
  readonly #showPanels: () => void;
  readonly #failed: (error: unknown) => void;
  /** What the next frame is to do, as a position in `NEEDS`; -1: nothing. */
  #need = -1;
  /** What is to be drawn after what is being drawn. */
  #next = 0;
  #draws = false;

  constructor(signal: AbortSignal, drawer: () => Drawer, showPanels: () => void, failed: (error: unknown) => void) {
    this.#signal = signal;
    this.#drawer = drawer;
    this.#showPanels = showPanels;
    this.#failed = failed;
  }

  /** Whether what is being drawn is still the newest picture. */
  readonly isWanted = (): boolean => !this.#signal.aborted && NEEDS[this.#next] !== "picture";

  ask(need: Need): void {
    const idle = this.#need < 0;
    this.#need = Math.max(this.#need, NEEDS.indexOf(need));
    if (idle) requestAnimationFrame(() => this.#answer());
  }

  #answer(): void {
    if (this.#signal.aborted) return;
    this.#next = Math.max(this.#next, this.#need);
    if (this.#need === 0) this.#showPanels();
    this.#need = -1;
    void this.#drawAll();
  }

  /** Draws until nothing has changed meanwhile. */
  async #drawAll(): Promise<void> {
    if (this.#draws) return;
    this.#draws = true;
    while (this.#next > 0) {
      const need = NEEDS[this.#next];
      this.#next = 0;
      try {
        const drawer = this.#drawer();
        if (await (need === "picture" ? drawer.drawPicture() : drawer.drawLook())) this.#showPanels();
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#draws = false;
  }
}
