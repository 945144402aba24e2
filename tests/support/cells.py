"""Cells that run as in a notebook, with a tracker and no shell: the one runner of cells for tests without IPython."""

from __future__ import annotations

import linecache
import weakref
from typing import Any

import torch

from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast
from graphwidget.model import BackwardCall

__all__ = ["ALL_IN_FULL", "NO_TIME", "Notebook", "stop_all"]

NO_TIME = CallPolicy(walk_share=-1.0, full_share=-1.0)  # as if reading calls had taken too long already
ALL_IN_FULL = CallPolicy(walk_share=1e9, full_share=1e9, in_full=10**9)  # every call is read, however long that takes


# Weak: what the tests' own modules hold is found as an owner of a graph.
_running: list[weakref.ref[Tracker]] = []


def stop_all() -> None:
    """Stop the tracker of every notebook that a test has left running."""
    while _running:
        left = _running.pop()()
        if left is not None:
            left.stop()


class Notebook:
    """A namespace whose cells are tracked, until the test ends.

    Parameters
    ----------
    calls
        How closely calls are read.
    options
        Of the tracker.

    Attributes
    ----------
    errors
        What cells have raised.
    """

    def __init__(self, *, calls: CallPolicy | None = None, **options: Any) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__", "torch": torch}
        if calls is not None:
            options["policy"] = TrackerPolicy(calls=calls)
        self.tracker = Tracker(lambda: self.namespace, **{"forecaster": forecast, **options})
        self.tracker.start()
        _running.append(weakref.ref(self.tracker))
        self.number = 0
        self.errors: list[BaseException] = []

    def run(self, source: str, filename: str | None = None, cell_id: str | None = None) -> BaseException | None:
        """Run a cell, or one that ran before (`cell_id`) again; returns what it raised."""
        self.number += 1
        filename = filename or f"<cell {self.number}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        self.tracker.begin_cell(self.number, source, filename=filename, cell_id=cell_id or f"id{self.number}")
        error: BaseException | None = None
        try:
            exec(compile(source, filename, "exec"), self.namespace)
        except BaseException as raised:
            error = raised.with_traceback(None)
            self.errors.append(error)
        self.tracker.end_cell(error)
        return error

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """The calls that were recorded."""
        return self.tracker.calls

    def close(self) -> None:
        """Stop tracking. Nothing of ours may have failed."""
        self.tracker.stop()
        assert list(self.tracker.problems) == []
