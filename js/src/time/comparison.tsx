/** Two moments compared: what was added, freed and died, by variable and by node. The picture has the same marks. */

import type { VNode } from "preact";
import { Mute, type PanelProps, Row, Table } from "../panels/parts.tsx";
import { type Graph, placeOf } from "../picture/model.ts";
import type { Difference } from "../state/replies.ts";
import { cellLine, count, eventTitle, join, nameOf } from "../state/say.ts";

const MOST_NODES = 60;
const STATUS = { new: "new", gone: "gone", other: "another tensor now", same: "" } as const;

function Variables({ variables, more }: Difference): VNode | null {
  if (variables.length === 0) return null;
  return (
    <>
      <h4>By variable</h4>
      <Table titles={["variable", "added", "freed", "died"]}>
        {variables.map(({ name, status, added, freed, died }) => (
          <>
            <Row head={name || "without a name"} cells={[`${added}`, `${freed}`, `${died}`]} />
            {STATUS[status] && (
              <tr class="gw-sub">
                <td colspan={4}>{STATUS[status]}</td>
              </tr>
            )}
          </>
        ))}
      </Table>
      {more > 0 && <Mute>and {count(more, "more variable")}</Mute>}
    </>
  );
}

function Nodes({ difference, graph }: { difference: Difference; graph: Graph }): VNode | null {
  const words: [readonly number[], string][] = [
    [difference.added, "added"],
    [difference.freed, "freed"],
    [difference.died, "died"],
  ];
  const all = words.flatMap(([uids, word]) => uids.map((uid) => [graph.indexOf(uid), word] as const));
  const known = all.filter(([node]) => node >= 0);
  if (known.length === 0) return null;
  const left = known.length - MOST_NODES;
  return (
    <>
      <h4>By node</h4>
      <Table titles={["node", "made by", "what happened"]}>
        {known.slice(0, MOST_NODES).map(([node, word]) => (
          <Row head={nameOf(graph, node)} cells={[cellLine(placeOf(graph, node)) || "unknown", word]} />
        ))}
      </Table>
      {left > 0 && <Mute>and {count(left, "more node")}</Mute>}
    </>
  );
}

export function ComparisonPanel({ context: { state }, graph }: PanelProps): VNode | null {
  const { comparison, now } = state;
  if (!comparison || !now) return null;
  const { from, to, difference } = comparison;
  const titleOf = (id: number | null) => {
    const event = now.events.find((each) => each.id === id);
    return event ? join(" · ", eventTitle(event).trim(), `step ${event.id + 1}`) : "a moment";
  };
  const [first, last] = to !== null && to < from ? [to, from] : [from, to];
  return (
    <section class="gw-comparison" aria-label="Compared moments" aria-live="polite">
      <div class="gw-kick">Two moments · esc to end</div>
      {to === null ? (
        <>
          <h3>Compare {titleOf(from)} with …</h3>
          <Mute>Choose another moment: on the timeline, or by [ and ].</Mute>
        </>
      ) : (
        <h3>
          From {titleOf(first)} to {titleOf(last)}
        </h3>
      )}
      {to !== null && !difference && <Mute>asking the kernel …</Mute>}
      {difference && (
        <>
          <p>{difference.summary.charAt(0).toUpperCase() + difference.summary.slice(1)}</p>
          <p>Held by saved tensors: {difference.held}.</p>
          <Variables {...difference} />
          {graph && <Nodes difference={difference} graph={graph} />}
        </>
      )}
    </section>
  );
}
