/** The state of one view, and what a change of it asks for. */

import { firstState, type State, shown } from "./state.ts";

/** What a change asks for: the panels, the same boxes in another look, another picture. */
export type Need = "panels" | "look" | "picture";

/** What the same boxes are drawn again for, in another look. */
const LOOK = ["preview", "highlight", "search"] as const;
/** What other boxes are drawn for. */
const STRUCTURE = ["opened", "closed", "show", "spot"] as const;

export class Store {
  readonly state: State = firstState();
  readonly #changed: (need: Need) => void;

  constructor(changed: (need: Need) => void) {
    this.#changed = changed;
  }

  /** Changes the state and has drawn what depends on it. */
  set(patch: Partial<State>): void {
    const { state } = this;
    const before = shown(state);
    const changes = (name: keyof State) => name in patch && patch[name] !== state[name];
    const structure = STRUCTURE.some(changes);
    const look = LOOK.some(changes);
    Object.assign(state, patch);
    const other = shown(state) !== before;
    // What keeps a node alive is asked again for a new picture.
    if (other && state.now === patch.now) state.kept = new Map();
    this.#changed(structure || other ? "picture" : look ? "look" : "panels");
  }

  /** Changes the state in the middle of a drawing, which shows it. */
  amend(patch: Partial<State>): void {
    Object.assign(this.state, patch);
  }
}
