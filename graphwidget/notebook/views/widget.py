"""The live view: one widget model, many views of it, fed by a tracker or by given tensors.

The model holds plain data only (texts of `render.wire`), because ipywidgets keeps every widget alive
until `close()`. Each event makes at most one message: a delta where the graph's structure is the same,
else the whole picture. While a cell runs there are at most ten messages a second, and fewer where
drawing is slow; a cell's end is always sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from graphwidget.exports.formats import FORMATS
from graphwidget.model import CellRun, Drawing, Event
from graphwidget.notebook.requests.actions import Actions
from graphwidget.notebook.requests.offers import Offers
from graphwidget.notebook.requests.turns import Turns
from graphwidget.notebook.sources import Source
from graphwidget.notebook.trying import Trying
from graphwidget.notebook.views.display import beside
from graphwidget.render import text
from graphwidget.render.wire import Base, delta
from graphwidget.torch_internals import no_collection

__all__ = ["AutogradView"]

log = logging.getLogger("graphwidget")

STATIC = Path(__file__).parents[2] / "static"
INTERVAL = 0.1  # seconds between two messages while a cell runs
# Of the time of a running cell at most 1/200 goes into drawing.
SHARE = 200
MAX_NOTES = 5  # failures of our own that are shown


def _nothing() -> None: ...


def _remember(change: dict[str, Any]) -> None:
    """A view was switched to presenting or back: those that are made from now on begin like it."""
    AutogradView._presents = bool(change["new"])


_NO_BUNDLE = """export default { render({ el }) {
  el.textContent = "The front end of graphwidget is missing from this installation: reinstall graphwidget.";
} };"""


def _static(name: str, otherwise: str = "") -> str:
    """A file of the built front end. It is read once per model, so that a rebuilt bundle is seen without a restart."""
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return otherwise


class AutogradView(anywidget.AnyWidget):
    """The autograd graph, live. Made by `graphwidget.view` and ``%graphwidget``.

    Attributes
    ----------
    wire : str
        The picture (JSON text, see `graphwidget.render.wire`).
    delta : str
        What changed since `wire`, or empty.
    height : int
        Pixels; 0: by the content.
    busy : str
        What is running, or empty.
    formats : list of list of str
        Name and label of each format that the export menu offers.
    presenting : bool
        Whether it shows large and with little beside the picture, for an audience. A view that is made later begins
        as the last one that was switched.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> shown = graphwidget.view(loss)
    >>> shown.height  # by the content
    0
    >>> shown.close()
    """

    wire = traitlets.Unicode("").tag(sync=True)
    delta = traitlets.Unicode("").tag(sync=True)
    height = traitlets.Int(0, min=0, max=4000).tag(sync=True)
    busy = traitlets.Unicode("").tag(sync=True)
    formats = traitlets.List(
        [[name, form.label] for name, form in FORMATS.items() if form.suffix and not form.binary]
    ).tag(sync=True)

    presenting = traitlets.Bool(False).tag(sync=True)
    _presents = False  # how a new view begins

    def __init__(
        self,
        source: Source,
        turns: Turns | None = None,
        *,
        rerun: Callable[[CellRun], BaseException | None] | None = None,
        trying: Trying | None = None,
        **traits: Any,
    ) -> None:
        self.closed = False
        self._source: Source | None = None
        self._stop: Callable[[], None] = _nothing
        self._offers = Offers()
        self._lock = threading.RLock()
        self._dirty = False
        self._base: Base | None = None
        self._serial = 0
        self._sent_at = self._cost = 0.0
        self._troubles: list[str] = []
        self._actions = Actions(self._offers, turns or Turns(), self._reply, self.refresh, rerun=rerun, trying=trying)
        # Set before anywidget reads them: it makes them traits of this instance.
        self._esm = _static("widget.js", _NO_BUNDLE)
        self._css = _static("widget.css")
        super().__init__(**{"presenting": AutogradView._presents, **traits})
        self.observe(_remember, "presenting")
        self.on_msg(self._on_message)
        self.show(source)

    def show(self, source: Source) -> None:
        """Show another source from now on."""
        self._stop()
        self._source = self._actions.source = source
        self._offers.follow(source.hues)
        if source.tracker is not None:
            self._stop = source.tracker.subscribe(self._on_event)
        self.refresh()

    # -- towards the page --------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draw the present picture and send it. Never raises, never waits for another thread that draws."""
        self._dirty = True
        # Waiting could deadlock: that thread may wait for the tracker, whose lock this one may hold.
        # So the other thread draws: it checks the mark once more when it is done.
        while self._dirty and self._lock.acquire(blocking=False):
            try:
                self._dirty = False
                self._draw()
            finally:
                self._lock.release()

    def _draw(self) -> None:
        if self._source is None:
            return
        began = time.thread_time()  # not by the clock: on a busy machine the next picture would be minutes away
        try:
            with no_collection():
                self._publish(self._source.drawing())
        except Exception as error:  # nothing of ours raises into a user's cell
            self.trouble(error)
        self._sent_at = time.perf_counter()
        self._cost = time.thread_time() - began

    def trouble(self, error: BaseException) -> None:
        """Show and log a failure of our own; the rest goes on."""
        log.warning("graphwidget: %s", error, exc_info=error)
        text = f"{type(error).__name__}: {error}"
        if text not in self._troubles:
            self._troubles = [*self._troubles[1 - MAX_NOTES :], text]

    def stand_still(self, why: str) -> None:
        """Tracking has ended: keep the last picture, refuse requests with `why`."""
        with self._lock:
            self._let_go(why)
            if self._base is not None:
                self._serial += 1
                self._base = Base.of(replace(self._base.drawing, busy=None), self._serial, (), off=True)
                self._put(self._base.text, "", "")

    def close(self) -> None:
        """Remove the widget from the page and let go of everything. Closing twice is fine."""
        with self._lock:
            self.closed = True
            self._let_go("This view was closed.")
            self._base = None
        super().close()

    def _let_go(self, why: str) -> None:
        self._stop()
        self._stop = _nothing
        self._source = self._actions.source = None
        self._actions.refuse_all(why)

    def _on_event(self, event: Event) -> None:
        """Draw after an event. While a cell is running, more events may follow at once."""
        running = self._source is not None and self._source.tracker is not None and self._source.tracker.busy
        if running and time.perf_counter() - self._sent_at < max(INTERVAL, SHARE * self._cost):
            return
        self.refresh()

    def _publish(self, drawing: Drawing) -> None:
        tracker = self._source.tracker if self._source is not None else None
        problems = [*self._troubles, *(tracker.problems if tracker is not None else ())][-MAX_NOTES:]
        if problems:
            notes = (*drawing.snapshot.notes, *(f"graphwidget could not follow this: {text}" for text in problems))
            drawing = replace(drawing, snapshot=replace(drawing.snapshot, notes=notes))
        live = self._source is None or self._source.is_live
        roots = self._offers.update(drawing) if live else self._offers.withdraw(drawing)
        self._serial += 1
        off = tracker is not None and not tracker.running
        change = None if self._base is None else delta(drawing, self._base, self._serial, roots, off=off)
        if change is None or self._base is None or len(change) > len(self._base.text):
            self._base = Base.of(drawing, self._serial, roots, off=off)
            change = ""
        self._put(self._base.text, change, drawing.busy or "")

    def _put(self, wire: str, change: str, busy: str) -> None:
        """Send all three traits in one message."""
        with self.hold_sync():
            self.wire, self.delta, self.busy = wire, change, busy

    # -- from the page -----------------------------------------------------------------------------

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        self._actions.handle(content)

    def _send(self, msg: Any, buffers: Any = None) -> None:
        """Send as ipywidgets does, and stay reachable in a subshell while a cell runs.

        ipykernel (7.4) routes a comm's messages to the shell that last sent on it: after an update from a
        cell, every click would wait for the main thread, unanswered, even one that only asks.
        """
        super()._send(msg, buffers)
        getattr(self.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    def _reply(self, content: dict[str, Any]) -> None:
        try:
            self.send(content)
        except Exception as error:  # the page is gone
            self.trouble(error)

    # -- text ----------------------------------------------------------------------------------------

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and the same picture as PNG and text for all who do not show it."""
        self.refresh()
        bundle = super()._repr_mimebundle_(**kwargs)
        return None if bundle is None else beside(self._shown(), bundle)

    def as_text(self) -> str:
        """The picture as plain text."""
        return text.picture(self._shown())

    def _shown(self) -> Drawing:
        return replace(self._offers.drawing, busy=None)
