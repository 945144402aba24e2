/**
 * The live view: one root element, one state, parts that are told when it changed.
 *
 * A change of the kernel's picture goes: traits -> decode -> fold, layout (in slices) -> scene -> canvas.
 * Changes are coalesced to one drawing a frame, and an older picture never replaces a newer one.
 */
import { kernelActions, problem } from "./actions.ts";
import { Canvas, MOST_CARDS } from "./canvas.ts";
import { attr, h } from "./dom.ts";
import { emptyPart } from "./empty.ts";
import { copyText, saveSvg } from "./export.ts";
import { findingsPart } from "./findings.ts";
import { forecastPart } from "./forecast.ts";
import { grip } from "./grip.ts";
import { headerPart, tool } from "./header.ts";
import { inspectorPart, type Subject } from "./inspector.ts";
import { Kernel, type Model } from "./kernel.ts";
import { listenToKeys, type Neighbours, neighbours } from "./keyboard.ts";
import { makeDialogs } from "./legend.ts";
import { keepGradBox, messagesPart } from "./messages.ts";
import { type FoldState, search as searchNodes } from "./picture/fold/index.ts";
import { type Measure, measureByFont, measureByTable } from "./picture/measure.ts";
import type { Graph } from "./picture/model.ts";
import { unite } from "./picture/scene/rects.ts";
import { type Item, importantUids, type SceneOptions } from "./picture/scene.ts";
import { applyDelta, decode } from "./picture/wire.ts";
import { type Drawing, Pipeline } from "./pipeline.ts";
import { RootBars } from "./rootbar.ts";
import { searchPart } from "./search.ts";
import { type Context, firstState, type Part, type Show, type State, shown } from "./state.ts";
import { tablePart } from "./table.ts";
import { followTheme, markRules, prefersCalm } from "./theme.ts";
import { timelinePart } from "./timeline.ts";

const NARROW = 760;
const COMPACT = 560;
/** Where all of a picture fits only below this scale, its cards become dense. */
const ROOMY = 0.8;
const SLOT_MS = 60;
const MOST_MS = 900;

type Need = "parts" | "look" | "graph";

export class View {
  private readonly model: Model;
  private readonly root: HTMLElement;
  private readonly signal: AbortSignal;
  private readonly context: Context;
  private readonly canvas: Canvas;
  private readonly bars: RootBars;
  private readonly pipeline = new Pipeline();
  private readonly parts: Part[];
  private readonly dialogs;
  private readonly kernelSide;
  private drawing: Drawing | null = null;
  private along: Neighbours | null = null;
  private base: { wire: string; graph: Graph } | null = null;
  private measure: Measure = measureByTable;
  private level = 3;
  /** One-line cards, because cards of two lines would not fit. */
  private dense = false;
  private need: Need | null = null;
  private frame = 0;
  private announced: number | null = null;
  /** Keys to bring into view after the next drawing; the first one gets the focus if `takeFocus`. */
  private wanted: string[] = [];
  private takeFocus = false;

