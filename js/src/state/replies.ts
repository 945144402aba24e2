/** What the kernel is asked, and what it answers. */

export type Verb = keyof Replies;

/** What goes with a verb. */
export interface Args {
  root?: number;
  retain_graph?: boolean;
  keep_grad?: boolean;
  /** The key of the question that this answers. */
  confirmed?: number;
  event?: number;
  uid?: number;
  format?: string;
  request?: number;
}

export interface Replies {
  ping: object;
  cancel: object;
  forecast: Forecasts;
  /** A stored picture. */
  snapshot: { wire: string };
  inspect: Kept;
  /** A file: its content, name and media type. */
  export: { text: string; name: string; type: string };
  /** Nothing has run where it `asks`. */
  backward: { said: Answer } | { asks: Question };
  rebuild: { said: Answer };
}

/** One forecast as the kernel computes it; nothing has run. */
export interface Forecast {
  ok: boolean | null;
  /** What it would do in a few words, and what is to be said about that. */
  outcome: string;
  facts: string[];
  failsAt: number | null;
  /** [uid, position of the slot in its node] */
  frees: [number, number][];
  reaches: string[];
  assumes: string[];
  afterwards: { root: string; backward: string; at: string | null }[];
  /** All of it, for a screen reader. */
  sentence: string;
}

export interface Forecasts {
  backward: Forecast;
  retain: Forecast;
}

export interface Kept {
  /** `releases`: what deleting that name would. */
  keptBy: { path: string; kind: string; releases: string }[];
  storages: { slot: number; owners: string[] }[];
}

/** What is asked before a call that would raise is run all the same. */
export interface Question {
  key: number;
  title: string;
  lines: string[];
}

/** What is said when something is done. `kind` decides whether it interrupts. */
export interface Answer {
  kind: "status" | "alert";
  text: string;
  next: string;
}
