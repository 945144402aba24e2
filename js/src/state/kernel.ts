/**
 * Requests to the kernel, with ids and answers.
 *
 * A message is `{id, verb, ...}`; the kernel answers `{id, ok, result | error}`, and may say
 * `{id, queued: {behind}}` before. A page cannot know whether a kernel is there: a comm
 * without a kernel accepts messages, too. An answer or a changed trait proves that it lives; silence while no cell
 * runs is taken as its end.
 */

import { type Args, REPLIES, type Replies, type Verb } from "./replies.ts";

/** The part of anywidget's model that the view uses. All but `send` and `widget_manager` comes from Backbone. */
export interface Model {
  get(name: string): unknown;
  /** Changes a trait in the page; `save_changes` sends it to the kernel, which matters for a saved notebook, too. */
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(name: string, callback: (...args: never[]) => void): void;
  off(name: string, callback: (...args: never[]) => void): void;
  widget_manager?: unknown;
}

/** "recorded": there never was a kernel, only the answers that were written down with the picture. */
export type Link = "asking" | "alive" | "gone" | "recorded";

/** Answers that are stored with a picture (trait `answers`), by `answerKey`. */
export type Recorded = Readonly<Record<string, unknown>>;

/** The name of an answer in a recording: `snapshot 12`. The kernel's side writes the same in exports/recording.py. */
export function answerKey(verb: Verb, args: Args): string {
  return [verb, ...Object.values(args)].join(" ");
}

/** Error: the kernel refused the request; the text says what to do. */
export class Refused extends Error {
  readonly next: string;
  constructor(message: string, next: string) {
    super(message);
    this.next = next;
  }
}

/** Error: the kernel did not answer. */
export class NoAnswer extends Refused {}

/** An answer as the view can use it. Throws what says that it cannot. */
function read<V extends Verb>(verb: V, result: unknown): Replies[V] {
  const differs = REPLIES[verb].differs(result, "");
  if (!differs) return result as Replies[V];
  const next = "Reload the page and restart the kernel: they may run different versions of graphwidget.";
  throw new Refused(`The answer to "${verb}" cannot be read: ${differs.trim()}.`, next);
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
  queued(behind: string): void;
}

interface Reply {
  id?: unknown;
  ok?: unknown;
  result?: unknown;
  error?: { message?: unknown; next?: unknown };
  queued?: { behind?: unknown };
}

// Answers reach every view of one model, in other browser tabs too: so the ids of views start far apart.
let lastId = Math.floor(Math.random() * 2 ** 40);

/** The kernel's status from JupyterLab's widget manager; other hosts do not have it. */
interface HostKernel {
  status?: string;
  statusChanged?: { connect(slot: () => void): void; disconnect(slot: () => void): void };
}

const DEAD = /dead|terminating|restarting/;

/** Listens to a model until the view is closed. */
export function follow(model: Model, signal: AbortSignal, events: Record<string, (content: never) => void>): void {
  for (const [name, callback] of Object.entries(events)) {
    model.on(name, callback);
    signal.addEventListener("abort", () => model.off(name, callback));
  }
}

export class Kernel {
  state: Link = "asking";
  readonly #waiting = new Map<number, Waiting>();
  readonly #model: Model;
  readonly #pingMs: number;
  readonly #changed: (state: Link) => void;
  #asking = false;
  constructor(model: Model, signal: AbortSignal, changed: (state: Link) => void = () => {}, pingMs = 4000) {
    this.#model = model;
    this.#changed = changed;
    this.#pingMs = pingMs;
    if (model.get("link") === "recorded") {
      this.state = "recorded";
      return;
    }
    const host = this.#host();
    const alive = () => this.#set("alive");
    follow(model, signal, {
      "msg:custom": (reply: Reply | null) => this.#receive(reply ?? {}),
      "change:wire": alive,
      "change:delta": alive,
      "change:busy": alive,
      comm_live_update: () => void this.ping(),
    });
    const status = () => DEAD.test(host?.status ?? "") && this.#set("gone");
    host?.statusChanged?.connect?.(status);
    signal.addEventListener("abort", () => host?.statusChanged?.disconnect?.(status));
  }

  /**
   * Sends a request and resolves with its result. Rejects with `Refused`, or with `NoAnswer` after `timeout`
   * milliseconds of silence; 0: no limit. `queued` is called with the name of what the request waits for.
   */
  ask<V extends Verb>(
    verb: V,
    args: Args,
    timeout = 0,
    queued: (behind: string) => void = () => {},
  ): Promise<Replies[V]> & { id: number } {
    const id = ++lastId;
    if (verb !== "ping" && (this.state === "recorded" || this.state === "gone"))
      return Object.assign(this.#fromRecording(verb, args), { id });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const answer = new Promise<Replies[V]>((resolve, reject) => {
      const giveUp = (why: string) =>
        reject(new NoAnswer(why, "If it stays silent, restart the kernel and run the notebook."));
      if (timeout)
        timer = setTimeout(() => {
          giveUp("The kernel has not answered.");
          if (verb !== "ping") void this.ping();
        }, timeout);
      this.#waiting.set(id, {
        resolve: (result) => {
          try {
            resolve(read(verb, result));
          } catch (error) {
            reject(error);
          }
        },
        reject,
        queued: (behind) => {
          clearTimeout(timer);
          queued(behind);
        },
      });
      try {
        this.#model.send({ id, verb, ...args });
      } catch {
        giveUp("The message could not be sent.");
        this.#set("gone");
      }
    });
    const done = () => {
      clearTimeout(timer);
      this.#waiting.delete(id);
    };
    answer.then(done, done);
    return Object.assign(answer, { id });
  }

  /** Checks whether the kernel answers. While a cell runs, a late answer is no silence. */
  async ping(): Promise<void> {
    if (this.#asking || this.state === "recorded") return;
    this.#asking = true;
    try {
      await this.ask("ping", {}, this.#pingMs);
    } catch (error) {
      if (error instanceof NoAnswer && !this.busy()) this.#set("gone");
    }
    this.#asking = false;
  }

  /** Whether a cell runs, as far as the page knows. */
  busy(): boolean {
    return this.#host()?.status === "busy" || (this.state === "alive" && Boolean(this.#model.get("busy")));
  }

  #host(): HostKernel | undefined {
    return (this.#model.widget_manager as { kernel?: HostKernel } | undefined)?.kernel;
  }

  /** Without a kernel, an answer that is stored with the picture, or the reason why there is none. */
  async #fromRecording<V extends Verb>(verb: V, args: Args): Promise<Replies[V]> {
    const stored = (this.#model.get("answers") as Recorded | undefined)?.[answerKey(verb, args)];
    if (stored !== undefined) return read(verb, stored);
    if (this.state === "recorded") throw new Refused("This was not recorded.", "Run the notebook for a live view.");
    void this.ping(); // it may be there again
    throw new NoAnswer("This is not stored here, and no kernel answers.", "Run the notebook, then it can be asked.");
  }

  #set(state: Link): void {
    if (state === this.state) return;
    this.state = state;
    this.#changed(state);
  }

  #receive({ id, queued, ok, result, error }: Reply): void {
    this.#set("alive");
    const waiting = this.#waiting.get(id as number);
    if (!waiting) return; // an answer to another view, or to an abandoned request
    if (queued) waiting.queued(String(queued.behind));
    else if (ok === true) waiting.resolve(result);
    else waiting.reject(new Refused(String(error?.message ?? "Refused."), String(error?.next ?? "")));
  }
}
