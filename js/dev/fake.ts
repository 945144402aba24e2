/**
 * A kernel for the dev page and the tests: no Jupyter, no Python, no torch.
 *
 * `FakeKernel` answers the messages of a `FakeModel` as the Python side does, on a small graph that it really frees:
 * the rules of autograd that matter here are in `run` (engine order, freed slots, the second backward).
 */

import type { Graph } from "../src/picture/model.ts";
import * as SLOT from "../src/picture/slot.ts";
import { decode } from "../src/picture/wire.ts";
import { slotSummary } from "../src/picture/words.ts";
import type { FakeModel } from "./fake_model.ts";
import { call, encode, type FakeNode, type FakeRoot, type FakeSlot, held, type Story } from "./fake_story.ts";

/** What a call over a node would free. */
function kept(node: FakeNode): FakeSlot[] {
  return (node.slots ?? []).filter((slot) => (slot.state ?? 0) === 0);
}

interface Run {
  order: FakeNode[];
  fails: FakeNode | null;
}

export class FakeKernel {
  readonly model: FakeModel;
  story: Story;
  serial = 0;
  /** Set to a cell's name to answer "queued" first, until `release` is called. */
  behind: string | null = null;
  /** Milliseconds before an answer; 0: at once. */
  delay = 0;
  /** Changes an answer before it is sent. */
  twist: (verb: string, answer: unknown) => unknown = (_, answer) => answer;
  private waiting: (() => void)[] = [];
  private readonly history = new Map<number, string>();

  constructor(model: FakeModel, story: Story) {
    this.model = model;
    this.story = story;
    model.receive = (message) => this.hear(message);
    this.publish();
  }

  /** Sends the picture as it is now. */
  publish(): void {
    this.serial += 1;
    const wire = encode(this.story, this.serial);
    const last = this.story.events[this.story.events.length - 1];
    if (last) this.history.set(last.id as number, wire);
    this.model.update({ wire, delta: "" });
  }

  /** Lets queued requests run. */
  release(): void {
    this.behind = null;
    for (const run of this.waiting.splice(0)) run();
  }

  private hear(message: Record<string, unknown>): void {
    const { id, verb } = message;
    const answer = () => {
      try {
        const result = this.twist(String(verb), this.answer(String(verb), message));
        this.model.emit("msg:custom", { id, ok: true, result });
      } catch (error) {
        this.model.emit("msg:custom", {
          id,
          ok: false,
          error: { message: (error as Error).message, next: "Look at the newest picture." },
        });
      }
    };
    const later = () => (this.delay ? setTimeout(answer, this.delay) : queueMicrotask(answer));
    if (this.behind && ["backward", "steps_ahead", "predict"].includes(String(verb))) {
      const { behind } = this;
      queueMicrotask(() => this.model.emit("msg:custom", { id, queued: { behind } }));
      this.waiting.push(later);
    } else later();
  }