  constructor(model: Model, el: HTMLElement, signal: AbortSignal) {
    this.model = model;
    this.signal = signal;
    this.root = h("div", { class: "graphwidget", "data-lm-suppress-shortcuts": "true", "data-theme": "light" });
    const state = firstState();
    const kernel = new Kernel(model, signal, (link) => this.set({ link }));
    this.context = {
      root: this.root,
      signal,
      kernel,
      state,
      set: (patch) => this.set(patch),
      act: null as unknown as Context["act"],
    };
    this.dialogs = makeDialogs(signal);
    this.kernelSide = kernelActions(this.context, {
      ask: (content) => this.dialogs.open("ask", content),
      closeDialog: () => this.dialogs.close(),
      failed: (uid) => {
        this.wanted = [`n${uid}`];
      },
    });
    Object.assign(this.context, { act: this.actions() });
    this.canvas = new Canvas(this.root, signal, {
      press: (item, again) => this.press(item, again),
      open: (item) => this.open(item.key),
      background: () => this.set({ selected: null, spot: null }),
      focused: () => {},
      moved: () => this.moved(),
    });
    this.bars = new RootBars(this.context, this.canvas);
    const search = searchPart(this.context);
    const panel = [
      messagesPart(this.context),
      forecastPart(this.context),
      findingsPart(this.context),
      inspectorPart(this.context, () => this.subject()),
    ];
    const header = headerPart(this.context, () => this.drawing?.folded.boxes.length ?? 0, search.el);
    const empty = emptyPart(this.context);
    const table = tablePart(this.context);
    const timeline = timelinePart(this.context);
    this.parts = [search, header, ...panel, empty, table, timeline];
    const aside = h(
      "aside",
      { class: "gw-panel", "aria-label": "Details" },
      panel.map((part) => part.el),
      keepGradBox(this.context),
    );
    const zoom = (by: number) => () => this.canvas.viewport.zoom(by);
    const lens = h(
      "div",
      { class: "gw-lens" },
      tool("plus", "Zoom in", zoom(1.25), "+"),
      tool("minus", "Zoom out", zoom(0.8), "-"),
    );
    const stage = h("div", { class: "gw-stage" }, this.canvas.el, lens, empty.el, table.el);
    this.root.append(
      h("style", {}, markRules()),
      header.el,
      h("div", { class: "gw-body" }, stage, aside),
      timeline.el,
      grip(this.root, model, signal),
      this.dialogs.el,
    );
    el.append(this.root);
    this.connect();
    void kernel.ping();
  }

  private connect(): void {
    const { model, signal } = this;
    const receive = () => this.receive();
    const busy = () => this.set({ busy: String(model.get("busy") ?? "") });
    const listeners: [string, () => void][] = [
      ["change:wire", receive],
      ["change:delta", receive],
      ["change:busy", busy],
    ];
    for (const [name, callback] of listeners) model.on(name, callback);
    listenToKeys(this.context, {
      canvas: this.canvas,
      along: () => this.neighbours(),
      failing: () => this.failing(),
      highlight: (position) => this.highlight(position),
      cell: (by) => this.kernelSide.cell(by),
      escape: () => this.escape(),
    });
    followTheme(this.root, signal, () => this.canvas.repaint());
    const resize = new ResizeObserver(() => this.resized());
    resize.observe(this.root);
    signal.addEventListener("abort", () => {
      for (const [name, callback] of listeners) model.off(name, callback);
      resize.disconnect();
      cancelAnimationFrame(this.frame);
      this.root.remove();
    });
    busy();
    this.receive();
  }

  // ---- State -> drawing ---------------------------------------------------------------------------------------

  private set(patch: Partial<State>): void {
    const { state } = this.context;
    const before = shown(state);
    const changes = (name: keyof State) => name in patch && patch[name] !== state[name];
    const structure = (["opened", "closed", "show", "spot"] as const).some(changes);
    const look = (["preview", "highlight", "search"] as const).some(changes);
    Object.assign(state, patch);
    if (shown(state) !== before && state.now === patch.now) state.kept = new Map();
    this.schedule(structure || shown(state) !== before ? "graph" : look ? "look" : "parts");
  }

