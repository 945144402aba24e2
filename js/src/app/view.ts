/**
 * The live view: one root element, one state, and the drawing of that state.
 *
 * A change of the kernel's picture goes: traits -> decode (receive.ts) -> state (state/store.ts) -> a frame, then
 * fold, layout, scene, canvas, in slices (drawing/) -> panels (frame.tsx). Actions of the user change the state
 * (picture_actions.ts) or ask the kernel (kernel_actions.tsx).
 */

import { createElement, render } from "preact";
import { Canvas } from "../canvas/canvas.ts";
import { Picture } from "../drawing/picture.ts";
import { Schedule } from "../drawing/schedule.ts";
import { Lens } from "../lens/lens.ts";
import { html, setAttribute, setAttributes } from "../page/elements.ts";
import { followTheme } from "../page/theme.ts";
import { makeDialogs } from "../panels/dialogs.tsx";
import { RootBars } from "../panels/rootbars.tsx";
import { type Graph, nodeCount } from "../picture/model.ts";
import type { Item } from "../picture/scene/types.ts";
import { isAsked } from "../state/guess.ts";
import { follow, Kernel, type Model } from "../state/kernel.ts";
import { count } from "../state/say.ts";
import { type Actions, type Context, type State, shown } from "../state/state.ts";
import { Store } from "../state/store.ts";
import { guessActions } from "./actions/guess.ts";
import { kernelActions, problem, statusAnswer } from "./actions/kernel.tsx";
import { pictureActions } from "./actions/picture.ts";
import { followPresenting, stageActions } from "./actions/stage.ts";
import { stepActions } from "./actions/step.ts";
import { Frame } from "./frame.tsx";
import { followHeight, type Height } from "./height.ts";
import { keepHome } from "./home.ts";
import { listenToKeys } from "./keyboard.ts";
import { receivePictures } from "./receive.ts";
import { findSubject } from "./subject.ts";

/** Widths in px. Below the first the panel is under the drawing; below the second the stepper is over the timeline. */
const NARROW = 760;
const COMPACT = 560;

export class View {
  readonly #root = html("div", { class: "graphwidget", "data-theme": "light" });
  readonly #context: Context;
  readonly #store: Store;
  readonly #schedule: Schedule;
  readonly #canvas: Canvas;
  readonly #picture: Picture;
  readonly #lens: Lens;
  readonly #bars: RootBars;
  readonly #dialog: HTMLElement;
  readonly #height: Height;
  /** The call whose failure has been brought into view. */
  #announced: number | null = null;

