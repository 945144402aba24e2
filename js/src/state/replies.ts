/** Requests to the kernel and its answers. */

export type Verb = keyof Replies;

/** Arguments of a verb. */
export interface Args {
  root?: number;
  retain_graph?: boolean;
  keep_grad?: boolean;
  /** The key of the question that this answers. */
  confirmed?: number;
  event?: number;
  before?: number;
  after?: number;
  uid?: number;
  format?: string;
  request?: number;
  call?: number;
  fix?: number;
  walk?: number;
  at?: number;
  fails?: string;
  fails_at?: number;
  frees?: [number, number][] | null;
}

export interface Replies {
  ping: object;
  cancel: object;
  forecast: Forecasts;
  /** A stored picture. */
  snapshot: { wire: string };
  inspect: Kept;
  keepers: Keepers;
  compare: Difference;
  steps_ahead: StepsReply;
  steps_of: StepsReply;
  more_steps: StepSentences;
  /** A file: its content, name and media type. */
  export: { text: string; name: string; type: string };
  /** An answer that `asks` means that nothing has run. */
  backward: { said: Answer } | { asks: Question };
  rebuild: { said: Answer };
  try_fix: { said: Answer } | { asks: Question };
  predict: Compared;
}

/** One forecast as the kernel computes it; nothing has run. */
export interface Forecast {
  ok: boolean | null;
  /** The effect in one line, and sentences about it. */
  outcome: string;
  facts: string[];
  /** By how much it changes the bytes that saved tensors hold; null: not known. */
  held: number | null;
  failsAt: number | null;
  /** [uid, position of the slot in its node] */
  frees: [number, number][];
  reaches: string[];
  assumes: string[];
  afterwards: { root: string; backward: string; at: string | null }[];
  /** The whole forecast as text, for a screen reader. */
  sentence: string;
}

export interface Forecasts {
  backward: Forecast;
  retain: Forecast;
}

/** What happens at one node of a call. */
export interface StepRow {
  node: string;
  names: string[];
  place: string;
  source: string;
  /** Topic and sentence. */
  facts: [string, string][];
  text: string;
}

export interface StepSentences {
  /** Position of the first row among all steps. */
  first: number;
  rows: StepRow[];
}

/** A call node by node. */
export interface StepsReply extends StepSentences {
  /** Names it in requests for more sentences. */
  walk: number;
  /** Number of the call; null: it has not been made. */
  n: number | null;
  call: string;
  past: boolean;
  /** Whether the order is known; if not, `ending` says why. */
  known: boolean;
  ending: string;
  assumes: string[];
  /** uids in the engine's order. */
  nodes: number[];
  /** Per node: the positions of the slots that it frees. */
  frees: number[][];
  /** Positions of the nodes that set a `.grad` or add to it. */
  sets: number[];
  /** What the last node does: it raises, or whether it does is unknown; "": neither. */
  stops: "" | "raises" | "unknown";
  /** The picture just before a recorded call. */
  wire: string | null;
}

/** What changed between two moments; `wire`: the later one, with what has died since as ghosts. */
export interface Difference {
  wire: string;
  summary: string;
  /** "12 B, then 0 B". */
  held: string;
  variables: { name: string; status: "new" | "gone" | "other" | "same"; added: number; freed: number; died: number }[];
  /** Number of variables that are left out. */
  more: number;
  /** uids of nodes: made, gone, and those that saved tensors were freed of. */
  added: number[];
  died: number[];
  freed: number[];
}

/** A prediction compared with what the call did. */
export interface Compared {
  said: Answer;
  /** Whether the call was recorded; else it was refused at once, and its forecast counts. */
  fact: boolean;
  /** Whether it was right that the call raises, or does not, and where; null: not said, or not known. */
  fails: boolean | null;
  failsAt: boolean | null;
  /** Number of slots that were freed. */
  freed: number;
  /** uid, position of the slot in its node, verdict. */
  marks: [number, number, "right" | "missed" | "extra" | "open"][];
  /** Right, wrong or not known, and the sentence with the reason. */
  answers: [boolean | null, string][];
  /** Answers that are left out. */
  more: number;
  score: number | null;
}

/** Who kept which bytes of saved tensors. A moment that is not in it was not measured. */
export interface Keepers {
  names: string[];
  /** Id of an event, and the bytes of each name after it. */
  moments: [number, number[]][];
}

export interface Kept {
  /** `releases`: what deleting that name would release. */
  keptBy: { path: string; kind: string; releases: string }[];
  storages: { slot: number; owners: string[] }[];
}

/** The question before a call that would raise runs anyway. */
export interface Question {
  key: number;
  title: string;
  lines: string[];
}

/** The message after an action. `kind` decides whether it interrupts a screen reader. */
export interface Answer {
  kind: "status" | "alert";
  text: string;
  next: string;
}