  private schedule(need: Need): void {
    const rank = { parts: 0, look: 1, graph: 2 };
    if (this.need === null || rank[need] > rank[this.need]) this.need = need;
    if (this.frame || this.signal.aborted) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const what = this.need ?? "parts";
      this.need = null;
      void this.update(what).catch((error) => this.failed(error));
    });
  }

  private failed(error: unknown): void {
    console.error("graphwidget:", error);
    this.context.state.answer = problem(error);
    for (const part of this.parts) part.update();
  }

  private async update(what: Need): Promise<void> {
    const graph = shown(this.context.state);
    if (graph && what === "graph") {
      const before = this.drawing;
      const run = () =>
        this.pipeline.run(
          graph,
          this.foldState(graph),
          (boxes) => this.options(boxes > MOST_CARDS),
          () => this.set({ drawing: graph.n }),
        );
      let drawing = await run();
      if (drawing && this.wantsDense(drawing)) {
        this.dense = true;
        this.pipeline.forget();
        drawing = await run();
      }
      if (!drawing || this.signal.aborted) return; // a newer picture is on its way
      this.context.state.drawing = null;
      this.drawing = drawing;
      this.show(this.delays(before?.graph ?? null, graph));
      if (this.canvas.big && this.level < 3 && drawing.folded.boxes.length <= MOST_CARDS) {
        this.drawing = this.pipeline.again(drawing, this.options());
        this.show(null);
      }
    } else if (this.drawing && what === "look" && this.canvas.big) {
      this.canvas.ringHits(this.hits().map((uid) => this.keyOf(uid)));
      this.bring();
    } else if (this.drawing && what === "look") {
      this.drawing = this.pipeline.again(this.drawing, this.options());
      this.show(null);
    }
    this.dress();
    for (const part of this.parts) part.update();
    this.bars.update();
  }

  private wantsDense({ folded, scene }: Drawing): boolean {
    const { viewport } = this.canvas;
    return !this.dense && !viewport.taken && folded.boxes.length <= MOST_CARDS && this.canvas.scaleFor(scene) < ROOMY;
  }

  private show(delays: Map<number, number> | null): void {
    const { scene, graph } = this.drawing!;
    this.along = null;
    this.canvas.draw(scene, graph, delays, prefersCalm());
    const { state } = this.context;
    if (state.selected !== null && !this.canvas.byKey.has(state.selected)) state.selected = null;
    this.canvas.select(state.selected);
    this.askKept();
    this.bring();
  }

  /** Brings what was asked for into view. */
  private bring(): void {
    const wanted = this.wanted.flatMap((key) => this.itemsOf(key));
    this.wanted = [];
    if (wanted.length && this.takeFocus) this.canvas.focus(wanted[0]!.key);
    this.takeFocus = false;
    if (wanted.length) this.canvas.viewport.show(unite(wanted));
  }

  /** The item of a key; of an open group, those inside. */
  private itemsOf(key: string): Item[] {
    const { byKey } = this.canvas;
    const inside = () =>
      this.drawing!.folded.boxes.filter((box) => box.parent === key).flatMap((box) => byKey.get(box.key) ?? []);
    const item = byKey.get(key);
    return item ? [item] : inside();
  }

  /** The key of what stands for a node: its card, or the group that it is in. */
  private keyOf(uid: number): string {
    const { graph, folded } = this.drawing!;
    return folded.boxes[folded.boxOf[graph.indexOf.get(uid) ?? -1] ?? -1]?.key ?? `n${uid}`;
  }

  /** Attributes of the root and the tree that tests and screen readers wait for. */
  private dress(): void {
    const { state } = this.context;
    const graph = shown(state);
    attr(this.root, "data-serial", state.now?.serial);
    attr(this.root, "data-event", state.pastEvent ?? graph?.event);
    attr(this.root, "data-link", state.link);
    attr(this.root, "data-past", state.pastEvent === null ? null : "true");
    attr(this.root, "data-running", state.running ? state.running.what : null);
    if (!graph) return;
    const findings = graph.findings.length;
    const nodes = graph.n - graph.leaves.size;
    this.canvas.label(`Autograd graph, ${nodes} nodes, ${findings} finding${findings === 1 ? "" : "s"}`);
  }

  private foldState(graph: Graph): FoldState {
    const { opened, closed, show, spot } = this.context.state;
    const visible = [...(spot ?? []), ...importantUids(graph)];
    const from = show.from;
    const state: FoldState = { opened, closed, visible };
    if (show.what === "all") state.expandAll = true;
    else if (show.what === "freed") state.focus = { kind: "freed" };
    else if (show.what === "around" && from !== null) state.focus = { kind: "around", uid: from, levels: 2 };
    else if (show.what === "root" && from !== null) state.focus = { kind: "root", uid: from };
    else if (show.what === "cell" && from !== null) state.focus = { kind: "cell", cell: from };
    return state;
  }

  /** `big`: drawn as a bitmap, which has everything and picks its own level of detail. */
  private options(big = this.canvas.big): SceneOptions {
    const { preview, highlight, search, past } = this.context.state;
    const width = this.canvas.viewport.width;
    const forecast = preview?.forecasts?.[preview.mode];
    const hits = this.hits();
    return {
      measure: this.measure,
      scale: big ? 1 : [0.2, 0.4, 0.6, 1][this.level],
      compact: this.dense || this.root.dataset.width === "compact",
      buttons: past === null,
      rail: width >= 420 ? undefined : false,
      forecast: forecast
        ? {
            executes: forecast.executes,
            frees: preview!.mode === "retain" ? [] : forecast.frees,
            failsAt: forecast.failsAt,
            root: preview!.root.id,
          }
        : null,
      hits: hits.length ? new Set(hits) : null,
      hit: search?.hits[search.at] ?? null,
      onlyRoot: highlight,
    };
  }

  /** What stands out: the hits of a search, else the nodes that a finding asked for. */
  private hits(): readonly number[] {
    const { search, spot } = this.context.state;
    if (search?.hits.length) return search.hits;
    return spot && spot.length > 1 ? spot : [];
  }

  /** Slots empty in the engine's order: uid -> milliseconds, for calls that the last picture did not know. */
  private delays(before: Graph | null, graph: Graph): Map<number, number> | null {
    const call = graph.calls[graph.calls.length - 1];
    if (
      !before ||
      !call?.executed?.length ||
      before.calls.some((known) => known.n === call.n && known.result === call.result)
    )
      return null;
    const pace = Math.min(SLOT_MS, MOST_MS / call.executed.length);
    return new Map(call.executed.map((uid, i) => [uid, i * pace]));
  }

  // ---- Kernel -> state ----------------------------------------------------------------------------------------

  private receive(): void {
    const wire = String(this.model.get("wire") ?? "");
    const delta = String(this.model.get("delta") ?? "");
    if (!wire) {
      this.schedule("parts");
      return;
    }
    try {
      if (this.base?.wire !== wire) this.base = { wire, graph: decode(wire) };
      const graph = delta ? applyDelta(this.base.graph, delta) : this.base.graph;
      const { now } = this.context.state;
      if (now && (graph === now || graph.serial < now.serial)) return; // an older picture never replaces a newer one
      this.set({ now: graph });
      this.announce(graph);
    } catch (error) {
      // Traits of one change may arrive one by one: a delta then waits for its picture.
      if (delta && this.context.state.now) return;
      this.failed(error);
    }
  }

  /** A new failure is brought into view once. */
  private announce(graph: Graph): void {
    const last = graph.calls[graph.calls.length - 1];
    if (last?.failedUid == null || last.n === this.announced) return;
    this.announced = last.n;
    this.wanted = [`n${last.failedUid}`];
  }

  private resized(): void {
    const width = this.root.clientWidth;
    if (width <= 0) return;
    const kind = width < COMPACT ? "compact" : width < NARROW ? "narrow" : "wide";
    const changed = this.root.dataset.width !== kind;
    this.root.dataset.width = kind;
    if (this.measure === measureByTable && this.fonts()) this.schedule("graph");
    else if (changed) this.schedule("graph");
  }

  /** Widths by a canvas, once the style sheet says which fonts there are. */
  private fonts(): boolean {
    const context = document.createElement("canvas").getContext?.("2d");
    const style = getComputedStyle(this.root);
    const mono = h("code", { class: "gw-probe" });
    this.root.append(mono);
    const fonts = { ui: style.fontFamily || "sans-serif", mono: getComputedStyle(mono).fontFamily || "monospace" };
    mono.remove();
    if (!context) return false;
    this.measure = measureByFont((words, font) => {
      context.font = font;
      return context.measureText(words).width;
    }, fonts);
    return true;
  }

  private moved(): void {
    this.bars.place();
    const scale = this.canvas.viewport.scale;
    const level = scale >= 0.79 ? 3 : scale >= 0.55 ? 2 : scale >= 0.3 ? 1 : 0;
    if (level === this.level) return;
    this.level = level;
    // A bitmap picks its own level of detail: making a large scene anew would take seconds.
    if (!this.canvas.big) this.schedule("look");
  }

  // ---- What the user does -------------------------------------------------------------------------------------

  private subject(): Subject | null {
    const { selected } = this.context.state;
    const item = selected === null ? undefined : this.canvas.byKey.get(selected);
    if (!item || !this.drawing) return null;
    const { graph, folded } = this.drawing;
    const { key } = item;
    if (item.role === "root") {
      const node = graph.roots.find((each) => each.id === item.root)?.node ?? -1;
      return node >= 0 ? { key, node, inside: null } : null;
    }
    const box = folded.boxes.find((each) => each.key === key);
    const inside = folded.open.find((group) => group.key === box?.parent) ?? null;
    const open = folded.open.find((group) => group.key === key);
    if (open) {
      const nodes = folded.boxes.filter((each) => each.parent === key).flatMap((each) => [...each.nodes]);
      return { key, inside: open, group: { title: open.title, nodes } };
    }
    if (box && box.kind !== "node") {
      const title = box.times > 1 ? `${box.title} ×${box.times}` : box.title;
      return { key, inside, group: { title, nodes: box.nodes } };
    }
    return item.index === undefined ? null : { key, inside, node: item.index };
  }

  private press(item: Item, again: boolean): void {
    if (item.role === "root") {
      const { highlight } = this.context.state;
      this.set({ highlight: highlight === item.root ? null : (item.root ?? null) });
    }
    if (again && item.role === "group") {
      this.open(item.key);
      return;
    }
    this.canvas.focus(item.key);
    this.select(item.key);
  }

  private select(key: string | null): void {
    this.set({ selected: key });
    this.askKept();
  }

  /** Asks once a picture what keeps the selected node alive. */
  private askKept(): void {
    const node = this.subject()?.node;
    const graph = this.drawing?.graph;
    if (graph && node !== undefined && !graph.ghost[node] && !this.context.state.past)
      this.kernelSide.inspect(graph.uid[node]!);
  }

  /** Opens a closed group, closes an open one. */
  private open(key: string): void {
    const { state } = this.context;
    const opened = new Set(state.opened);
    const closed = new Set(state.closed);
    const isOpen = this.drawing?.folded.open.some((group) => group.key === key) ?? false;
    if (!isOpen && !this.drawing?.folded.boxes.some((box) => box.key === key && box.kind !== "node")) return;
    const [into, from] = isOpen ? [closed, opened] : [opened, closed];
    into.add(key);
    from.delete(key);
    this.wanted = [key];
    this.takeFocus = true;
    this.set({ opened, closed, selected: state.selected === key ? null : state.selected });
  }

  private neighbours(): Neighbours {
    const { graph, folded, scene } = this.drawing!;
    this.along ??= neighbours(graph, folded, scene.items);
    return this.along;
  }

  /** Brings nodes into view, out of closed groups too; several are marked like search hits. */
  private reveal(uids: readonly number[]): void {
    if (!uids.length) return;
    this.wanted = uids.map((uid) => `n${uid}`);
    this.takeFocus = uids.length === 1;
    this.set({ spot: uids });
  }

  private failing(): void {
    const graph = shown(this.context.state);
    if (!graph) return;
    const { finding } = this.context.state;
    const uids = graph.findings.map((each) => each.uid ?? each.uids[0]).filter((uid) => uid != null) as number[];
    if (!uids.length) return;
    const next = finding === null ? 0 : (finding + 1) % uids.length;
    this.set({ finding: next, selected: null });
    this.reveal([uids[next]!]);
  }

  private highlight(position: number | null): void {
    const roots = shown(this.context.state)?.roots.filter((root) => root.alive) ?? [];
    this.set({ highlight: position === null ? null : (roots[position]?.id ?? null) });
  }

  private escape(): boolean {
    const { state } = this.context;
    if (state.search) this.set({ search: null });
    else if (state.preview) this.set({ preview: null });
    else if (state.selected !== null || state.spot !== null || state.highlight !== null)
      this.set({ selected: null, spot: null, highlight: null });
    else if (state.table) this.set({ table: false });
    else if (state.past) this.context.act.travel(null);
    else {
      // Leave the graph: the host's own keys work again.
      ((this.root.getRootNode() as Document).activeElement as HTMLElement | null)?.blur();
    }
    return true;
  }

  private search(words: string | null): void {
    const graph = shown(this.context.state);
    if (words === null || !graph) {
      this.set({ search: null });
      if (this.canvas.focusKey) this.canvas.focus(this.canvas.focusKey);
      return;
    }
    const hits = [...searchNodes(graph, words)].map((node) => graph.uid[node]!);
    if (hits.length && this.drawing) this.wanted = [this.keyOf(hits[0]!)];
    this.set({ search: { text: words, hits, at: 0 } });
  }

  private nextHit(by: number): void {
    const { search } = this.context.state;
    if (!search?.hits.length) return;
    const at = (search.at + by + search.hits.length) % search.hits.length;
    this.wanted = [`n${search.hits[at]}`];
    const hidden = !this.canvas.byKey.has(`n${search.hits[at]}`);
    this.set({ search: { ...search, at }, ...(hidden ? { spot: [search.hits[at]!] } : {}) });
  }

  private showOnly(what: Show["what"]): void {
    const { selected, now } = this.context.state;
    const item = this.canvas.byKey.get(selected ?? this.canvas.focusKey ?? "");
    const root = now?.roots.find((each) => each.id === item?.root) ?? now?.roots.find((each) => each.alive);
    let from = item?.uid ?? null;
    if (what === "root") from = (root && now?.uid[root.node]) ?? null;
    if (what === "cell") {
      const place = now?.places[now.place[item?.index ?? -1] ?? -1];
      from = place ? (place.outerCell ?? place.cell) : (now?.status.cell ?? null);
    }
    this.pipeline.forget();
    this.dense = false;
    this.canvas.viewport.taken = false;
    this.set({ show: { what, from } });
  }

  private actions(): Context["act"] {
    return {
      ...this.kernelSide,
      select: (key) => this.select(key),
      focus: (key) => this.canvas.focus(key),
      open: (key) => this.open(key),
      reveal: (uids) => this.reveal(uids),
      show: (what) => this.showOnly(what),
      fit: () => this.canvas.fit(),
      tidy: () => {
        this.pipeline.forget();
        this.dense = false;
        this.canvas.viewport.taken = false;
        this.schedule("graph");
      },
      export: (what) => {
        if (!this.drawing) return;
        const say = (words: string) => this.set({ answer: { kind: "status", text: words, next: "" } });
        if (what === "svg") say(saveSvg(this.drawing.scene, this.root.dataset.theme ?? "light"));
        else void copyText(this.drawing.graph).then(say);
      },
      search: (words) => this.search(words),
      nextHit: (by) => this.nextHit(by),
      legend: () => this.dialogs.open("legend"),
      help: () => this.dialogs.open("help"),
    };
  }
}
