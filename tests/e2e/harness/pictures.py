"""The shipped front end with recorded pictures, without Jupyter and without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .browser import Browser

STATIC = Path(__file__).resolve().parents[3] / "graphwidget" / "static"
URL = "http://127.0.0.1/view/"
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="widget.css">
<style>body{{margin:8px;background:{ground}}}</style>
<body data-jp-theme-light="{light}"><div id="view" style="width:{width}px"></div>
<script type="module">
  import widget from "./widget.js";
  const listeners = {{}}, traits = {{ wire: "", delta: "", height: {height}, busy: "", presenting: false }};
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


def open_view(browser: Browser, wire: str, width: int = 900, height: int = 560, theme: str = "light") -> Any:
    """Return a page that shows a picture, once the picture is drawn.

    Parameters
    ----------
    browser
        The browser to open it in.
    wire
        The message of the picture; "": the view waits for one.
    width, height
        Of the view in px; height 0: by content.
    theme
        "light" or "dark", as JupyterLab says it.
    """
    page, _ = browser.open()
    light = theme == "light"
    html = PAGE.format(width=width, height=height, light=str(light).lower(), ground="#ffffff" if light else "#111111")
    page.route(URL, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.route(f"{URL}widget.js", lambda r: r.fulfill(path=STATIC / "widget.js", content_type="text/javascript"))
    page.route(f"{URL}widget.css", lambda r: r.fulfill(path=STATIC / "widget.css", content_type="text/css"))
    page.goto(URL)
    page.wait_for_function("() => window.model")
    if wire:
        show(page, wire)
        page.locator('[role="treeitem"]').first.wait_for(state="attached")
    return page


def show(page: Any, wire: str) -> None:
    """Give the view a picture, as the kernel does."""
    page.evaluate("wire => window.model.set('wire', wire)", wire)


def rest(page: Any) -> None:
    """Wait until the picture on the page rests: nothing of it changes for some frames."""
    page.evaluate(
        """() => new Promise((done) => {
          const root = document.querySelector(".graphwidget");
          let last = "", same = 0;
          const look = () => {
            const now = root.innerHTML + root.style.cssText;
            same = now === last ? same + 1 : 0;
            last = now;
            if (same > 4) done(); else setTimeout(look, 60);
          };
          look();
        })"""
    )
