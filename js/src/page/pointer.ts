/** Following pointers from a press to the release. */

/** A press that moves less than this many px stays a click. */
export const SLACK = 4;

/**
 * Follows one pointer from a press, if `press` does not refuse it, to the release. `move` gets the distance since its
 * last call; `release` is called if the pointer has moved.
 */
export function drag(
  element: Pick<HTMLElement, "addEventListener" | "setPointerCapture">,
  press: (event: PointerEvent) => boolean,
  move: (dx: number, dy: number, event: PointerEvent) => void,
  release: () => void = () => {},
): void {
  let last: PointerEvent | null = null;
  let moves = false;
  element.addEventListener("pointerdown", (event) => {
    moves = false;
    last = event.button === 0 && press(event) ? event : null;
    // Captured at the press: a fast pointer leaves a small element before its first move.
    if (last) element.setPointerCapture?.(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (event.pointerId !== last?.pointerId) return;
    const dx = event.clientX - last.clientX;
    const dy = event.clientY - last.clientY;
    if (!moves && Math.abs(dx) + Math.abs(dy) < SLACK) return;
    moves = true;
    last = event;
    move(dx, dy, event);
  });
  const end = () => {
    if (last && moves) release();
    last = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
}
