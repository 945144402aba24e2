/** The dev page: the real view on a fake model. `?story=trunk&theme=dark&width=600&kernel=off`. */
import widget from "../src/app/widget.ts";
import { FakeKernel } from "./fake.ts";
import { FakeModel } from "./fake_model.ts";
import { STORIES } from "./stories.ts";

const query = new URLSearchParams(location.search);
const story = query.get("story") ?? "reused";
const theme = query.get("theme");
if (theme) document.body.dataset.jpThemeLight = String(theme === "light");

const model = new FakeModel({ height: Number(query.get("height") ?? 520) });
const recorded = query.get("wire");
let kernel: FakeKernel | null = null;
if (recorded) model.update({ wire: await (await fetch(recorded)).text() });
else kernel = new FakeKernel(model, (STORIES[story] ?? STORIES.reused!)());
if (query.get("kernel") === "off") model.receive = () => {};

const el = document.querySelector<HTMLElement>("#view")!;
el.style.width = `${query.get("width") ?? 900}px`;
const nav = document.querySelector("nav")!;
for (const name of Object.keys(STORIES)) {
  const link = document.createElement("a");
  link.href = `?story=${name}${theme ? `&theme=${theme}` : ""}`;
  link.textContent = name;
  nav.append(link, " ");
}
widget.render({ model, el });
Object.assign(globalThis, { graphwidgetDev: { model, kernel } });
