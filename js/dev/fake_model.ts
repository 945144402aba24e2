/** `FakeModel` behaves as anywidget's model does: traits with change events, `send`, custom messages. */
import type { Model } from "../src/state/kernel.ts";

type Listener = (...args: unknown[]) => void;

export class FakeModel implements Model {
  widget_manager?: unknown;
  readonly sent: Record<string, unknown>[] = [];
  /** How often the page has saved what it set. */
  saves = 0;
  /** Called with every message of the page; a kernel connects itself here. */
  receive: (message: Record<string, unknown>) => void = () => {};
  private readonly traits: Record<string, unknown>;
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(traits: Record<string, unknown> = {}) {
    const formats = [
      ["text", "Text"],
      ["svg", "SVG"],
      ["html", "HTML"],
    ];
    this.traits = { wire: "", delta: "", height: 520, busy: "", presenting: false, formats, ...traits };
  }

  get(name: string): unknown {
    return this.traits[name];
  }

  /** From the kernel or the page: sets traits, then tells of each. */
  set(name: string, value: unknown): void {
    this.update({ [name]: value });
  }

  update(values: Record<string, unknown>): void {
    Object.assign(this.traits, values);
    for (const name of Object.keys(values)) this.emit(`change:${name}`);
  }

  save_changes(): void {
    this.saves++;
  }

  send(content: unknown): void {
    const message = content as Record<string, unknown>;
    this.sent.push(message);
    this.receive(message);
  }

  on(name: string, callback: (...args: never[]) => void): void {
    const all = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, all.add(callback as Listener));
  }

  off(name: string, callback: (...args: never[]) => void): void {
    this.listeners.get(name)?.delete(callback as Listener);
  }

  emit(name: string, ...args: unknown[]): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) listener(...args);
  }

  /** How many listeners are left: a closed view leaves none. */
  get listening(): number {
    return [...this.listeners.values()].reduce((n, all) => n + all.size, 0);
  }
}
