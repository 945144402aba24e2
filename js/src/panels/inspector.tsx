/** The selected node: its kind, its place, its saved tensors and its owners. Without a selection: a summary. */

import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { CallGlyph, RootDot, SlotGlyph, TagGlyph } from "../page/glyphs.tsx";
import { type Graph, orderOfCall, placeOf, type Root } from "../picture/model.ts";
import * as SLOT from "../picture/slot.ts";
import type { Kept } from "../state/replies.ts";
import { bytes, count, join, nameOf, opOf, placeText, type Slot, STATE_WORDS, slotAt, slotsOf } from "../state/say.ts";
import type { KeptOrNot } from "../state/state.ts";
import { Button, Mute, type PanelProps, Row, Table, Terms } from "./parts.tsx";

const MOST_OWNERS = 4;
const MOST_KEEPERS = 6;
const MOST_OPS = 8;
const MOST_BIGGEST = 4;

function Kicker({ children }: { children: ComponentChildren }): VNode {
  return <div class="gw-kick">{children} · esc to close</div>;
}

const shortType = (type: string) => type.replace("float", "f");

/** One saved tensor. `owners`: paths of tensors with the same memory. */
function SlotRow({ graph, slot, owners }: { graph: Graph; slot: Slot; owners: readonly string[] }): VNode {
  const { name, type, bytes: size, state, by } = slot;
  const standing = (
    <>
      <SlotGlyph state={state} /> {STATE_WORDS[state]} {by >= 0 && <CallGlyph n={by} order={orderOfCall(graph, by)} />}
    </>
  );
  return (
    <>
      <Row head={name} cells={[type && <code>{shortType(type)}</code>, size > 0 && bytes(size), standing]} />
      {owners.length > 0 && (
        <tr class="gw-sub">
          <td colspan={4}>
            memory also held by <code>{owners.slice(0, MOST_OWNERS).join(", ")}</code>
          </td>
        </tr>
      )}
    </>
  );
}

function ownersOf(graph: Graph, { slot, state }: Slot, position: number, kept: Kept | undefined): readonly string[] {
  if (state === SLOT.unsaved) return [];
  const found = kept?.storages.find((each) => each.slot === position)?.owners;
  return found ?? graph.storageOwners.get(graph.slotStorage[slot]!) ?? [];
}

function SavedTensors({ graph, node, kept }: { graph: Graph; node: number; kept: Kept | undefined }): VNode | null {
  const slots = slotsOf(graph, node);
  if (slots.length === 0)
    return graph.leaves.has(node) ? null : (
      <Mute>This op saves nothing: backward can run over it any number of times.</Mute>
    );
  return (
    <Table titles={["saved", "shape, dtype", "bytes", "state"]}>
      {slots.map((slot, position) => (
        <SlotRow graph={graph} slot={slot} owners={ownersOf(graph, slot, position, kept)} />
      ))}
    </Table>
  );
}

function KeptAlive({ kept }: { kept: KeptOrNot | undefined }): VNode {
  if (!kept || kept === "asked") return <Mute>asking the kernel …</Mute>;
  if (kept === "unknown") return <Mute>Unknown: no kernel answered.</Mute>;
  if (kept.keptBy.length === 0) return <Mute>No name was found that keeps it.</Mute>;
  return (
    <>
      {kept.keptBy.slice(0, MOST_KEEPERS).map(({ path, kind, releases }) => (
        <div class="gw-box">
          <TagGlyph name={path} />
          {kind !== "variable" && <span class="gw-mute"> {kind}</span>}
          <div class="gw-mute">
            <code>del {path}</code> {releases}
          </div>
        </div>
      ))}
    </>
  );
}

function RootNames({ roots }: { roots: readonly Root[] }): VNode {
  if (roots.length === 0) return <>no live root</>;
  return (
    <>
      {roots.map(({ order, path }, i) => (
        <>
          {i > 0 && " · "}
          <RootDot order={order} /> <code>{path}</code>
        </>
      ))}
    </>
  );
}

