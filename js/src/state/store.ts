/** The state of one view, and the parts that a change makes to be drawn again. */

import { firstState, type State, shown } from "./state.ts";

/** Extent of a drawing: the panels, the same boxes with other marks, another picture. */
export type Need = "panels" | "look" | "picture";

/** A change of these fields draws the same boxes with other marks. */
const LOOK = ["preview", "highlight", "search", "comparison"] as const;
/** A change of these fields draws another picture. */
const STRUCTURE = ["closed", "show", "older", "spot"] as const;

export class Store {
  readonly state: State = firstState();
  readonly #changed: (need: Need) => void;

  constructor(changed: (need: Need) => void) {
    this.#changed = changed;
  }

  /** Changes the state and schedules the drawing of what depends on it. */
  set(patch: Partial<State>): void {
    const { state } = this;
    const before = shown(state);
    const changes = (name: keyof State) => name in patch && patch[name] !== state[name];
    const structure = STRUCTURE.some(changes);
    const look = LOOK.some(changes);
    Object.assign(state, patch);
    const other = shown(state) !== before;
    // The owners of a node have to be asked for again for a new picture.
    if (other && state.now === patch.now) state.kept = new Map();
    this.#changed(structure || other ? "picture" : look ? "look" : "panels");
  }

  /** Changes the state during a drawing, which then shows it. */
  amend(patch: Partial<State>): void {
    Object.assign(this.state, patch);
  }
}
