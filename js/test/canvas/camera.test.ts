// @vitest-environment happy-dom
/** The camera: by one finger, by two, by the wheel; the map in the corner; the height of the view. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { tiny } from "../../dev/stories.ts";
import { followGestures } from "../../src/canvas/gestures.ts";
import { Minimap } from "../../src/canvas/minimap.ts";
import { Space } from "../../src/canvas/space.ts";
import { Viewport } from "../../src/canvas/viewport.ts";
import type { Item } from "../../src/picture/scene/types.ts";
import { show } from "../view/support.ts";

let element: HTMLElement;
let viewport: Viewport;
let dragged: () => boolean;

beforeEach(() => {
  element = document.createElement("div");
  document.body.append(element);
  viewport = new Viewport(() => {});
  ({ dragged } = followGestures(element, viewport));
});
afterEach(() => element.remove());

function pointer(type: "down" | "move" | "up" | "cancel", pointerId: number, clientX = 0, clientY = 0): void {
  element.dispatchEvent(new PointerEvent(`pointer${type}`, { pointerId, clientX, clientY, button: 0, bubbles: true }));
}

test("one pointer pans; a press that hardly moves stays a click", () => {
  pointer("down", 1, 10, 10);
  pointer("move", 1, 12, 11);
  expect([viewport.x, viewport.y, dragged()]).toEqual([0, 0, false]);
  pointer("move", 1, 40, 30);
  pointer("move", 1, 50, 30);
  pointer("up", 1);
  expect([viewport.x, viewport.y, dragged()]).toEqual([40, 20, true]);
  pointer("move", 1, 90, 90);
  expect([viewport.x, viewport.y]).toEqual([40, 20]);
});

test("what two fingers hold stays under them: they zoom by their distance and pan by their middle", () => {
  pointer("down", 1, 100, 100);
  pointer("down", 2, 200, 100);
  const held = [viewport.toWorld(100, 100), viewport.toWorld(200, 100)];
  pointer("move", 1, 80, 140);
  pointer("move", 2, 280, 140);
  expect(viewport.scale).toBeCloseTo(2);
  expect(viewport.toScreen(...held[0]!)).toEqual([expect.closeTo(80), expect.closeTo(140)]);
  expect(viewport.toScreen(...held[1]!)).toEqual([expect.closeTo(280), expect.closeTo(140)]);
  expect([viewport.taken, dragged()]).toEqual([true, true]);
  pointer("up", 2);
  const { scale, x } = viewport;
  pointer("move", 1, 90, 140);
  expect([viewport.scale, viewport.x]).toEqual([scale, x + 10]);
});

test("a finger that is cancelled, because the page scrolls, moves nothing any more", () => {
  pointer("down", 1, 100, 100);
  pointer("cancel", 1);
  pointer("move", 1, 200, 200);
  expect([viewport.x, viewport.y]).toEqual([0, 0]);
});

test("with two fingers the page stays where it is, with one it scrolls", () => {
  const touch = (fingers: number): boolean => {
    const event = new Event("touchmove", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "touches", { value: { length: fingers } });
    element.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect([touch(1), touch(2)]).toEqual([false, true]);
});

/** A scene of cards, each 40 by 20. */
function sceneOf(places: readonly [number, number][], width: number, height: number): Space {
  const items = places.map(([x, y], i): Item => ({ key: `n${i}`, role: "node", x, y, w: 40, h: 20, marks: [] }));
  return new Space({ left: 0, top: 0, width, height, items, rail: 0, look() {} });
}

test("the map moves out of the way of what it would cover; while the user moves about it stays until that rests", async () => {
  const map = new Minimap(viewport);
  const corner = () => map.element.getAttribute("data-corner");
  map.load(sceneOf([[10, 10]], 2000, 2000));
  map.paint();
  expect(corner()).toBe("bottom right");
  expect(map.covers()).toEqual({ x: 600 - 8 - 120, y: 400 - 8 - 84, w: 120, h: 84 });
  map.load(sceneOf([[530, 350]], 2000, 2000));
  map.paint();
  expect(corner()).toBe("bottom left");
  viewport.pan(-500, 0);
  map.paint();
  expect(corner()).toBe("bottom left");
  await expect.poll(corner, { timeout: 10_000 }).toBe("bottom right");
});

test("a map that shows nothing new is not there and covers nothing", () => {
  const map = new Minimap(viewport);
  map.load(sceneOf([[10, 10]], 500, 300));
  map.paint();
  expect(map.element.hasAttribute("hidden")).toBe(true);
  expect(map.covers()).toBeNull();
});

test("the lower edge changes the height, by the pointer and by keys, and the widget's state keeps it", async () => {
  const view = await show(tiny());
  const edge = view.one(".gw-edge[role=separator]");
  const move = (type: string, clientY: number) =>
    edge.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientY, button: 0, bubbles: true }));
  move("pointerdown", 500);
  move("pointermove", 560);
  expect(view.root.style.getPropertyValue("--gw-h")).toBe("580px");
  expect(view.model.get("height")).toBe(520);
  move("pointerup", 560);
  expect([view.model.get("height"), view.model.saves]).toEqual([580, 1]);
  view.press("ArrowUp", edge);
  expect([view.model.get("height"), edge.getAttribute("aria-valuenow")]).toEqual([560, "560"]);
  move("pointerdown", 500);
  move("pointermove", -900);
  move("pointermove", -1500);
  expect(edge.getAttribute("aria-valuenow")).toBe("220");
  view.close();
});

test("of a picture of which only a part can be read, the part is written out in full", () => {
  [viewport.width, viewport.height] = [600, 400];
  const scaleOf = (w: number, h: number) => viewport.aim({ x: 0, y: 0, w, h }, undefined).scale;
  expect(scaleOf(200, 300)).toBeGreaterThan(1); // small: larger than life
  expect(scaleOf(200, 550)).toBeGreaterThan(0.8); // nearly fits
  expect(scaleOf(200, 750)).toBeLessThan(0.6); // all of it, by its names
  expect(scaleOf(200, 4000)).toBeGreaterThan(0.8); // a long chain
  expect(scaleOf(3000, 4000)).toBeLessThan(0.6); // wide, too: names are worth more
});
