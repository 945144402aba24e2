/** Moves a drawing to a position of a step-through: only what the steps in between touch is drawn again. */

import type { Canvas } from "../canvas/canvas.ts";
import { SLOT_LOOKS } from "../picture/marks.ts";
import type { Leaf } from "../picture/model.ts";
import type { Context } from "../picture/scene/context.ts";
import { keysOf, walkingSigns } from "../picture/scene/walking.ts";
import * as SLOT from "../picture/slot.ts";
import type { StepsReply } from "../state/replies.ts";
import { doneAt, lastStep, type Walk } from "../state/steps.ts";
import type { Drawing } from "./pipeline.ts";

const WILL = SLOT_LOOKS.indexOf("will");

/** The states before the call. */
interface Before {
  slotState: Uint8Array;
  slotFreedBy: Int32Array;
  leaves: Map<number, Leaf>;
}

export class Playback {
  readonly #canvas: Canvas;
  #steps: StepsReply | null = null;
  /** How many nodes have run on the drawing. */
  #done = 0;
  #context: Context | null = null;
  #before: Before | null = null;

  constructor(canvas: Canvas) {
    this.#canvas = canvas;
  }

  /** Shows the position of a walk on its drawing. null: there is no walk; its drawing is not on screen. */
  show(drawing: Drawing | null, walk: Walk | null, calm: boolean): void {
    const steps = walk?.steps ?? null;
    if (steps !== this.#steps) this.#end(drawing);
    if (!drawing || !walk || !steps?.known) return;
    this.#steps = steps;
    const done = doneAt(steps, walk.at);
    const forward = done > this.#done;
    this.#move(drawing, done, !calm && forward && done - this.#done === 1);
    this.#sign(drawing, steps, walk, !calm && forward);
  }

  /** Brings the drawing back to the state before the call. */
  #end(drawing: Drawing | null): void {
    if (this.#steps && drawing && drawing.plan.context === this.#context) this.#move(drawing, 0, false);
    this.#canvas.sign([]);
    this.#steps = this.#context = this.#before = null;
    this.#done = 0;
  }

  #move(drawing: Drawing, done: number, drains: boolean): void {
    const steps = this.#steps!;
    const { graph, plan } = drawing;
    const { slotState, slotFreedBy, leaves } = graph;
    this.#before ??= { slotState: slotState.slice(), slotFreedBy: slotFreedBy.slice(), leaves: new Map(leaves) };
    // A drawing that was made again shows the states before a call that has not been made.
    const isFresh = plan.context !== this.#context;
    this.#context = plan.context;
    const from = isFresh ? 0 : Math.min(done, this.#done);
    const to = Math.max(done, this.#done);
    this.#done = done;
    const sets = new Set(steps.sets);
    const keys = new Set<string>();
    for (let i = from; i < to; i++) {
      const changed = this.#apply(drawing, i, i < done, sets.has(i));
      if (changed) for (const key of keysOf({ ...drawing, context: plan.context }, steps.nodes[i]!)) keys.add(key);
    }
    this.#canvas.renew([...keys], drains);
  }

  /** Lets node i run, or takes that back. Returns whether the picture changes. */
  #apply({ graph, plan, folded }: Drawing, i: number, runs: boolean, sets: boolean): boolean {
    const { past, n, nodes, frees } = this.#steps!;
    const before = this.#before!;
    const { context } = plan;
    const node = graph.indexOf(nodes[i]!);
    if (node < 0) return false;
    for (const position of frees[i] ?? []) {
      const slot = graph.slotStart[node]! + position;
      if (slot >= graph.slotStart[node + 1]!) continue;
      const look = runs ? (past ? SLOT.freed : WILL) : before.slotState[slot]!;
      context.looks[slot] = look;
      if (!past) continue;
      graph.slotState[slot] = look;
      graph.slotFreedBy[slot] = runs ? (n ?? -1) : before.slotFreedBy[slot]!;
    }
    const leaf = before.leaves.get(node);
    const changesLeaf = past && sets && leaf !== undefined;
    if (changesLeaf) graph.leaves.set(node, runs ? { ...leaf, hasGrad: true } : leaf);
    context.cards.delete(folded.boxOf[node]!);
    return changesLeaf || (frees[i]?.length ?? 0) > 0;
  }

  /** The signs over the drawing, and the gradient on its way to the node that runs. */
  #sign(drawing: Drawing, steps: StepsReply, walk: Walk, moves: boolean): void {
    const { nodes } = steps;
    const context = drawing.plan.context;
    const runs = walk.at > 0 && walk.at < lastStep(walk);
    const ran = nodes.slice(0, this.#done);
    const isLast = ran.length === nodes.length;
    const walking = {
      ran,
      runs,
      position: `${ran.length} of ${nodes.length}`,
      stops: isLast ? steps.stops : ("" as const),
      past: steps.past,
    };
    const drawn = { graph: drawing.graph, folded: drawing.folded, context, byKey: this.#canvas.byKey };
    const keys = runs ? keysOf(drawn, ran.at(-1)!) : [];
    this.#canvas.sign(walkingSigns(drawn, walking), keys, moves);
  }
}
