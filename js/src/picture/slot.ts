/** States of a saved tensor: the digits of the wire's `slotState`, in the order of Python's `SlotState`. */
export const held = 0;
export const freed = 1;
export const stale = 2;
export const packed = 3;
export const unsaved = 4;
export const unknown = 5;