  constructor(model: Model, parent: HTMLElement, signal: AbortSignal) {
    const root = this.#root;
    const failed = (error: unknown) => this.#failed(error);
    this.#schedule = new Schedule(
      signal,
      () => this.#picture,
      () => this.#showPanels(),
      failed,
      (on) => this.#canvas.draws(on),
    );
    this.#store = new Store((need) => {
      // Marks of a forecast must not move the button that the pointer asks with.
      this.#canvas.viewport.rests = this.#store.state.preview !== null;
      this.#schedule.ask(need);
      this.#lens.ask(need);
    });
    const set = (patch: Partial<State>) => this.#store.set(patch);
    const kernel = new Kernel(model, signal, (link) => set({ link }));
    const context: Context = {
      root,
      signal,
      kernel,
      state: this.#store.state,
      set,
      redraw: () => this.#schedule.ask("picture"),
      get act() {
        return act;
      },
    };
    this.#context = context;
    const pressed = {
      press: (item: Item, again: boolean) => act.press(item, again),
      open: (key: string) => act.open(key),
      mark: (key: string) => act.mark(key),
      background: () => set({ selected: null, spot: null }),
    };
    this.#canvas = new Canvas(root, signal, {
      ...pressed,
      moved: () => this.#cameraMoved(),
      resized: () => this.#resized(),
    });
    this.#height = followHeight(root, model, signal);
    this.#picture = new Picture(root, this.#store, this.#canvas, this.#schedule.isWanted, this.#height);
    const main = { canvas: this.#canvas, picture: this.#picture };
    this.#lens = new Lens(root, signal, this.#store, main, pressed, () => this.#showPanels(), failed);
    this.#bars = new RootBars(context, this.#canvas);
    const dialogs = makeDialogs(context);
    this.#dialog = dialogs.element;
    const act: Actions = {
      ...kernelActions(context),
      ...pictureActions(context, this.#canvas, this.#picture, this.#lens),
      ...stepActions(context, this.#picture),
      ...guessActions(context, this.#picture),
      ...stageActions(context, model),
      ...dialogs.actions,
    };
    this.#renderFrame();
    parent.append(root);
    this.#connect(model, signal);
    void kernel.ping();
  }

  #connect(model: Model, signal: AbortSignal): void {
    const root = this.#root;
    const { act, set, state, kernel } = this.#context;
    const busy = () => set({ busy: String(model.get("busy") ?? "") });
    follow(model, signal, { "change:busy": busy });
    followPresenting(this.#context, model, signal, this.#canvas.viewport);
    listenToKeys(this.#context, this.#canvas, this.#lens.canvas);
    const unsaved = statusAnswer("Nothing was saved: keys stay in this view.", "Click in the notebook, then save.");
    keepHome(root, signal, () => set({ answer: unsaved }));
    followTheme(root, signal, () => {
      this.#canvas.repaint();
      this.#lens.canvas.repaint();
    });
    signal.addEventListener("abort", () => {
      root.remove();
      render(null, root);
    });
    busy();
    set({ link: kernel.state });
    set({ formats: (model.get("formats") as State["formats"] | undefined) ?? [] });
    receivePictures(model, signal, {
      now: () => state.now,
      received: (graph) => {
        set({ now: graph });
        act.renewPreview();
        if (isAsked(state.guess) && !graph.roots.some(({ id, alive }) => alive && id === state.guess?.root.id))
          act.guess(null);
        if (state.walk && !("call" in state.walk.subject)) this.#context.act.walk(null); // of a graph that was
        this.#announce(graph);
      },
      failed: (error) => this.#failed(error),
    });
  }

  #failed(error: unknown): void {
    console.error("graphwidget:", error);
    this.#store.amend({ answer: problem(error), drawing: null });
    this.#showPanels();
  }

  /** A new failure is brought into view once. */
  #announce(graph: Graph): void {
    const call = graph.calls.at(-1);
    if (!call || call.failedUid === null || call.n === this.#announced) return;
    this.#announced = call.n;
    this.#picture.bring([`n${call.failedUid}`]);
  }

  #renderFrame(): void {
    const { state } = this.#store;
    const frame = createElement(Frame, {
      context: this.#context,
      graph: shown(state),
      canvas: this.#canvas,
      dialog: this.#dialog,
      edge: this.#height.edge,
      lens: this.#lens,
      drawing: this.#picture.drawing,
      subject: this.#lens.has(state.selected ?? "")
        ? findSubject(state.selected, this.#lens.picture.drawing, this.#lens.canvas)
        : findSubject(state.selected, this.#picture.drawing, this.#canvas),
    });
    render(frame, this.#root);
  }

  /** Updates everything except the drawing. */
  #showPanels(): void {
    const { state } = this.#store;
    const graph = shown(state);
    setAttributes(this.#root, {
      "data-serial": state.now?.serial,
      "data-past": (state.past !== null || state.pastEvent !== null) && "true",
    });
    for (const canvas of [this.#canvas, this.#lens.canvas]) canvas.select(state.selected);
    if (graph) {
      const findings = count(graph.findings.length, "finding");
      this.#canvas.label(`Autograd graph, ${nodeCount(graph)} nodes, ${findings}`);
    }
    this.#lens.follow();
    this.#renderFrame();
    this.#bars.update();
  }

  /** The size of the view has changed: what fits is decided again. */
  #resized(): void {
    const width = this.#root.clientWidth;
    const kind = width < COMPACT ? "compact" : width < NARROW ? "narrow" : "wide";
    const { viewport, big } = this.#canvas;
    const isNew = this.#picture.measureFonts() || this.#root.dataset.width !== kind;
    setAttribute(this.#root, "data-width", kind);
    // A height that follows the picture draws no other picture.
    const isOther = this.#picture.hasOtherRoom();
    if (isOther && !viewport.taken) this.#picture.fitting.reset();
    this.#schedule.ask(isNew || (isOther && !(big || viewport.taken)) ? "picture" : "panels");
  }

  #cameraMoved(): void {
    this.#bars.place();
    this.#lens.place();
    if (this.#picture.changesLevel()) this.#schedule.ask("look");
  }
}
