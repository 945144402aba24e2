"""A notebook open in a front end."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Locator, Page

from .browser import Browser, Log
from .kernel import Kernel
from .process import wait_for
from .servers import JupyterServer

# What Notebook 7 (7.6) complains about by itself, with an empty notebook: the second one after Lab has saved a layout.
_OWN = {"lab": (), "notebook": ("(reading 'schema')", "'filebrowser:open-path' not registered")}
_PANEL = "window.jupyterapp.shell.currentWidget"
_READY = """async name => {
  const app = window.jupyterapp;
  if (!app) return false;
  await app.restored;
  const panel = app.shell.currentWidget;
  if (!panel || !panel.sessionContext || !panel.content.widgets || panel.context.path !== name) return false;
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session?.kernel;
  return kernel && kernel.status === 'idle' ? kernel.id : false;
}"""
# All of the main area, views beside the notebook too; nothing asks whether to save. The file browser is open again.
_LEAVE = """async name => {
  const { shell } = window.jupyterapp, open = [...shell.widgets('main')];
  await open.find(w => w.context?.path === name).sessionContext.shutdown();
  open.forEach(w => w.dispose());
  shell.expandLeft();
}"""


class JupyterPage:
    """A notebook in JupyterLab (`app="lab"`) or Notebook 7 (`app="notebook"`): `page` shows it, or will in a moment."""

    def __init__(self, page: Page, log: Log, server: JupyterServer, notebook: str, app: str, timeout_s: float = 90):
        self.page, self.log, self.server, self.notebook, self.app = page, log, server, notebook, app
        self._timeout_s = timeout_s
        self.kernel_id: str = self._poll(_READY, f"{notebook} and an idle kernel in {app}", notebook)
        self._kernel: Kernel | None = None

    @classmethod
    def open(cls, browser: Browser, server: JupyterServer, notebook: str, app: str = "lab") -> JupyterPage:
        """The notebook in a page of its own."""
        path = {"lab": "lab/tree/{}?reset", "notebook": "notebooks/{}"}[app].format(quote(notebook))
        page, log = browser.open(server.page_url(path))
        return cls(page, log, server, notebook, app)

    def open_next(self, notebook: str) -> JupyterPage:
        """Another notebook in the same JupyterLab. This one was left with `leave`."""
        self.log.clear()
        self.command("docmanager:open", {"path": notebook})
        return JupyterPage(self.page, self.log, self.server, notebook, "lab")

    @property
    def kernel(self) -> Kernel:
        if self._kernel is None:
            self._kernel = self.server.kernel(self.kernel_id)
        return self._kernel

    def _poll(self, function: str, what: str, argument: object = None):
        # Not page.wait_for_function: it takes the promise of an async function for a true value.
        return wait_for(lambda: self.page.evaluate(function, argument), what, self._timeout_s)

    # --- running ---------------------------------------------------------------------------

    def command(self, name: str, args: dict | None = None) -> None:
        """Run a Lab command, e.g. "notebook:restart-run-all", and wait for it."""
        self.page.evaluate("([n, a]) => window.jupyterapp.commands.execute(n, a).then(() => null)", [name, args or {}])

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")
        self.wait_idle()

    def run_cell(self, k: int) -> None:
        self.page.evaluate(f"k => {{ {_PANEL}.content.activeCellIndex = k; }}", k)
        self.command("notebook:run-cell")
        self.wait_idle()

    def set_cell(self, k: int, source: str) -> None:
        self.page.evaluate(f"([k, s]) => {_PANEL}.content.widgets[k].model.sharedModel.setSource(s)", [k, source])

    def wait_idle(self) -> None:
        """No cell waits for its reply, and the kernel is idle after the messages sent so far."""
        self._poll(
            f"""async () => {{
              const panel = {_PANEL}, kernel = panel.sessionContext.session.kernel;
              if (panel.content.widgets.some(c => c.model.executionState === 'running')) return false;
              await kernel.requestKernelInfo();  // answered after what was sent before it
              return kernel.status === 'idle' && kernel.connectionStatus === 'connected';
            }}""",
            "an idle kernel",
        )

    # --- looking ---------------------------------------------------------------------------

    def cell(self, k: int) -> Locator:
        """Cell k, if it is in the DOM: with windowing "full", `scroll_to(k)` first."""
        return self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{k}"]')

    def scroll_to(self, k: int) -> None:
        self.page.evaluate(f"async k => {{ await {_PANEL}.content.scrollToItem(k, 'center'); }}", k)

    def output(self, k: int) -> Locator:
        return self.cell(k).locator(".jp-Cell-outputArea")

    def outputs(self, k: int) -> list[dict[str, Any]]:
        """The outputs in the notebook's model (nbformat), whatever is in the DOM."""
        return self.page.evaluate(f"k => {_PANEL}.content.widgets[k].model.toJSON().outputs ?? []", k)

    def problems(self) -> list[str]:
        """What the page complained about, but for what the front end does without anybody's help."""
        return self.log.problems(_OWN[self.app])

    # --- saving ----------------------------------------------------------------------------

    def save(self) -> Path:
        """Save the notebook and return its path on disk."""
        self.command("docmanager:save")
        return self.server.root / self.notebook

    def leave(self) -> None:
        """Close the notebook and end its kernel; JupyterLab stays open."""
        self._let_go()
        self.page.evaluate(_LEAVE, self.notebook)

    def close(self) -> None:
        self._let_go()
        self.page.close()

    def _let_go(self) -> None:
        if self._kernel:
            self._kernel.close()
