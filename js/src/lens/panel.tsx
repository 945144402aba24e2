/** The frame of the lens: which groups are open, what goes in and out, and the drawing. */

import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Drawing } from "../drawing/pipeline.ts";
import { Button, type PanelProps } from "../panels/parts.tsx";
import type { Box, Folded } from "../picture/fold/index.ts";
import { bytes, count, join } from "../state/say.ts";
import type { Opened } from "../state/state.ts";
import type { Lens } from "./lens.ts";

const MOST_NEIGHBOURS = 3;

/** Names of the boxes beside a group: above it, towards the inputs, and below it. */
export function neighbours({ boxes, edges }: Folded, key: string): { above: string[]; below: string[] } {
  const at = boxes.findIndex((box) => box.key === key);
  const above: string[] = [];
  const below: string[] = [];
  for (let e = 0; e < edges.length; e += 2) {
    if (edges[e] === at) above.push(boxes[edges[e + 1]!]!.title);
    if (edges[e + 1] === at) below.push(boxes[edges[e]!]!.title);
  }
  return { above, below };
}

function listed(words: string, names: readonly string[]): string {
  if (names.length === 0) return "";
  const more = names.length - MOST_NEIGHBOURS;
  return `${words} ${names.slice(0, MOST_NEIGHBOURS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** "57 nodes as 15 · 44.3 MB held". */
function factsOf(boxes: readonly Box[]): string {
  const nodes = boxes.reduce((sum, box) => sum + box.count, 0);
  const held = boxes.reduce((sum, box) => sum + box.bytes, 0);
  const drawn = boxes.length < nodes ? ` as ${boxes.length}` : "";
  return `${count(nodes, "node")}${drawn} · ${held > 0 ? `${bytes(held)} held` : "nothing held"}`;
}

function Trail({ trail, close }: { trail: readonly Opened[]; close(open: number): void }): VNode {
  return (
    <nav class="gw-row gw-trail" aria-label="Open groups">
      {trail.map(({ key, title }, i) => (
        <>
          {i > 0 && <span aria-hidden="true">/</span>}
          {i < trail.length - 1 ? (
            <Button key={key} class="gw-link" press={() => close(i + 1)}>
              {title}
            </Button>
          ) : (
            <b key={key} aria-current="true">
              {title}
            </b>
          )}
        </>
      ))}
    </nav>
  );
}

interface LensProps extends PanelProps {
  lens: Lens;
  /** The first drawing. */
  around: Drawing | null;
}

export function LensPanel({ context: { act, state }, lens, around }: LensProps): VNode | null {
  const open = state.lens.at(-1);
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current?.append(lens.canvas.element), [open === undefined]);
  if (!open) return null;
  const { drawing } = lens.picture;
  const [first] = state.lens;
  const { above, below } =
    around && state.lens.length === 1 ? neighbours(around.folded, first!.key) : { above: [], below: [] };
  return (
    <section
      class="gw-lens"
      style={lens.width > 0 ? `width:${lens.width}px` : "left:6px"}
      aria-label={`Inside ${open.title}`}
    >
      <div class="gw-row gw-lenshead">
        <Trail trail={state.lens} close={act.closeLens} />
        <span class="gw-space" />
        <Button
          class="gw-ib"
          label={`Close ${open.title}`}
          title="Close (esc)"
          press={() => act.closeLens(state.lens.length - 1)}
        >
          ✕
        </Button>
      </div>
      <div class="gw-mute gw-lensends">
        {join(" · ", drawing && factsOf(drawing.folded.boxes), listed("from", above), listed("to", below))}
      </div>
      <div class="gw-lensview" ref={place} />
    </section>
  );
}
