/** Actions of the user on the picture: selecting, opening, searching, showing a part, exporting. */

import type { Canvas } from "../../canvas/canvas.ts";
import type { Picture } from "../../drawing/picture.ts";
import type { Lens } from "../../lens/lens.ts";
import { focusedElement } from "../../page/elements.ts";
import { presentOf, search as searchNodes } from "../../picture/fold/index.ts";
import type { Item } from "../../picture/scene/types.ts";
import { isAsked } from "../../state/guess.ts";
import { count } from "../../state/say.ts";
import { type Context, type PictureActions, type Show, type State, shown } from "../../state/state.ts";
import { copyText, savePicture } from "../export.ts";
import { problem, statusAnswer } from "./kernel.tsx";

/** Selecting, and opening groups. */
function selecting(
  context: Context,
  canvas: Canvas,
  picture: Picture,
  lens: Lens,
): Pick<PictureActions, "press" | "open" | "closeLens"> {
  const { set, state } = context;

  /** A group that is open in the first drawing is closed there, and opens there again; all others open in the lens. */
  function open(key: string): void {
    const isOpen = picture.drawing?.folded.open.some((group) => group.key === key);
    if (!isOpen && !state.closed.has(key)) {
      lens.open(key);
      return;
    }
    const closed = new Set(state.closed);
    if (isOpen) closed.add(key);
    else closed.delete(key);
    picture.bring([key], true);
    set({ closed, selected: state.selected === key ? null : state.selected });
  }

  function press({ key, role, root, uid }: Item, again = false): void {
    if (role === "root") set({ highlight: state.highlight === root ? null : root! });
    if (again && role === "group") {
      open(key);
      return;
    }
    (lens.has(key) ? lens.canvas : canvas).focus(key);
    if (isAsked(state.guess)) {
      if (state.guess?.fails === "yes" && role === "node" && uid !== undefined) context.act.say({ failsAt: uid });
      return;
    }
    set({ selected: key });
  }

  return { press, open, closeLens: (open) => lens.close(open) };
}

/** Bringing nodes of a finding or hits of a search into view. */
function finding(
  { set, state }: Context,
  canvas: Canvas,
  picture: Picture,
  lens: Lens,
): Pick<PictureActions, "reveal" | "failing" | "search" | "nextHit"> {
  /** What shows these nodes where they belong to older graphs. */
  function withOlder(uids: readonly number[]): Partial<State> {
    const graph = shown(state);
    const mask = graph && presentOf(graph).mask;
    return mask && uids.some((uid) => mask[graph.indexOf(uid)] === 0) ? { older: true } : {};
  }

  function reveal(uids: readonly number[]): void {
    if (uids.length === 0) return;
    picture.bring(
      uids.map((uid) => `n${uid}`),
      uids.length === 1,
    );
    set({ spot: uids, ...withOlder(uids) });
  }

  function failing(): void {
    const findings = shown(state)?.findings ?? [];
    const uids = findings.flatMap(({ uid, uids }) => uid ?? uids[0] ?? []);
    if (uids.length === 0) return;
    const next = state.finding === null ? 0 : (state.finding + 1) % uids.length;
    set({ finding: next, selected: null });
    reveal([uids[next]!]);
  }

  function search(text: string | null): void {
    const graph = shown(state);
    if (text === null || !graph) {
      set({ search: null });
      if (state.lens[0]?.found) lens.close(0);
      canvas.focus(canvas.focusKey ?? "");
      return;
    }
    const hits = searchNodes(graph, text);
    if (hits.length > 0 && picture.drawing) picture.bring([picture.keyOf(hits[0]!)]);
    set({ search: { text, hits, at: 0 }, ...withOlder(hits.slice(0, 1)) });
    if (hits.length > 0) lens.find(hits[0]!);
  }

  function nextHit(by: number): void {
    const { search } = state;
    if (!search || search.hits.length === 0) return;
    const n = search.hits.length;
    const at = (search.at + by + n) % n;
    const uid = search.hits[at]!;
    picture.bring([picture.keyOf(uid)]);
    set({ search: { ...search, at }, ...withOlder([uid]) });
    lens.find(uid);
  }

  return { reveal, failing, search, nextHit };
}

