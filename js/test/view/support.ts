/** A view on a fake kernel, and small ways to look at it. */
import { vi } from "vitest";
import { FakeKernel } from "../../dev/fake.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import type { Story } from "../../dev/fake_story.ts";
import { View } from "../../src/app/view.ts";

/** How many drawings are being made: how long one takes depends on what else the machine does. */
const work = vi.hoisted(() => ({ running: 0 }));
vi.mock("../../src/page/drive.ts", async (original) => {
  const { drive } = await original<typeof import("../../src/page/drive.ts")>();
  const counted: typeof drive = (...given) => {
    work.running++;
    return drive(...given).finally(() => work.running--);
  };
  return { drive: counted };
});

export interface Shown {
  model: FakeModel;
  kernel: FakeKernel;
  root: HTMLElement;
  close(): void;
  /** Waits until the view has drawn what it knows. */
  settle(): Promise<void>;
  one(selector: string): HTMLElement;
  all(selector: string): HTMLElement[];
  button(name: string): HTMLButtonElement;
  press(key: string, on?: Element): void;
}

/** Waits until all views have drawn what they know. */
export async function settle(): Promise<void> {
  // What a drawing is followed by takes a few turns, too.
  for (let idle = 0; idle < 10; idle = work.running ? 0 : idle + 1)
    await new Promise((resolve) => setTimeout(resolve, 12));
}

/** A view on a model. */
export function mount(model: FakeModel): { root: HTMLElement; close(): void } {
  const life = new AbortController();
  const el = document.createElement("div");
  document.body.append(el);
  new View(model, el, life.signal);
  const close = () => {
    life.abort();
    el.remove();
  };
  return { root: el.querySelector<HTMLElement>(".graphwidget")!, close };
}

export async function show(story: Story, manager?: unknown): Promise<Shown> {
  const model = new FakeModel();
  model.widget_manager = manager;
  const kernel = new FakeKernel(model, story);
  const { root, close } = mount(model);
  const shown: Shown = {
    model,
    kernel,
    root,
    settle,
    close,
    all: (selector) => [...root.querySelectorAll<HTMLElement>(selector)],
    one: (selector) => {
      const found = root.querySelector<HTMLElement>(selector);
      if (!found) throw new Error(`nothing matches ${selector}`);
      return found;
    },
    button: (name) => {
      const found = shown
        .all("button")
        .find((each) => (each.getAttribute("aria-label") ?? each.textContent?.trim()) === name);
      if (!found) throw new Error(`no button "${name}"`);
      return found as HTMLButtonElement;
    },
    press: (key, on = root) => {
      on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    },
  };
  await settle();
  return shown;
}

export function node(view: Shown, name: string): HTMLElement[] {
  return view.all(`[role=treeitem][data-node="${name}"]`);
}