/** The facts about a node, one line each. */
function factsOf(graph: Graph, node: number, roots: readonly Root[]): [string, ComponentChildren][] {
  const reached: [string, ComponentChildren] = ["reached by", <RootNames roots={roots} />];
  const leaf = graph.leaves.get(node);
  if (leaf) {
    const names = [<code>{leaf.paths.join(", ") || "unnamed"}</code>, leaf.type && ` ${leaf.type}`];
    return [["leaf", names], [".grad", leaf.hasGrad ? "is there" : "None"], reached];
  }
  const module = graph.modules[graph.module[node]!];
  const within = module && ` · module ${module.path} (${module.className})`;
  return [["made by", [placeText(placeOf(graph, node)), within]], reached];
}

interface NodeProps {
  graph: Graph;
  node: number;
  roots: readonly Root[];
  /** The owners of the node; for a stored picture the kernel cannot be asked. */
  kept: KeptOrNot | "past" | undefined;
}

function NodeSection({ graph, node, roots, kept }: NodeProps): VNode {
  const source = placeOf(graph, node)?.source.trim();
  const gone = graph.ghost[node] === 1;
  return (
    <>
      <Kicker>{gone ? "Selected node · gone" : "Selected node"}</Kicker>
      <h3>
        <code>{nameOf(graph, node)}</code>
      </h3>
      <Terms rows={factsOf(graph, node, roots)} />
      {source && <pre class="gw-src">{source}</pre>}
      <SavedTensors graph={graph} node={node} kept={typeof kept === "object" ? kept : undefined} />
      {!gone && kept !== "past" && (
        <>
          <h4>Kept alive by</h4>
          <KeptAlive kept={kept} />
        </>
      )}
    </>
  );
}

interface OpCount {
  op: string;
  nodes: number;
  held: number;
  freed: number;
  bytes: number;
}

/** The members of a group by op; ops that hold the most bytes come first. */
function countOps(graph: Graph, nodes: ArrayLike<number>): OpCount[] {
  const counts = new Map<string, OpCount>();
  for (const node of Array.from(nodes)) {
    const op = opOf(graph, node);
    const count = counts.get(op) ?? { op, nodes: 0, held: 0, freed: 0, bytes: 0 };
    counts.set(op, count);
    count.nodes++;
    for (const { state, bytes: size } of slotsOf(graph, node)) {
      if (state === SLOT.freed) count.freed++;
      if (state !== SLOT.held) continue;
      count.held++;
      count.bytes += size;
    }
  }
  return [...counts.values()].sort((a, b) => b.bytes - a.bytes || b.nodes - a.nodes).slice(0, MOST_OPS);
}

interface GroupProps {
  graph: Graph;
  title: string;
  nodes: ArrayLike<number>;
  /** Number of nodes, with those that only prepare a parameter. */
  size: number;
}

function GroupSection({ graph, title, nodes, size }: GroupProps): VNode {
  return (
    <>
      <Kicker>Selected group</Kicker>
      <h3>{title}</h3>
      <Mute>{count(size, "node")}</Mute>
      <Table titles={["op", "nodes", "held", "freed"]}>
        {countOps(graph, nodes).map(({ op, nodes, held, freed, bytes: size }) => (
          <Row head={op} cells={[`${nodes}`, held > 0 ? bytes(size) : "0", `${freed}`]} />
        ))}
      </Table>
    </>
  );
}

/** The largest held saved tensors. */
function biggest(graph: Graph): number[] {
  const found: number[] = [];
  for (let slot = 0; slot < graph.slotState.length; slot++) {
    const size = graph.slotBytes[slot]!;
    const least = graph.slotBytes[found[MOST_BIGGEST - 1]!] ?? 0;
    if (graph.slotState[slot] !== SLOT.held || !size || size <= least) continue;
    found.push(slot);
    found.sort((a, b) => graph.slotBytes[b]! - graph.slotBytes[a]!);
    found.splice(MOST_BIGGEST);
  }
  return found;
}

