"""Opens the shipped front end in headless Chromium with recorded pictures, without Jupyter and without a kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import Browser

URL = "http://127.0.0.1/bench/"
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="widget.css">
<div id="view" style="width:{width}px"></div>
<script type="module">
  import widget from "./widget.js";
  const listeners = {{}}, traits = {{ wire: "", delta: "", height: {height}, busy: "" }};
  const model = {{
    get: (name) => traits[name],
    set(name, value) {{ traits[name] = value; for (const f of listeners["change:" + name] ?? []) f(); }},
    on(name, f) {{ (listeners[name] ??= []).push(f); }}, off() {{}}, save_changes() {{}},
    send(m) {{ queueMicrotask(() => listeners["msg:custom"]?.forEach((f) => f({{ id: m.id, ok: true, result: {{}} }}))); }},
  }};
  window.longest = 0;
  new PerformanceObserver((list) => {{
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }}).observe({{ entryTypes: ["longtask"] }});
  window.record = () => {{
    const times = []; let on = true;
    const tick = (now) => {{ times.push(now); if (on) requestAnimationFrame(tick); }};
    requestAnimationFrame(tick);
    window.recorded = () => {{ on = false; return times.slice(1).map((t, i) => t - times[i]); }};
  }};
  widget.render({{ model, el: document.querySelector("#view") }});
  window.model = model;
  window.reply = (answer) => listeners["msg:custom"]?.forEach((f) => f(answer));
</script>"""


def open_view(browser: Browser, wire: str, width: int = 900, height: int = 560) -> Any:
    """Return a page that shows a picture, once the picture is drawn."""
    page, _ = browser.open()
    static = ROOT / "graphwidget" / "static"
    page.route(URL, lambda route: route.fulfill(body=PAGE.format(width=width, height=height), content_type="text/html"))
    page.route(f"{URL}widget.js", lambda r: r.fulfill(path=static / "widget.js", content_type="text/javascript"))
    page.route(f"{URL}widget.css", lambda r: r.fulfill(path=static / "widget.css", content_type="text/css"))
    page.goto(URL)
    page.wait_for_function("() => window.model")
    page.evaluate("wire => window.model.set('wire', wire)", wire)
    page.locator('[role="treeitem"]').first.wait_for(state="attached")
    return page
