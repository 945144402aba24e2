/** Marks of the picture inside running text and tables: the same shapes, small. */

import type { ComponentChildren, VNode } from "preact";
import {
  callNumberHalf,
  callNumberMark,
  rootDot as dotMark,
  type Mark,
  octagon,
  octagonOpen,
  rootLook,
  SLOT_LOOKS,
  type SlotLook,
  slot,
  tag,
  tagWidth,
  warning,
} from "../picture/marks.ts";
import { measureAsCode } from "../picture/measure.ts";
import { callNumber } from "../picture/words.ts";
import { Glyph, MarkShapes } from "./marks.tsx";

/** The order of the root of call n, which picks its hue; -1: unknown. */
export type OrderOf = (n: number) => number;

/** `state`: a `SLOT` value, or a look that no slot has ("will": a forecast would free it). */
export function SlotGlyph({ state }: { state: number | SlotLook }): VNode {
  const look = typeof state === "number" ? SLOT_LOOKS[state]! : state;
  return <Glyph marks={slot(0, 0, look)} width={14} height={11} />;
}

/** Marks of call n's number; `order` of the root whose hue it has, -1: none. */
export function callMarks(n: number, order: number, solid = false): Mark[] {
  return callNumberMark(0, 0, callNumber(n), order < 0 ? "r0" : rootLook(order).hue, { solid });
}

/** The number of call n. `label`: how it is read aloud. */
export function CallGlyph({ n, order, label }: { n: number; order: number; label?: string }): VNode {
  const half = callNumberHalf(callNumber(n)) + 0.7;
  return (
    <Glyph
      marks={callMarks(n, order)}
      width={2 * half}
      height={15.4}
      origin={`${-half} -7.7`}
      class="gw-callglyph"
      label={label ?? `call ${callNumber(n)}`}
    />
  );
}

/** The octagon for "raised here"; with `forecast` for "would raise here". */
export function OctagonGlyph({ forecast = false }: { forecast?: boolean }): VNode {
  return <Glyph marks={forecast ? octagonOpen(8, 8, 6.5) : octagon(8, 8, 7)} width={16} height={16} />;
}

export function WarningGlyph(): VNode {
  return <Glyph marks={warning(8, 8, 7)} width={16} height={16} />;
}

export function RootDot({ order }: { order: number }): VNode {
  const { hue, style } = rootLook(order);
  return <Glyph marks={dotMark(5, 5, style, hue)} width={10} height={10} />;
}

/** A variable as a luggage tag. Its text is real text: screen readers and the browser's search find it. */
export function TagGlyph({ name, look = "" }: { name: string; look?: "" | "carrier" }): VNode {
  const width = tagWidth(measureAsCode(name, "tagname"));
  const height = 21;
  const wide = Math.ceil(width) + 2;
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: its text is the name
    <svg class="gw-glyph gw-tagglyph" width={wide} height={height} viewBox={`0 0 ${wide} ${height}`}>
      <MarkShapes marks={tag(0.8, 0.8, name, width, look)} />
    </svg>
  );
}

export function CheckGlyph(): VNode {
  return <Glyph marks={[{ kind: "path", d: "M2.5 7l3.5 3.6L12.5 3", classes: "tick" }]} width={15} height={14} />;
}

/** `①` is the number of call 0. */
const FIRST_CIRCLED = 0x2460;

const unknownOrder: OrderOf = () => -1;

/** Text with `code` between backticks as code, and numbers of calls (①, "call 11", "Call 11") as in the picture. */
export function Prose({ text, orderOf = unknownOrder }: { text: string; orderOf?: OrderOf }): VNode {
  const parts = text.split(/(`[^`]+`|[①-⑩]|\bcall \d+\b)/i);
  return <>{parts.map((part, i) => (i % 2 === 0 ? part || null : special(part, orderOf)))}</>;
}

function special(part: string, orderOf: OrderOf): ComponentChildren {
  if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
  const number = part.slice("call ".length);
  if (!number) {
    const n = part.charCodeAt(0) - FIRST_CIRCLED;
    return <CallGlyph n={n} order={orderOf(n)} />;
  }
  const n = Number(number) - 1;
  return [part.slice(0, "call ".length), <CallGlyph n={n} order={orderOf(n)} label={number} />];
}