  private answer(verb: string, message: Record<string, unknown>): unknown {
    const root = this.story.roots.find((each) => each.id === message.root);
    if ("root" in message && !root) throw new Error("This picture is out of date: that tensor is gone.");
    switch (verb) {
      case "ping":
        return {};
      case "forecast":
        return { backward: this.forecast(root!, false), retain: this.forecast(root!, true) };
      case "backward":
        return (
          this.asks(root!, message) ?? this.backward(root!, Boolean(message.retain_graph), Boolean(message.keep_grad))
        );
      case "predict":
        return this.predict(root!, message);
      case "steps_ahead":
        return this.steps(root!, Boolean(message.retain_graph), null);
      case "steps_of": {
        const n = Number(message.call);
        const { rootUids } = this.story.calls[n] as { rootUids: number[] };
        const called = this.story.roots.find(({ uid }) => uid === rootUids[0])!;
        return this.steps(called, false, n);
      }
      case "more_steps":
        return { first: 0, rows: [] };
      case "inspect": {
        const owners = this.story.owners.filter(([, uid]) => uid === message.uid);
        return {
          keptBy: owners.map(([path, , kind]) => ({ path, kind, releases: "releases 1 node, 24 B" })),
          storages: [],
        };
      }
      case "compare": {
        const [first, last] = [message.before, message.after].map((id) => this.history.get(Number(id)));
        if (!first || !last) throw new Error("The picture of this step is no longer stored.");
        const [then, now] = [first, last].map((wire) => decode(wire)) as [Graph, Graph];
        const freed = (graph: Graph, uid: number) => slotSummary(graph, [graph.indexOf(uid)]).counts[SLOT.freed]!;
        const uids = [...now.uid].filter((uid) => then.indexOf(uid) >= 0 && freed(now, uid) > freed(then, uid));
        const added = [...now.uid].filter((uid) => then.indexOf(uid) < 0);
        const summary = `${uids.length} saved tensors freed, ${added.length} nodes added; no node died.`;
        const variables = [{ name: "loss", status: "same", added: added.length, freed: uids.length, died: 0 }];
        return { wire: last, summary, held: "48 B, then 0 B", variables, more: 0, added, freed: uids, died: [] };
      }
      case "keepers": {
        const names = this.story.owners.map(([path]) => path);
        const moments = this.story.events.map(({ id, held: all }) => {
          const each = Math.floor(Number(all ?? 0) / Math.max(1, names.length));
          return [id, names.map((_, i) => (i === 0 ? Number(all ?? 0) - each * (names.length - 1) : each))];
        });
        return { names, moments };
      }
      case "export":
        return { text: "<p>", name: `autograd-graph.${message.format}`, type: "text/plain" };
      case "snapshot":
        if (!this.history.has(Number(message.event))) throw new Error("The picture of this step is no longer stored.");
        return { wire: this.history.get(Number(message.event)) };
      case "try_fix":
        return this.tryFix(message);
      case "rebuild":
        for (const slot of this.story.nodes.flatMap((node) => node.slots ?? []))
          Object.assign(slot, { state: 0, freedBy: undefined });
        this.publish();
        return {
          said: { kind: "status", text: `${root!.path} was built again by running its cells.`, next: "" },
        };
      case "cancel":
        this.waiting = [];
        this.model.emit("msg:custom", {
          id: message.request,
          ok: true,
          result: { said: { kind: "status", text: "Cancelled. Nothing has run.", next: "" } },
        });
        return {};
    }
    throw new Error(`"${verb}" is no verb.`);
  }

  /** Engine order: the highest sequence number first among the ready ones; stops at a freed slot. */
  private run(root: FakeRoot, story = this.story): Run {
    const byUid = new Map(story.nodes.map((node) => [node.uid, node]));
    const seen = new Set<FakeNode>();
    const stack = [byUid.get(root.uid)!];
    while (stack.length) {
      const node = stack.pop()!;
      if (seen.has(node)) continue;
      seen.add(node);
      stack.push(...node.next.map((uid) => byUid.get(uid)!));
    }
    const all = [...seen].sort((a, b) => Number(Boolean(a.leaf)) - Number(Boolean(b.leaf)) || b.seq - a.seq);
    const at = all.findIndex((node) => node.slots?.some((slot) => slot.state === 1));
    return at < 0 ? { order: all, fails: null } : { order: all.slice(0, at), fails: all[at]! };
  }

