/** Requests to the kernel, and the shapes of its answers: an answer of another shape never reaches the view. */

import { count, either, fields, list, number, type Of, orNull, row, type Shape, text, truth, word } from "./shape.ts";

export type Verb = keyof typeof REPLIES;

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

/** One forecast as the kernel computes it; nothing has run. */
const forecast = fields({
  ok: orNull(truth),
  /** The effect in one line, and sentences about it. */
  outcome: text,
  facts: list(text),
  /** By how much it changes the bytes that saved tensors hold; null: not known. */
  held: orNull(number),
  failsAt: orNull(number),
  /** [uid, position of the slot in its node] */
  frees: list(row(number, count)),
  reaches: list(text),
  assumes: list(text),
  afterwards: list(fields({ root: text, backward: text, at: orNull(text) })),
  /** The whole forecast as text, for a screen reader. */
  sentence: text,
});

const forecasts = fields({ backward: forecast, retain: forecast });

/** What happens at one node of a call. */
const stepRow = fields({
  node: text,
  names: list(text),
  place: text,
  source: text,
  /** Topic and sentence. */
  facts: list(row(text, text)),
  text: text,
});

/** `first`: position of the first row among all steps. */
const sentences = { first: count, rows: list(stepRow) };

/** A call node by node. */
const steps = fields(
  {
    ...sentences,
    /** Names it in requests for more sentences. */
    walk: number,
    /** Number of the call; null: it has not been made. */
    n: orNull(count),
    call: text,
    past: truth,
    /** Whether the order is known; if not, `ending` says why. */
    known: truth,
    ending: text,
    assumes: list(text),
    /** uids in the engine's order. */
    nodes: list(number),
    /** Per node: the positions of the slots that it frees. */
    frees: list(list(count)),
    /** Positions of the nodes that set a `.grad` or add to it. */
    sets: list(count),
    /** What the last node does: it raises, or whether it does is unknown; "": neither. */
    stops: word("", "raises", "unknown"),
    /** The picture just before a recorded call. */
    wire: orNull(text),
  },
  ({ nodes, frees }) => frees.length === nodes.length,
);

/** What changed between two moments. */
const difference = fields({
  /** The later one, with what has died since as ghosts. */
  wire: text,
  summary: text,
  /** "12 B, then 0 B". */
  held: text,
  variables: list(
    fields({
      name: text,
      status: word("new", "gone", "other", "same"),
      added: count,
      freed: count,
      died: count,
    }),
  ),
  /** Number of variables that are left out. */
  more: count,
  /** uids of nodes: made, gone, and those that saved tensors were freed of. */
  added: list(number),
  died: list(number),
  freed: list(number),
});

/** The message after an action. `kind` decides whether it interrupts a screen reader. */
const answer = fields({ kind: word("status", "alert"), text: text, next: text });
const said = fields({ said: answer });

/** The question before a call that would raise runs anyway. */
const question = fields({ key: number, title: text, lines: list(text) });
const asks = fields({ asks: question });

/** A prediction compared with what the call did. */
const comparedShape = fields({
  said: answer,
  /** Whether the call was recorded; else it was refused at once, and its forecast counts. */
  fact: truth,
  /** Whether it was right that the call raises, or does not, and where; null: not said, or not known. */
  fails: orNull(truth),
  failsAt: orNull(truth),
  /** Number of slots that were freed. */
  freed: count,
  /** uid, position of the slot in its node, verdict. */
  marks: list(row(number, count, word("right", "missed", "extra", "open"))),
  /** Right, wrong or not known, and the sentence with the reason. */
  answers: list(row(orNull(truth), text)),
  /** Answers that are left out. */
  more: count,
  score: orNull(number),
});

/** Who kept which bytes of saved tensors. A moment that is not in it was not measured. */
const keepers = fields(
  {
    names: list(text),
    /** Id of an event, and the bytes of each name after it. */
    moments: list(row(number, list(number))),
  },
  ({ names, moments }) => moments.every(([, bytes]) => bytes.length === names.length),
);

const kept = fields({
  /** `releases`: what deleting that name would release. */
  keptBy: list(fields({ path: text, kind: text, releases: text })),
  storages: list(fields({ slot: count, owners: list(text) })),
});

export type Forecast = Of<typeof forecast>;
export type Forecasts = Of<typeof forecasts>;
export type StepRow = Of<typeof stepRow>;
export type StepsReply = Of<typeof steps>;
export type Difference = Of<typeof difference>;
export type Answer = Of<typeof answer>;
export type Question = Of<typeof question>;
export type Compared = Of<typeof comparedShape>;
export type Keepers = Of<typeof keepers>;
export type Kept = Of<typeof kept>;

/** The answer to each verb. What waited for its turn and was cancelled is answered by what is `said` of that. */
export const REPLIES = {
  ping: fields({}),
  cancel: fields({}),
  forecast: forecasts,
  /** A stored picture. */
  snapshot: fields({ wire: text }),
  inspect: kept,
  keepers,
  compare: difference,
  steps_ahead: either(steps, said),
  steps_of: either(steps, said),
  more_steps: fields(sentences),
  /** A file: its content, name and media type. */
  export: fields({ text: text, name: text, type: text }),
  backward: either(said, asks),
  rebuild: said,
  try_fix: either(said, asks),
  predict: either(comparedShape, said),
} satisfies Record<string, Shape<object>>;

export type Replies = { [V in Verb]: Of<(typeof REPLIES)[V]> };
