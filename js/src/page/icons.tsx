/** The icons of the tools, and the sign of the widget: decoration, so hidden from screen readers. */
import type { ComponentChildren, VNode } from "preact";

/** Path data of lines and of filled areas, in a square of 14. */
const ICONS = {
  search: { lines: "M6 2a4 4 0 1 0 .01 0M9 9l3.4 3.4" },
  fit: { lines: "M1.5 5V1.5H5M9 1.5h3.5V5M12.5 9v3.5H9M5 12.5H1.5V9" },
  legend: { lines: "M1.5 8.5h4v3.4h-4zM8 4h5M8 10.2h5", filled: "M1 2h5v4H1z" },
  more: { filled: "M2.5 5.8a1.2 1.2 0 1 0 .01 0M7 5.8a1.2 1.2 0 1 0 .01 0M11.5 5.8a1.2 1.2 0 1 0 .01 0" },
  previous: { filled: "M9.5 2.5L4.5 7l5 4.5z" },
  next: { filled: "M4.5 2.5L9.5 7l-5 4.5z" },
  first: { filled: "M11 2.5L6 7l5 4.5zM3 2.5h1.8v9H3z" },
  last: { filled: "M3 2.5L8 7l-5 4.5zM9.2 2.5H11v9H9.2z" },
  play: { filled: "M3.5 2v10l8.5-5z" },
  pause: { filled: "M3.5 2.5h2.6v9H3.5zM7.9 2.5h2.6v9H7.9z" },
  step: { lines: "M7 9.6V4.4M4.6 6.6L7 4.2l2.4 2.4", filled: "M2 1h10v2.4H2zM2 10.6h10V13H2z" },
  guess: { lines: "M4.4 5a2.6 2.6 0 1 1 3.8 2.3Q7 8 7 9.2M7 11.6v.1" },
  enlarge: { lines: "M2 12h10", filled: "M7 2l4.5 4.5h-3v3h-3v-3h-3z" },
  reduce: { lines: "M2 12h10", filled: "M7 9.5L2.5 5h3V2h3v3h3z" },
  plus: { lines: "M7 2.5v9M2.5 7h9" },
  minus: { lines: "M2.5 7h9" },
} satisfies Record<string, { lines?: string; filled?: string }>;

export type IconName = keyof typeof ICONS;

function Picture({ size, children }: { size: number; children: ComponentChildren }): VNode {
  return (
    <svg class="gw-icon" viewBox={`0 0 ${size} ${size}`} width={size} height={size} aria-hidden="true">
      {children}
    </svg>
  );
}

export function Icon({ name }: { name: IconName }): VNode {
  const { lines, filled }: { lines?: string; filled?: string } = ICONS[name];
  return (
    <Picture size={14}>
      {lines && <path d={lines} />}
      {filled && <path class="gw-icf" d={filled} />}
    </Picture>
  );
}

/** Two lines of a metro map that meet, one slot full, one empty. */
export function Logo(): VNode {
  return (
    <Picture size={18}>
      <path class="g-wire g-r1" d="M5 14V9.5Q5 7 9 7t4-2.5V4" />
      <path class="g-wire g-r2" d="M13 14v-3q0-2-4-4" />
      <rect class="g-held" x={2.5} y={12} width={5} height={4} rx={1} />
      <rect class="g-freed" x={10.6} y={12.1} width={4.8} height={3.8} rx={1} />
    </Picture>
  );
}
