/** Events as the kernel records them: loops, cells, and long runs. */
import type { TimelineEvent } from "../../src/picture/model.ts";

export function event(id: number, more: Partial<TimelineEvent> = {}): TimelineEvent {
  const kind = more.call === undefined || more.call === null ? "cell" : "call";
  const own: TimelineEvent = {
    ...{ id, kind, cell: 1, call: null, iteration: null, label: "", where: "", ok: true },
    ...{ held: 0, nodes: 0, order: -1, steps: [], kept: true },
  };
  return { ...own, ...more };
}

/** Calls of a loop in one cell, and the end of the cell. `each`: what differs by iteration. */
export function loop(times: number, cell = 2, each: (i: number) => Partial<TimelineEvent> = () => ({})) {
  const calls = Array.from({ length: times }, (_, i) =>
    event(i, {
      ...{ cell, call: i, iteration: i, label: "loss.backward()", order: 0, freed: 300 },
      ...{ held: i < 2 ? 0 : null, kept: i < 2, steps: i > 0 ? ["opt.step()"] : [] },
      ...each(i),
    }),
  );
  return [...calls, event(times, { cell, steps: ["opt.step()"] })];
}

/** A GAN: two calls in each iteration, two optimizers. */
export function gan(times: number): TimelineEvent[] {
  const calls = Array.from({ length: 2 * times }, (_, i) => {
    const d = i % 2 === 0;
    const steps = i === 0 ? [] : [d ? "opt_G.step()" : "opt_D.step()"];
    return event(i, {
      ...{ cell: 8, call: i, iteration: i >> 1, label: d ? "D_loss.backward()" : "G_loss.backward()", steps },
      ...{ order: d ? 0 : 1, freed: d ? 48 : 92, held: i < 6 ? 0 : null, kept: i < 6 },
    });
  });
  return [...calls, event(2 * times, { cell: 8, steps: ["opt_G.step()"] })];
}

/** Cells of which only the last but one made a graph. */
export function cells(count: number): TimelineEvent[] {
  return Array.from({ length: count }, (_, i) =>
    event(i, { cell: i + 1, ok: i % 9 !== 4, held: i === count - 2 ? 4_000_000 : 0, nodes: i === count - 2 ? 7 : 0 }),
  );
}