function BiggestRow({ graph, slot }: { graph: Graph; slot: number }): VNode {
  const { name, type, bytes: size } = slotAt(graph, slot);
  const node = graph.slotStart.findIndex((start) => start > slot) - 1;
  return <Row head={name} cells={[join(" ", opOf(graph, node), shortType(type)), bytes(size)]} />;
}

/** The panel without a selection and without a finding: counts, and the largest saved tensors. */
function Summary({ graph }: { graph: Graph }): VNode {
  const counts = STATE_WORDS.map(() => 0);
  for (const state of graph.slotState) counts[state]! += 1;
  const big = biggest(graph);
  return (
    <>
      <div class="gw-kick">Whole graph</div>
      <h3>{bytes(graph.held)} held by saved tensors</h3>
      <ul class="gw-row">
        {counts.map(
          (n, state) =>
            n > 0 &&
            state !== SLOT.unsaved && (
              <li>
                <SlotGlyph state={state} /> {n.toLocaleString("en")} {STATE_WORDS[state]}
              </li>
            ),
        )}
      </ul>
      {big.length > 0 && (
        <>
          <h4>Largest saved tensors</h4>
          <Table>
            {big.map((slot) => (
              <BiggestRow graph={graph} slot={slot} />
            ))}
          </Table>
        </>
      )}
      {graph.notes.length > 0 && (
        <>
          <h4>What was not looked at</h4>
          <ul>
            {graph.notes.map((note) => (
              <li>{note}</li>
            ))}
          </ul>
        </>
      )}
      <Mute>Click a node, or walk with the arrow keys. ? shows all keys.</Mute>
    </>
  );
}

/** The subject of the inspector: a node or a group. `inside`: the open group around it. */
export interface Subject {
  key: string;
  /** The graph in which it was found: a newer one may not be drawn yet. */
  graph: Graph;
  inside?: { key: string; title: string } | undefined;
  about: { node: number; roots: Root[] } | { title: string; nodes: ArrayLike<number>; size: number };
}

function SubjectSection({
  context: { act, state },
  subject,
}: Pick<PanelProps, "context"> & { subject: Subject }): VNode {
  const { key, graph, inside, about } = subject;
  const toggle = (group: string, words: string) => (
    <Button class="gw-btn" press={() => act.open(group)}>
      {words}
    </Button>
  );
  if ("nodes" in about)
    return (
      <>
        <GroupSection graph={graph} {...about} />
        {inside?.key !== key && <p>{toggle(key, "Open this group")}</p>}
        {inside && toggle(inside.key, `Close ${inside.title}`)}
      </>
    );
  const kept = state.past ? "past" : state.kept.get(graph.uid[about.node]!);
  return (
    <>
      <NodeSection graph={graph} node={about.node} roots={about.roots} kept={kept} />
      {inside && toggle(inside.key, `Close ${inside.title}`)}
    </>
  );
}

export function Inspector({ context, graph, subject }: PanelProps & { subject: Subject | null }): VNode {
  const { act, state } = context;
  useLayoutEffect(() => {
    if (!subject || !("node" in subject.about) || state.past) return;
    const { node } = subject.about;
    if (!subject.graph.ghost[node]) act.inspect(subject.graph.uid[node]!);
  });
  const summary = useMemo(
    () => graph && graph.n > 0 && graph.findings.length === 0 && <Summary graph={graph} />,
    [graph],
  );
  return (
    <section
      class="gw-inspector"
      aria-label={subject ? "Selected node" : "Summary"}
      hidden={state.preview !== null || !(subject || summary)}
    >
      {subject ? <SubjectSection context={context} subject={subject} /> : summary}
    </section>
  );
}