  private forecast(root: FakeRoot, retain: boolean): unknown {
    const { order, fails } = this.run(root);
    const frees = retain
      ? []
      : order.flatMap((node) => kept(node).map((slot) => [node.uid, node.slots!.indexOf(slot)]));
    const freed = order.flatMap((node) => (retain ? [] : kept(node))).reduce((sum, slot) => sum + slot.bytes, 0);
    const ran = new Set(order.map((node) => node.uid));
    const afterwards = this.story.roots
      .filter((other) => other.alive !== false)
      .map((other) => {
        const met = retain ? undefined : this.run(other).order.find((node) => ran.has(node.uid) && node.slots?.length);
        return { root: other.path, backward: met ? "freed" : "ok", at: met?.name ?? null };
      });
    const raising = afterwards.find(({ at }) => at);
    const then = raising ? `; afterwards ${raising.root}.backward() would then raise at ${raising.at}` : "";
    return {
      ok: fails === null,
      outcome: fails
        ? `would raise at \`${fails.name}\`: ① freed its \`self\``
        : `would free ${frees.length} saved tensors`,
      held: -freed,
      facts: fails
        ? ["Before that it would free nothing."]
        : [`They are in 3 nodes, ${freed} B, all of which come back.`],
      failsAt: fails?.uid ?? null,
      frees,
      reaches: order.flatMap((node) => (node.leaf ? [node.leaf.path] : [])),
      assumes: [],
      afterwards,
      sentence: fails ? `would raise at ${fails.name}.` : `frees ${frees.length} saved tensors${then}.`,
    };
  }

  /** Makes the call, and compares. */
  private predict(root: FakeRoot, message: Record<string, unknown>): unknown {
    const retain = Boolean(message.retain_graph);
    const { order, fails } = this.run(root);
    const freed = retain
      ? []
      : order.flatMap((node) => kept(node).map((slot) => `${node.uid}:${node.slots!.indexOf(slot)}`));
    const said = (message.frees as [number, number][] | null)?.map(([uid, at]) => `${uid}:${at}`) ?? null;
    const marks = [...new Set([...(said ?? []), ...(said ? freed : [])])].map((key) => {
      const verdict = !freed.includes(key) ? "extra" : said!.includes(key) ? "right" : "missed";
      return [...key.split(":").map(Number), verdict];
    });
    const right = (message.fails === "yes") === (fails !== null);
    const answers = [
      [right, right ? "Right: so it was." : "Wrong: it was not."],
      ...marks.map(([, , verdict]) => [verdict === "right", `${verdict}: a reason.`]),
    ];
    return {
      ...(this.backward(root, retain, Boolean(message.keep_grad)) as object),
      ...{ fact: true, fails: right, failsAt: fails ? message.fails_at === fails.uid : null },
      ...{ freed: said ? freed.length : 0, marks, answers, more: 0, score: right ? 1 : 0 },
    };
  }

  /** A call node by node. Of a recorded one: as if it had been the first on a graph that held everything. */
  private steps(root: FakeRoot, retain: boolean, n: number | null): unknown {
    const story: Story = structuredClone(this.story);
    if (n !== null) {
      for (const slot of story.nodes.flatMap((node) => node.slots ?? [])) Object.assign(slot, { state: 0 });
      for (const node of story.nodes) if (node.leaf) node.leaf.grad = false;
      story.calls = story.calls.slice(0, n + 1).map((call) => ({ ...call, result: "running", failedUid: null }));
      story.findings = [];
    }
    const { order, fails } = n === null ? this.run(root) : { ...this.run(root, story), fails: null };
    const nodes = fails ? [...order, fails] : order;
    const frees = nodes.map((node) =>
      retain || node === fails ? [] : kept(node).map((slot) => node.slots!.indexOf(slot)),
    );
    const v = (would: string, did: string) => (n === null ? would : did);
    const rows = nodes.map((node, i) => {
      const facts: [string, string][] = [["gradient", `A gradient float32[3] ${v("would arrive", "arrived")}.`]];
      if (node.leaf) facts.push(["grad", `The .grad of ${node.leaf.path} ${v("would be", "was")} set.`]);
      else if (node === fails) facts.push(["raises", "It would raise."]);
      else facts.push(["frees", frees[i]!.length ? `It ${v("would free", "freed")} it.` : "It saved no tensor."]);
      const text = facts.map(([, sentence]) => sentence).join(" ");
      const names = story.owners.flatMap(([path, uid]) => (uid === node.uid ? path : []));
      return { node: node.name, names, place: "In[1]:3", source: node.place?.[2] ?? "", facts, text };
    });
    return {
      ...{ walk: 1, n, past: n !== null, known: true, assumes: [], first: 0, rows, frees },
      call: `${root.path}.backward()`,
      ending: `${nodes.length} nodes ${v("would run", "ran")}.`,
      nodes: nodes.map((node) => node.uid),
      sets: nodes.flatMap((node, i) => (node.leaf ? [i] : [])),
      stops: fails ? "raises" : "",
      wire: n === null ? null : encode(story, 1000 + n),
    };
  }

