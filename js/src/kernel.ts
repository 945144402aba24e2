/**
 * Requests to the kernel, with ids and answers.
 *
 * A message is `{id, verb, ...}`; the kernel answers `{id, ok, result | error}`, and may say
 * `{id, queued: {behind, seconds}}` before. Nothing tells a page whether a kernel is there: a live
 * comm that leads nowhere swallows messages. So life is proved by signs of life (an answer, a changed
 * trait) and doubted by silence while no cell runs.
 */

/** The part of anywidget's model that the view uses. `send` and the events are those of a Backbone model. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(name: string, callback: (...args: never[]) => void): void;
  off(name: string, callback: (...args: never[]) => void): void;
  widget_manager?: unknown;
}

export type Verb = "ping" | "backward" | "forecast" | "rebuild" | "snapshot" | "inspect" | "cancel";
export type Link = "asking" | "alive" | "gone";

export interface AskOptions {
  /** Milliseconds of silence after which the request is given up; none: as long as it takes. */
  timeout?: number;
  queued?: (behind: string, seconds: number) => void;
  signal?: AbortSignal;
}

/** The kernel's own answer "no", with the next step in words. */
export class Refused extends Error {
  readonly next: string;
  constructor(message: string, next: string) {
    super(message);
    this.next = next;
  }
}

/** No answer came, or the request was given up. */
export class NoAnswer extends Error {}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
  queued?: (behind: string, seconds: number) => void;
}

interface Reply {
  id?: unknown;
  ok?: unknown;
  result?: unknown;
  error?: { message?: unknown; next?: unknown };
  queued?: { behind?: unknown; seconds?: unknown };
}

// Answers reach every view of one model, in other browser tabs too: ids start far apart.
let lastId = Math.floor(Math.random() * 2 ** 40);

/** What JupyterLab's widget manager knows about the kernel; other hosts do not say. */
interface HostKernel {
  status?: string;
  statusChanged?: { connect(slot: () => void): void; disconnect(slot: () => void): void };
}

const DEAD = ["dead", "terminating", "restarting", "autorestarting"];

export class Kernel {
  state: Link = "asking";
  private readonly waiting = new Map<number, Waiting>();
  private readonly model: Model;
  private readonly pingMs: number;
  private readonly changed: (state: Link) => void;
  private asking = false;

  constructor(model: Model, signal: AbortSignal, changed: (state: Link) => void = () => {}, pingMs = 4000) {
    this.model = model;
    this.changed = changed;
    this.pingMs = pingMs;
    const sign = () => this.set("alive");
    const doubt = () => void this.ping();
    const message = (content: Reply | null) => this.receive(content);
    const listeners: [string, (...args: never[]) => void][] = [
      ["msg:custom", message],
      ["change:wire", sign],
      ["change:delta", sign],
      ["change:busy", sign],
      ["comm_live_update", doubt],
    ];
    for (const [name, callback] of listeners) model.on(name, callback);
    const host = this.host();
    const status = () => DEAD.includes(host?.status ?? "") && this.set("gone");
    host?.statusChanged?.connect?.(status);
    signal.addEventListener("abort", () => {
      for (const [name, callback] of listeners) model.off(name, callback);
      host?.statusChanged?.disconnect?.(status);
      for (const waiting of this.waiting.values()) waiting.reject(new NoAnswer("The view was closed."));
      this.waiting.clear();
    });
  }

  /** Sends a request and resolves with its result; rejects with `Refused` or `NoAnswer`. */
  ask<T>(verb: Verb, args: Record<string, unknown> = {}, options: AskOptions = {}): Promise<T> & { id: number } {
    const id = ++lastId;
    const answer = new Promise<T>((resolve, reject) => {
      const timer = options.timeout
        ? setTimeout(() => {
            this.waiting.get(id)?.reject(new NoAnswer("The kernel has not answered."));
            if (verb !== "ping") void this.ping();
          }, options.timeout)
        : undefined;
      const done = () => {
        clearTimeout(timer);
        this.waiting.delete(id);
      };
      this.waiting.set(id, {
        resolve: (result) => {
          done();
          resolve(result as T);
        },
        reject: (error) => {
          done();
          reject(error);
        },
        queued: (behind, seconds) => {
          clearTimeout(timer);
          options.queued?.(behind, seconds);
        },
      });
      options.signal?.addEventListener("abort", () => this.waiting.get(id)?.reject(new NoAnswer("Given up.")));
      try {
        this.model.send({ id, verb, ...args });
      } catch {
        this.waiting.get(id)?.reject(new NoAnswer("The message could not be sent."));
        this.set("gone");
      }
    });
    return Object.assign(answer, { id });
  }

  /** Finds out whether anybody answers. A running cell may keep the answer waiting: that is not silence. */
  async ping(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    try {
      await this.ask("ping", {}, { timeout: this.pingMs });
    } catch (error) {
      if (error instanceof NoAnswer && !this.busy()) this.set("gone");
    } finally {
      this.asking = false;
    }
  }

  /** Whether a cell runs, as far as anything says so. */
  busy(): boolean {
    return this.host()?.status === "busy" || (this.state === "alive" && Boolean(this.model.get("busy")));
  }

  private host(): HostKernel | null {
    const manager = this.model.widget_manager as { kernel?: HostKernel } | undefined;
    return manager?.kernel ?? null;
  }

  private set(state: Link): void {
    if (state === this.state) return;
    this.state = state;
    this.changed(state);
  }

  private receive(reply: Reply | null): void {
    this.set("alive");
    const waiting = typeof reply?.id === "number" ? this.waiting.get(reply.id) : undefined;
    if (!waiting || !reply) return; // an answer to another view, or to a request that was given up
    if (reply.queued) waiting.queued?.(String(reply.queued.behind ?? ""), Number(reply.queued.seconds ?? 0));
    else if (reply.ok === true) waiting.resolve(reply.result ?? {});
    else waiting.reject(new Refused(String(reply.error?.message ?? "Refused."), String(reply.error?.next ?? "")));
  }
}
