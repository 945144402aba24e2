/** The enlarged timeline: bands of bytes by the name that keeps them, and their names as a list beside them. */

import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { Graph } from "../picture/model.ts";
import type { Keepers } from "../state/replies.ts";
import { bytes, eventTitle } from "../state/say.ts";
import type { Context } from "../state/state.ts";
import { bandsOf, keptAt, labelsOf } from "./bands.ts";
import type { Placed } from "./scale.ts";

/** Width of the names at the right, in px. */
export const NAMES = 190;
const MOST_SHOWN = 50;

interface BandsProps {
  graph: Graph;
  stretches: readonly Placed[];
  keepers: Keepers;
  y(held: number): number;
}

/** Neighbouring bands differ in their grey, and have an edge between them. */
export function Bands({ graph, stretches, keepers, y }: BandsProps): VNode {
  return (
    <>
      {bandsOf(graph.events, stretches, keepers).map(({ row, left, right, under, bytes: own }) => (
        <rect
          class={row % 2 ? "gw-keeps gw-odd" : "gw-keeps"}
          x={left}
          y={y(under + own)}
          width={right - left}
          height={Math.max(0.5, y(under) - y(under + own))}
        />
      ))}
    </>
  );
}

/** uids of the nodes that a name of a band owns: `history[…]` stands for all elements. */
export function owned({ owners, uid }: Graph, name: string): number[] {
  const parts = name.split(", ");
  const isMeant = (path: string) =>
    parts.some((part) => path === part || (part.endsWith("[…]") && path.startsWith(part.slice(0, -2))));
  return owners.filter(({ path }) => isMeant(path)).map(({ node }) => uid[node]!);
}

interface NamesProps {
  context: Context;
  graph: Graph;
  at: number;
  y(held: number): number;
  room: { top: number; base: number };
}

/** The names that keep bytes at the moment on screen, with their bytes. A press shows what a name keeps. */
export function KeeperNames({ context: { act, state }, graph, at, y, room }: NamesProps): VNode {
  const event = graph.events[at]!;
  useEffect(() => act.divide(), [graph.event]);
  const row = state.keepers && keptAt(state.keepers, event.id);
  const shown = state.past ?? state.now;
  if (!row || !state.keepers)
    return <p class="gw-names gw-mute">Who kept what at this moment was not measured, or is not stored any more.</p>;
  const labels = labelsOf(state.keepers, row, y, room);
  return (
    <ul class="gw-names" style={`width:${NAMES - 12}px`} aria-label={`Kept after ${eventTitle(event)}, by name`}>
      {labels.length === 0 && <li>no saved tensor is held</li>}
      {labels.map(({ name, bytes: own, y: middle }) => {
        const uids = shown ? owned(shown, name).slice(0, MOST_SHOWN) : [];
        return (
          <li key={name} style={`top:${(middle - 8).toFixed(1)}px`}>
            <button
              type="button"
              title={`Show what ${name} keeps`}
              disabled={!uids.length}
              onClick={() => act.reveal(uids)}
            >
              <code>{name}</code> <span class="gw-mute">{bytes(own)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
