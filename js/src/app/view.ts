/**
 * The live view: one root element, one state, parts that are told when it changed.
 *
 * A change of the kernel's picture goes: traits -> decode -> fold, layout -> scene -> canvas, in slices. Changes are
 * coalesced to one drawing a frame, one drawing is made at a time, and an older picture never replaces a newer one.
 */

import { Canvas, MOST_CARDS } from "../canvas/canvas.ts";
import { attr, attrs, focused, h } from "../page/dom.ts";
import { drive } from "../page/drive.ts";
import { followTheme, fontsOf, markRules, prefersCalm } from "../page/theme.ts";
import { emptyPart } from "../panels/empty.ts";
import { findingsPart } from "../panels/findings.ts";
import { forecastPart } from "../panels/forecast.ts";
import { headerPart, tool } from "../panels/header.ts";
import { inspectorPart, type Subject } from "../panels/inspector.ts";
import { type Dialogs, makeDialogs } from "../panels/legend.ts";
import { keepGradBox, messagesPart } from "../panels/messages.ts";
import { RootBars } from "../panels/rootbar.ts";
import { searchPart } from "../panels/search.ts";
import { tablePart } from "../panels/table.ts";
import { timelinePart } from "../panels/timeline.ts";
import {
  boxOfUid,
  type Focus,
  type Folded,
  type FoldState,
  MAX_BOXES,
  ONE_SCREEN,
  search as searchNodes,
} from "../picture/fold/index.ts";
import { type Measure, measureAsCode, measureByFont } from "../picture/measure.ts";
import type { Graph } from "../picture/model.ts";
import { levelOf, rootsOf } from "../picture/scene/context.ts";
import { importantUids } from "../picture/scene/index.ts";
import { unite } from "../picture/scene/rects.ts";
import type { Item, Level, SceneOptions } from "../picture/scene/types.ts";
import { applyDelta, decodeSlices } from "../picture/wire.ts";
import { follow, Kernel, type Model } from "../state/kernel.ts";
import { count } from "../state/say.ts";
import { type Actions, type Context, firstState, type Part, type Show, type State, shown } from "../state/state.ts";
import { kernelActions, problem, told } from "./actions.ts";
import { copyText, saveSvg } from "./export.ts";
import { keepHome } from "./home.ts";
import { listenToKeys } from "./keyboard.ts";
import { type Drawing, drawn, redrawn } from "./pipeline.ts";

const NARROW = 760;
const COMPACT = 560;
/** A first look that would need a smaller scale shows less. */
const ROOMY = 0.8;
/** Where all of it would need a smaller scale, more than a row could not be seen and read: it is folded further, */
const CUT = 0.53;
/** but not to fewer boxes than these. */
const LEAST = 12;
const SLOT_MS = 60;
const UNSAVED = ["Nothing was saved: keys stay in this view.", "Click in the notebook, then save."] as const;
const MOST_MS = 900;

/** What a change asks for, the least first: the parts, the same boxes drawn anew, another picture. */
const NEEDS = ["parts", "look", "graph"] as const;
const LOOK = ["preview", "highlight", "search"] as const;
const STRUCTURE = ["opened", "closed", "show", "spot"] as const;

export class View {
  readonly #model: Model;
  readonly #root = h("div.graphwidget", { "data-theme": "light" });
  readonly #signal: AbortSignal;
  readonly #state = firstState();
  readonly #context: Context;
  readonly #canvas: Canvas;
  readonly #bars: RootBars;
  readonly #parts: Part[];
  #drawing: Drawing | null = null;
  /** What the trait `wire` says, as text and read. */
  #wire = "";
  #base: Promise<Graph | null> | undefined;
  #measure: Measure = measureAsCode;
  /** How much of a card is written out at this distance: 3 is everything. */
  #level: Level = 3;
  /** One-line cards, because cards of two lines would not fit. */
  #dense = false;
  /** No code beside the drawing, because there is no room for it. */
  #bare = false;
  /** No more boxes than so many: less where they would not be readable. */
  #most = MAX_BOXES;
  /** The next picture is laid out without regard to this one. */
  #afresh = false;
  /** Positions in `NEEDS`: what the next frame is to do; what is to be drawn after what is being drawn. */
  #need = -1;
  #next = 0;
  #draws = false;
  #announced: number | null = null;
  /** Keys to bring into view after the next drawing; the first one gets the focus if `takeFocus`. */
  #wanted: string[] = [];
  #takeFocus = false;