/** What must be chosen before a part can be shown. */
const NEEDED: Partial<Record<Show["what"], string>> = {
  root: "There is no root that is alive.",
  cell: "Which cell made this is not known.",
};
/** Below this scale nothing but bars is drawn. */
const TINY = 0.3;

export function pictureActions(context: Context, canvas: Canvas, picture: Picture, lens: Lens): PictureActions {
  const { root, set, state } = context;

  function closeLast(): void {
    const { search, preview, selected, spot, highlight, table, past, walk, guess } = state;
    const { lens: open, stretches, comparison } = state;
    if (search) set({ search: null });
    else if (walk) context.act.walk(null);
    else if (guess) context.act.guess(null);
    else if (preview) set({ preview: null });
    else if (selected !== null || spot || highlight !== null) set({ selected: null, spot: null, highlight: null });
    else if (table) set({ table: false });
    else if (open.length > 0) lens.close(open.length - 1);
    else if (comparison) context.act.compareMoments();
    else if (stretches.length > 0) set({ stretches: stretches.slice(0, -1) });
    else if (past) context.act.travel(null);
    else focusedElement(root)?.blur(); // leave the graph: the host's own keys work again
  }

  /** Lays out the next picture without regard to this one; the camera follows it. */
  function startAfresh(): void {
    picture.fitting.reset();
    picture.fitting.fresh = true;
    canvas.viewport.taken = false;
    canvas.viewport.fits = false;
  }

  /** Start of a part of the graph: the selected node, its root or its cell. */
  function startOf(what: Show["what"]): number | null {
    const { selected, now } = state;
    const item = canvas.byKey.get(selected ?? canvas.focusKey ?? "");
    if (what === "around") return item?.uid ?? null;
    if (what === "root") {
      const root = now?.roots.find((each) => each.id === item?.root) ?? now?.roots.find((each) => each.alive);
      return now?.uid[root?.node ?? -1] ?? null;
    }
    if (what !== "cell") return null;
    const place = now?.places[now.place[item?.index ?? -1] ?? -1];
    return (place ? (place.outerCell ?? place.cell) : now?.status.cell) ?? null;
  }

  function show(what: Show["what"]): void {
    const from = startOf(what);
    if (from === null && NEEDED[what]) {
      set({ answer: statusAnswer(NEEDED[what]) });
      return;
    }
    startAfresh();
    set({ show: { what, from } });
  }

  function fit(): void {
    const { space } = canvas;
    const scale = canvas.viewport.whole(space.content);
    canvas.fit();
    if (scale > TINY) return;
    const percent = Math.max(1, Math.round(100 * scale));
    const all = `All ${count(space.cards, "card")} at once are ${percent} % of their size, too small to read.`;
    set({ answer: statusAnswer(all, "The map in the corner moves the view; + and − zoom; Group: auto folds.") });
  }

  function showOlder(shown: boolean): void {
    startAfresh();
    set({ older: shown });
  }

  function tidy(): void {
    startAfresh();
    context.redraw();
  }

  async function takeAlong(what: "svg" | "png" | "text"): Promise<void> {
    const { drawing } = picture;
    if (!drawing) return;
    const done = what === "text" ? copyText(drawing.graph) : savePicture(what, drawing, root);
    const answer = await done.then((words) => statusAnswer(words), problem);
    set({ answer });
  }

  return {
    ...selecting(context, canvas, picture, lens),
    ...finding(context, canvas, picture, lens),
    escape: closeLast,
    show,
    showOlder,
    fit,
    tidy,
    export: takeAlong,
  };
}
