/** Stories: small graphs with their calls, events and findings, and their text on the wire. */
import * as SLOT from "../src/picture/slot.ts";
import { columnText, endsText, smallText } from "./columns.ts";

export interface FakeSlot {
  name: string;
  bytes: number;
  type?: string;
  /** A digit of `SLOT`; held when left out. */
  state?: number;
  freedBy?: number;
}

export interface FakeNode {
  uid: number;
  name: string;
  seq: number;
  next: number[];
  slots?: FakeSlot[];
  ghost?: boolean;
  /** cell, line, source, iteration */
  place?: [number, number, string, number | null];
  module?: [string, string];
  /** Of a leaf. */
  leaf?: { path: string; type: string; bytes: number; grad?: boolean };
}

export interface FakeRoot {
  id: number;
  path: string;
  uid: number;
  order: number;
  alive?: boolean;
  cells?: number[] | null;
}

export interface Story {
  nodes: FakeNode[];
  roots: FakeRoot[];
  /** path, uid, kind */
  owners: [string, number, string][];
  calls: Record<string, unknown>[];
  events: Record<string, unknown>[];
  findings: Record<string, unknown>[];
  boundary: [number, number, string][];
  status: { text: string; state: string; cell: number | null };
}

/** A row of the table of places: inner and outer line are the same. */
function rowOf([cell, line, source]: NonNullable<FakeNode["place"]>, S: (text: string) => number): unknown[] {
  return [cell, line, S(source), cell, line, S(source), null, null];
}

/** The wire text of a story, as the kernel's encoder writes it. */
export function encode(story: Story, serial: number): string {
  const strings: string[] = [];
  const at = new Map<string, number>();
  const S = (text: string | null | undefined): number => {
    if (text === null || text === undefined) return -1;
    if (!at.has(text)) at.set(text, strings.push(text) - 1);
    return at.get(text)!;
  };
  const { nodes } = story;
  const index = new Map(nodes.map((node, i) => [node.uid, i]));
  const places: unknown[] = [];
  const modules: [string, string][] = [];
  const table = <T>(all: T[], row: T) => {
    const found = all.findIndex((each) => JSON.stringify(each) === JSON.stringify(row));
    return found >= 0 ? found : all.push(row) - 1;
  };
  const slots = nodes.flatMap((node) => node.slots ?? []);
  const freed = slots.filter((slot) => slot.state === SLOT.freed);
  const json = {
    schema: 2,
    serial,
    strings,
    n: nodes.length,
    uid: columnText(nodes.map((node) => node.uid)),
    name: columnText(nodes.map((node) => S(node.name))),
    seq: columnText(nodes.map((node) => (node.leaf ? -1 : node.seq))),
    kind: smallText(nodes.map((node) => (node.leaf ? 1 : 0))),
    ghost: smallText(nodes.map((node) => (node.ghost ? 1 : 0))),
    place: columnText(nodes.map((node) => (node.place ? table(places, rowOf(node.place, S)) : -1))),
    places,
    iteration: columnText(nodes.map((node) => node.place?.[3] ?? -1)),
    module: columnText(nodes.map((node) => (node.module ? table(modules, node.module) : -1))),
    modulePath: columnText(modules.map(([path]) => S(path))),
    moduleClass: columnText(modules.map(([, className]) => S(className))),
    moduleCall: columnText(modules.map(() => 0)),
    edgeEnd: endsText(nodes.map((node) => node.next.length)),
    edgeTo: columnText(nodes.flatMap((node) => node.next.map((uid) => index.get(uid)!))),
    slotEnd: endsText(nodes.map((node) => node.slots?.length ?? 0)),
    slotName: columnText(slots.map((slot) => S(slot.name))),
    slotState: smallText(slots.map((slot) => slot.state ?? 0)),
    slotType: columnText(slots.map((slot) => S(slot.type))),
    slotBytes: columnText(slots.map((slot) => slot.bytes)),
    slotStorage: columnText(slots.map((_, i) => i)),
    freedBy: columnText(freed.map((slot) => slot.freedBy ?? -1)),
    freedCount: columnText(freed.map(() => 1)),
    storageBytes: columnText(slots.map((slot) => slot.bytes)),
    storageOwners: [],
    leaves: nodes.flatMap((node, i) =>
      node.leaf ? [[i, [S(node.leaf.path)], S(node.leaf.type), node.leaf.grad === true, node.leaf.bytes]] : [],
    ),
    owners: story.owners.map(([path, uid, kind]) => [index.get(uid), 0, S(path), S(kind)]),
    roots: story.roots.map((root) => ({
      id: root.id,
      path: S(root.path),
      node: index.get(root.uid) ?? -1,
      nr: 0,
      type: S("float32[]"),
      scalar: true,
      alive: root.alive ?? true,
      order: root.order,
      cells: root.cells ?? null,
    })),
    calls: story.calls.map((call) => ({
      order: story.roots.find(({ uid }) => uid === (call.rootUids as number[])[0])?.order ?? -1,
      ...call,
      source: S(call.source as string),
      text: S(`${call.roots}.backward(${call.retain ? "retain_graph=True" : ""})`),
      did: S(
        call.result === "raised"
          ? `raised at its ${Number(call.executedCount) + 1}th node`
          : call.freedSlots
            ? `freed ${call.freedSlots} saved tensors`
            : "ran, retain_graph=True",
      ),
      roots: (call.roots as string[]).map(S),
      error: S((call.error as string) ?? ""),
      carriers: ((call.carriers as string[]) ?? []).map(S),
      forecast: S("ok"),
    })),
    boundary: story.boundary.map(([old, fresh, path]) => [old, fresh, S(path)]),
    events: story.events.map((event) => ({
      ...event,
      label: S((event.label as string) ?? ""),
      where: S((event.where as string) ?? ""),
      steps: ((event.steps as string[]) ?? []).map(S),
    })),
    event: (story.events[story.events.length - 1]?.id as number) ?? 0,
    findings: story.findings.map((finding) => ({
      ...finding,
      kicker: S(finding.kicker as string),
      headline: S(finding.headline as string),
      text: S(finding.text as string),
      node: S(finding.node as string),
      carriers: (finding.carriers as string[]).map(S),
      path: (finding.path as string[]).map(S),
      fixes: (finding.fixes as Record<string, unknown>[]).map((fix) => ({
        ...fix,
        id: S(fix.id as string),
        text: S(fix.text as string),
        note: S(fix.note as string),
        edit: (fix.edit as string[]).map(S),
        tried: S((fix.tried as string) ?? ""),
      })),
    })),
    held: held(story),
    nodes: nodes.filter((node) => !node.ghost).length,
    status: { ...story.status, text: S(story.status.text) },
    notes: [],
    torch: S("2.13.0"),
  };
  return JSON.stringify(json);
}

/** Bytes that the saved tensors of a story hold. */
export function held(story: Story): number {
  return story.nodes
    .flatMap((node) => node.slots ?? [])
    .reduce((sum, slot) => sum + ((slot.state ?? 0) === 0 ? slot.bytes : 0), 0);
}

export function call(n: number, more: Record<string, unknown>): Record<string, unknown> {
  return {
    n,
    cell: null,
    line: null,
    outerCell: null,
    outerLine: null,
    iteration: null,
    source: "",
    api: "backward",
    retain: false,
    create: false,
    roots: [],
    rootUids: [],
    result: "ok",
    error: "",
    failedUid: null,
    freedBy: null,
    executed: [],
    executedCount: 0,
    freedSlots: 0,
    freedBytes: 0,
    carriers: [],
    sameAs: null,
    ...more,
  };
}
