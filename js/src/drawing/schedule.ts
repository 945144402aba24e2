/**
 * The schedule of drawings: changes of one frame are handled together, only one drawing is made at a time, and changes
 * during a drawing lead to another one.
 */

import type { Need } from "../state/store.ts";

/** The needs, from the smallest to the largest. */
const NEEDS: readonly Need[] = ["panels", "look", "picture"];

export interface Drawer {
  /** Resolves with whether the picture is on screen: false if a newer one is wanted by now. */
  drawPicture(): Promise<boolean>;
  drawLook(): Promise<boolean>;
}

export class Schedule {
  readonly #signal: AbortSignal;
  readonly #drawer: () => Drawer;
  readonly #showPanels: () => void;
  readonly #failed: (error: unknown) => void;
  readonly #draws: (on: boolean) => void;
  /** Task of the next frame, as a position in `NEEDS`; -1: none. */
  #need = -1;
  /** Task after the drawing in progress, as a position in `NEEDS`. */
  #next = 0;
  #inProgress = false;

  /** `draws`: told whether a drawing is in progress or asked for. */
  constructor(
    signal: AbortSignal,
    drawer: () => Drawer,
    showPanels: () => void,
    failed: (error: unknown) => void,
    draws: (on: boolean) => void,
  ) {
    this.#signal = signal;
    this.#drawer = drawer;
    this.#showPanels = showPanels;
    this.#failed = failed;
    this.#draws = draws;
  }

  /** Whether the picture in progress is still the newest. */
  readonly isWanted = (): boolean => !this.#signal.aborted && NEEDS[this.#next] !== "picture";

  ask(need: Need): void {
    const idle = this.#need < 0;
    this.#need = Math.max(this.#need, NEEDS.indexOf(need));
    if (this.#need > 0) this.#draws(true);
    if (idle) requestAnimationFrame(() => this.#answer());
  }

  #answer(): void {
    if (this.#signal.aborted) return;
    this.#next = Math.max(this.#next, this.#need);
    if (this.#need === 0) this.#showPanels();
    this.#need = -1;
    void this.#drawAll();
  }

  /** Draws until nothing has changed during a drawing. */
  async #drawAll(): Promise<void> {
    if (this.#inProgress) return;
    this.#inProgress = true;
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
    this.#inProgress = false;
    this.#draws(this.#need > 0);
  }
}