  /** Says which cells run again; then that the fix passed. */
  private tryFix(message: Record<string, unknown>): unknown {
    const lines = ["In[1] and In[2] run again in a fresh process, with the fix, three backward calls further at most."];
    if (message.confirmed !== 5) return { asks: { key: 5, title: "This fix can be tried", lines } };
    const fixes = this.story.findings.flatMap((finding) => finding.fixes as Record<string, unknown>[]);
    const fix = fixes.find(({ key }) => key === message.fix)!;
    Object.assign(fix, { tried: "Tried: ran 3 further passes in 2.1 s.", passed: true });
    this.publish();
    return { said: { kind: "status", text: `${fix.text}. ${fix.tried}`, next: "" } };
  }

  /** The question before a call that would raise, unless the message answers it. */
  private asks(root: FakeRoot, message: Record<string, unknown>): unknown {
    const { order, fails } = this.run(root);
    const key = fails ? 1000 + fails.uid : 0;
    if (message.confirmed === key || !fails) return null;
    const lines = [
      `It would raise at \`${fails.name}\`: its saved tensor was freed by call 1.`,
      `Before that it would free ${message.retain_graph ? "nothing" : `${order.flatMap(kept).length} saved tensors`}.`,
      "It would add to no .grad.",
    ];
    return { asks: { key, title: `${root.path}.backward() would raise`, lines } };
  }

  private backward(root: FakeRoot, retain: boolean, keepGrad: boolean): unknown {
    const { order, fails } = this.run(root);
    const n = this.story.calls.length;
    let slots = 0;
    let bytes = 0;
    for (const node of order) {
      if (node.leaf) node.leaf.grad = true;
      for (const slot of retain ? [] : kept(node)) {
        Object.assign(slot, { state: 1, freedBy: n });
        slots += 1;
        bytes += slot.bytes;
      }
    }
    const message =
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed).";
    this.story.calls.push(
      call(n, {
        roots: [root.path],
        rootUids: [root.uid],
        retain,
        result: fails ? "raised" : "ok",
        error: fails ? message : "",
        failedUid: fails?.uid ?? null,
        executed: order.map((node) => node.uid),
        executedCount: order.length,
        freedSlots: slots,
        freedBytes: bytes,
      }),
    );
    const id = this.story.events.length;
    this.story.events.push({
      id,
      kind: "call",
      cell: null,
      call: n,
      iteration: null,
      label: "from the view",
      ok: !fails,
      held: held(this.story),
      nodes: this.story.nodes.length,
      kept: true,
    });
    this.story.status = fails
      ? { text: `${root.path}.backward() raised`, state: "raised", cell: null }
      : { text: `after ${root.path}.backward()`, state: "idle", cell: null };
    this.publish();
    const what = `${root.path}.backward(${retain ? "retain_graph=True" : ""})`;
    const said = fails
      ? { kind: "alert", text: `${what} raised RuntimeError: ${message}`, next: "" }
      : {
          kind: "status",
          text: `${what} ran and freed ${slots || "no"} saved tensors, ${bytes} B.`,
          next: keepGrad ? ".grad is as it was." : "",
        };
    return { said };
  }
}