  constructor(model: Model, el: HTMLElement, signal: AbortSignal) {
    this.#model = model;
    this.#signal = signal;
    const root = this.#root;
    const set = (patch: Partial<State>) => this.#set(patch);
    const kernel = new Kernel(model, signal, (link) => set({ link }));
    const context = { root, signal, kernel, state: this.#state, set, act: {} as Actions };
    this.#context = context;
    const dialogs = makeDialogs(context);
    const act: Actions = { ...kernelActions(context), ...dialogs.acts, ...this.#actions() };
    Object.assign(context.act, act);
    const canvas = new Canvas(root, signal, {
      press: (item, again) => this.#press(item, again),
      open: (key) => this.#open(key),
      background: () => set({ selected: null, spot: null }),
      moved: () => this.#moved(),
      resized: () => this.#resized(),
    });
    this.#canvas = canvas;
    this.#bars = new RootBars(context, canvas);
    const search = searchPart(context);
    const panel = [
      messagesPart(context),
      forecastPart(context),
      findingsPart(context),
      inspectorPart(context, () => this.#subject()),
    ];
    const header = headerPart(context, () => this.#drawing?.folded.boxes.length ?? 0, search.el);
    const over = [emptyPart(context), tablePart(context)];
    const timeline = timelinePart(context);
    this.#parts = [search, header, ...panel, ...over, timeline];
    const elements = (parts: Part[]) => parts.map((part) => part.el);
    const zoom = (by: number) => () => canvas.viewport.zoom(by);
    const lens = h(
      "div.gw-row.gw-lens",
      tool("plus", "Zoom in", zoom(1.25), "+"),
      tool("minus", "Zoom out", zoom(0.8), "-"),
    );
    root.append(
      h("style", markRules()),
      header.el,
      h(
        "div.gw-body",
        h("div.gw-stage", canvas.el, lens, elements(over)),
        h("aside.gw-panel", { "aria-label": "Details" }, elements(panel), keepGradBox(context)),
      ),
      timeline.el,
      dialogs.el,
    );
    el.append(root);
    this.#connect();
    void kernel.ping();
  }

  #connect(): void {
    const signal = this.#signal;
    const root = this.#root;
    const receive = () => void this.#receive();
    const height = () => attr(root, "style", `--gw-h:${this.#model.get("height")}px`);
    const busy = () => this.#set({ busy: String(this.#model.get("busy") ?? "") });
    follow(this.#model, signal, {
      "change:wire": receive,
      "change:delta": receive,
      "change:busy": busy,
      "change:height": height,
    });
    listenToKeys(this.#context, this.#canvas);
    keepHome(root, signal, () => this.#set({ answer: told(...UNSAVED) }));
    followTheme(root, signal, () => this.#canvas.repaint());
    signal.addEventListener("abort", () => root.remove());
    height();
    busy();
    receive();
  }

  // ---- State -> drawing ---------------------------------------------------------------------------------------

  #set(patch: Partial<State>): void {
    const state = this.#state;
    const before = shown(state);
    const changes = (name: keyof State) => name in patch && patch[name] !== state[name];
    const structure = STRUCTURE.some(changes);
    const look = LOOK.some(changes);
    Object.assign(state, patch);
    this.#canvas.viewport.rests = state.preview !== null;
    const other = shown(state) !== before;
    if (other && state.now === patch.now) state.kept = new Map();
    this.#schedule(structure || other ? "graph" : look ? "look" : "parts");
  }

  /** Coalesces what changes to one answer a frame. */
  #schedule(need: (typeof NEEDS)[number]): void {
    const idle = this.#need < 0;
    this.#need = Math.max(this.#need, NEEDS.indexOf(need));
    if (idle) requestAnimationFrame(() => this.#answer());
  }

  #answer(): void {
    if (this.#signal.aborted) return;
    this.#next = Math.max(this.#next, this.#need);
    if (this.#need === 0) this.#tell();
    this.#need = -1;
    void this.#drawAll();
  }

  /** Draws until nothing has changed meanwhile. */
  async #drawAll(): Promise<void> {
    if (this.#draws) return;
    this.#draws = true;
    while (this.#next) {
      const what = NEEDS[this.#next]!;
      this.#next = 0;
      try {
        if (await (what === "graph" ? this.#drawGraph() : this.#drawLook())) this.#tell();
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#draws = false;
  }

  /** Whether what is being drawn is still the newest picture. */
  readonly #isWanted = () => !this.#signal.aborted && NEEDS[this.#next] !== "graph";

  #failed(error: unknown): void {
    console.error("graphwidget:", error);
    Object.assign(this.#state, { answer: problem(error), drawing: null });
    this.#tell();
  }

  /** Tells the parts that something has changed. */
  #tell(): void {
    const graph = shown(this.#state);
    this.#dress(graph);
    for (const part of this.#parts) part.update(graph);
    this.#bars.update();
  }

  async #drawGraph(): Promise<boolean> {
    const graph = shown(this.#state);
    if (!graph) return true;
    // For what is much smaller there may be room again.
    if (graph.n < (this.#drawing?.graph.n as number) / 2) this.#unfit();
    const run = () =>
      drawn(
        graph,
        this.#foldState(graph),
        (boxes) => this.#options(boxes > MOST_CARDS),
        this.#afresh ? null : this.#drawing,
        this.#isWanted,
        () => this.#set({ drawing: graph.n }),
      );
    let drawing = await run();
    while (drawing && this.#wantsLess(drawing)) drawing = await run();
    if (!drawing || !(await this.#show(drawing, this.#delays(graph)))) return false;
    this.#state.drawing = null;
    this.#afresh = false;
    return this.#canvas.big && drawing.folded.boxes.length <= MOST_CARDS && this.#level < 3
      ? this.#redo(drawing)
      : true;
  }

  async #drawLook(): Promise<boolean> {
    if (!this.#drawing) return true;
    if (!this.#canvas.big) return this.#redo(this.#drawing);
    this.#canvas.ringHits(this.#hits().map((uid) => this.#keyOf(uid)));
    this.#bring();
    return true;
  }

  /** Draws the same boxes with other options. */
  async #redo(drawing: Drawing): Promise<boolean> {
    const again = await redrawn(drawing, this.#options(), this.#isWanted);
    return again !== null && this.#show(again);
  }

  /** Whether a first look has to show less: cards of one line, fewer boxes, no code beside them. */
  #wantsLess({ graph, folded, plan, space: { content } }: Drawing): boolean {
    const { viewport } = this.#canvas;
    if (viewport.taken || folded.boxes.length > MOST_CARDS) return false;
    if (!this.#dense && content.h * ROOMY > viewport.height) return (this.#dense = this.#afresh = true);
    const { opened, show } = this.#state;
    const mayFold = !(opened.size || show.what === "all" || viewport.fits || nodesOf(graph) <= ONE_SCREEN);
    if (mayFold && this.#most > LEAST && viewport.whole(content) < CUT) {
      this.#most = Math.min(ONE_SCREEN, this.#most * 0.7);
      this.#dense = false;
      return true;
    }
    return plan.context.rail && (this.#bare = content.w * ROOMY > viewport.width);
  }

  async #show(drawing: Drawing, delays?: Map<number, number> | null): Promise<boolean> {
    const options = { delays: delays ?? null, calm: prefersCalm(), wanted: this.#isWanted };
    if (!(await this.#canvas.draw(drawing.space, drawing.graph, options))) return false;
    this.#drawing = drawing;
    const state = this.#state;
    if (!this.#canvas.byKey.has(state.selected ?? "")) state.selected = null;
    this.#canvas.select(state.selected);
    this.#bring();
    return true;
  }

  /** Brings what was asked for into view. */
  #bring(): void {
    const wanted = this.#wanted.flatMap((key) => this.#itemsOf(key));
    this.#wanted = [];
    if (wanted[0]) {
      if (this.#takeFocus) this.#canvas.focus(wanted[0].key);
      this.#canvas.viewport.show(unite(wanted));
    }
    this.#takeFocus = false;
  }

  /** The item of a key; of an open group, those inside. */
  #itemsOf(key: string): Item[] {
    const { byKey } = this.#canvas;
    const item = byKey.get(key);
    const inside = () => this.#drawing!.folded.boxes.filter((box) => box.parent === key);
    return item ? [item] : inside().flatMap((box) => byKey.get(box.key) ?? []);
  }

  /** The key of what stands for a node: its card, or the group that it is in. */
  #keyOf(uid: number): string {
    const drawing = this.#drawing!;
    return drawing.folded.boxes[boxOfUid(drawing, uid)]?.key ?? `n${uid}`;
  }

  /** Attributes of the root and the tree that tests and screen readers wait for. */
  #dress(graph: Graph | null): void {
    const { now, past, pastEvent, selected } = this.#state;
    attrs(this.#root, { "data-serial": now?.serial, "data-past": (past || pastEvent !== null) && "true" });
    this.#canvas.select(selected);
    if (!graph) return;
    this.#canvas.label(`Autograd graph, ${nodesOf(graph)} nodes, ${count(graph.findings.length, "finding")}`);
  }

  #foldState(graph: Graph): FoldState {
    const { opened, closed, spot } = this.#state;
    const { what, from } = this.#state.show;
    const visible = [...(spot ?? []), ...importantUids(graph)];
    const state: FoldState = { opened, closed, visible, maxBoxes: this.#most, expandAll: what === "all" };
    if (what === "freed" || from !== null) state.focus = { kind: what as Focus["kind"], from };
    return state;
  }

  /** `big`: drawn as a bitmap, which has everything and picks its own level of detail. */
  #options(big = this.#canvas.big): SceneOptions {
    const { preview, highlight, search, past } = this.#state;
    const hits = this.#hits();
    return {
      measure: this.#measure,
      level: big ? 3 : this.#level,
      compact: this.#dense || this.#root.dataset.width === "compact",
      buttons: !past,
      rail: !this.#bare,
      forecast: preview?.forecasts?.[preview.mode] ?? null,
      hits: hits.length ? new Set(hits) : null,
      hit: search?.hits[search.at] ?? null,
      onlyRoot: highlight,
    };
  }

  /** What stands out: the hits of a search, else the nodes that a finding asked for. */
  #hits(): readonly number[] {
    const { search, spot } = this.#state;
    if (search?.hits.length) return search.hits;
    return spot && spot.length > 1 ? spot : [];
  }

  /** Slots empty in the engine's order: uid -> milliseconds, for a call that the last picture did not know. */
  #delays(graph: Graph): Map<number, number> | null {
    const before = this.#drawing?.graph;
    const call = graph.calls.at(-1);
    const known = before?.calls.some(({ n, result }) => n === call?.n && result === call.result);
    if (!before || known || !call?.executed?.length) return null;
    const pace = Math.min(SLOT_MS, MOST_MS / call.executed.length);
    return new Map(call.executed.map((uid, i) => [uid, i * pace]));
  }

  // ---- Kernel -> state ----------------------------------------------------------------------------------------

  async #receive(): Promise<void> {
    const [wire, delta] = ["wire", "delta"].map((name) => String(this.#model.get(name) ?? ""));
    if (!wire) return this.#schedule("parts");
    if (wire !== this.#wire) {
      this.#wire = wire;
      this.#base = drive(decodeSlices(wire), () => this.#model.get("wire") === wire && !this.#signal.aborted);
    }
    try {
      const base = await this.#base;
      if (!base || delta !== this.#model.get("delta")) return; // there is a newer one by now
      const graph = delta ? applyDelta(base, delta) : base;
      const { now } = this.#state;
      if (now && (graph === now || graph.serial < now.serial)) return; // an older picture never replaces a newer one
      this.#set({ now: graph });
      this.#announce(graph);
    } catch (error) {
      // Traits of one change may arrive one by one: a delta then waits for its picture.
      if (!delta || !this.#state.now) this.#failed(error);
    }
  }

  /** A new failure is brought into view once. */
  #announce(graph: Graph): void {
    const { failedUid, n } = graph.calls.at(-1) ?? {};
    if (failedUid == null || n === this.#announced) return;
    this.#announced = n!;
    this.#wanted = [`n${failedUid}`];
  }

  /** There is another size of screen: what fits, fits anew. */
  #resized(): void {
    const width = this.#root.clientWidth;
    const kind = width < COMPACT ? "compact" : width < NARROW ? "narrow" : "wide";
    const { viewport, big } = this.#canvas;
    const changed = this.#measureFonts() || this.#root.dataset.width !== kind;
    attr(this.#root, "data-width", kind);
    if (!viewport.taken) this.#unfit();
    this.#schedule(changed || !(big || viewport.taken) ? "graph" : "parts");
  }

  /** Widths by a canvas, once the style sheet says which fonts there are. True if that is new. */
  #measureFonts(): boolean {
    const context = document.createElement("canvas").getContext?.("2d");
    if (!context || this.#measure !== measureAsCode) return false;
    const width = (words: string, font: string) => {
      context.font = font;
      return context.measureText(words).width;
    };
    this.#measure = measureByFont(width, fontsOf(this.#root));
    return true;
  }

  #moved(): void {
    this.#bars.place();
    const { scale } = this.#canvas.viewport;
    const level = levelOf(scale);
    if (level === this.#level) return;
    this.#level = level;
    if (this.#canvas.big) this.#canvas.look();
    else this.#schedule("look");
  }

  // ---- What the user does -------------------------------------------------------------------------------------

  #subject(): Subject | null {
    const { key, role, root, index } = this.#canvas.byKey.get(this.#state.selected ?? "") ?? {};
    if (!key || !this.#drawing) return null;
    const { graph, folded, plan } = this.#drawing;
    const { context } = plan;
    const about = (node: number, inside?: Subject["inside"]): Subject => {
      const roots = rootsOf(context, context.nodeReach[node]!).map((view) => view.root);
      return { key, graph, inside, node, roots };
    };
    if (role === "root") {
      const node = graph.roots.find((each) => each.id === root)?.node ?? -1;
      return node < 0 ? null : about(node);
    }
    const box = folded.boxes.find((each) => each.key === key);
    const open = folded.open.find((group) => group.key === key);
    const inside = open ?? folded.open.find((group) => group.key === box?.parent);
    if (open) return { key, graph, inside, group: { title: open.title, nodes: nodesIn(folded, key) } };
    if (!box || box.kind === "node") return index === undefined ? null : about(index, inside);
    const title = box.times > 1 ? `${box.title} ×${box.times}` : box.title;
    return { key, graph, inside, group: { title, nodes: box.nodes } };
  }

  #press({ key, role, root }: Item, again = false): void {
    if (role === "root") this.#set({ highlight: this.#state.highlight === root ? null : root! });
    if (again && role === "group") this.#open(key);
    else {
      this.#canvas.focus(key);
      this.#set({ selected: key });
    }
  }

  /** Opens a closed group, closes an open one. */
  #open(key: string): void {
    const { boxes, open } = this.#drawing?.folded ?? { boxes: [], open: [] };
    const { selected, ...state } = this.#state;
    const opened = new Set(state.opened);
    const closed = new Set(state.closed);
    const isOpen = open.some((group) => group.key === key);
    if (!isOpen && !boxes.some((box) => box.key === key && box.kind !== "node")) return;
    const [into, from] = isOpen ? [closed, opened] : [opened, closed];
    into.add(key);
    from.delete(key);
    this.#wanted = [key];
    this.#takeFocus = true;
    this.#set({ opened, closed, selected: selected === key ? null : selected });
  }

  /** Brings nodes into view, out of closed groups too; several are marked like search hits. */
  #reveal(uids: readonly number[]): void {
    if (!uids.length) return;
    this.#wanted = uids.map((uid) => `n${uid}`);
    this.#takeFocus = uids.length === 1;
    this.#set({ spot: uids });
  }

  #failing(): void {
    const findings = shown(this.#state)?.findings ?? [];
    const uids = findings.flatMap(({ uid, uids }) => uid ?? uids[0] ?? []);
    if (!uids.length) return;
    const { finding } = this.#state;
    const next = finding === null ? 0 : (finding + 1) % uids.length;
    this.#set({ finding: next, selected: null });
    this.#reveal([uids[next]!]);
  }

  #escape(): void {
    const { search, preview, selected, spot, highlight, table, past } = this.#state;
    if (search) this.#set({ search: null });
    else if (preview) this.#set({ preview: null });
    else if (selected !== null || spot || highlight !== null)
      this.#set({ selected: null, spot: null, highlight: null });
    else if (table) this.#set({ table: false });
    else if (past) this.#context.act.travel(null);
    else focused(this.#root)?.blur(); // leave the graph: the host's own keys work again
  }

  #search(text: string | null): void {
    const graph = shown(this.#state);
    if (text === null || !graph) {
      this.#set({ search: null });
      this.#canvas.focus(this.#canvas.focusKey ?? "");
      return;
    }
    const hits = searchNodes(graph, text);
    if (hits.length && this.#drawing) this.#wanted = [this.#keyOf(hits[0]!)];
    this.#set({ search: { text, hits, at: 0 } });
  }

  #nextHit(by: number): void {
    const { search } = this.#state;
    if (!search?.hits.length) return;
    const n = search.hits.length;
    const at = (search.at + by + n) % n;
    const uid = search.hits[at]!;
    this.#wanted = [`n${uid}`];
    const hidden = !this.#canvas.byKey.has(`n${uid}`);
    this.#set({ search: { ...search, at }, ...(hidden && { spot: [uid] }) });
  }

  #showOnly(what: Show["what"]): void {
    const { selected, now } = this.#state;
    const item = this.#canvas.byKey.get(selected ?? this.#canvas.focusKey ?? "");
    const root = now?.roots.find((each) => each.id === item?.root) ?? now?.roots.find((each) => each.alive);
    const place = now?.places[now.place[item?.index ?? -1] ?? -1];
    const starts: Partial<Record<Show["what"], number | null | undefined>> = {
      around: item?.uid,
      root: now?.uid[root?.node ?? -1],
      cell: place ? (place.outerCell ?? place.cell) : now?.status.cell,
    };
    this.#tidy();
    this.#set({ show: { what, from: starts[what] ?? null } });
  }

  /** What was left out for want of room is tried again. */
  #unfit(): void {
    this.#dense = this.#bare = false;
    this.#most = MAX_BOXES;
  }

  #tidy(): void {
    this.#unfit();
    this.#afresh = true;
    this.#canvas.viewport.taken = this.#canvas.viewport.fits = false;
  }

  #export(what: "svg" | "text"): void {
    if (!this.#drawing) return;
    const { graph, space } = this.#drawing;
    const say = (words: string) => this.#set({ answer: told(words) });
    if (what === "svg") say(saveSvg(space.scene, this.#root));
    else void copyText(graph).then(say);
  }

  #actions(): Omit<Actions, keyof ReturnType<typeof kernelActions> | keyof Dialogs["acts"]> {
    return {
      press: (item) => this.#press(item),
      failing: () => this.#failing(),
      escape: () => this.#escape(),
      open: (key) => this.#open(key),
      reveal: (uids) => this.#reveal(uids),
      show: (what) => this.#showOnly(what),
      fit: () => this.#canvas.fit(),
      tidy: () => {
        this.#tidy();
        this.#schedule("graph");
      },
      export: (what) => this.#export(what),
      search: (words) => this.#search(words),
      nextHit: (by) => this.#nextHit(by),
    };
  }
}

const nodesOf = (graph: Graph) => graph.n - graph.leaves.size;

/** Nodes of what is shown inside an open group. */
function nodesIn({ boxes }: Folded, key: string): number[] {
  return boxes.filter((box) => box.parent === key).flatMap((box) => [...box.nodes]);
}
