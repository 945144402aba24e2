"""What is found in a program whose cells run in this process, as the extension runs them."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.engine.forecast import forecast
from graphwidget.model import Finding, Record

TESTS = str(Path(__file__).parents[1])

__all__ = ["findings_of", "record_of", "said"]


def findings_of(*cells: str, **names: Any) -> tuple[Finding, ...]:
    """Run cells with a tracker, also after an error, and return the findings. `names` stand for objects beforehand."""
    return _run(cells, names)[1]


def record_of(*cells: str) -> Record:
    """The record of the same."""
    return _run(cells, {})[0]


def _run(cells: tuple[str, ...], names: dict[str, Any]) -> tuple[Record, tuple[Finding, ...]]:
    space: dict[str, Any] = {"__name__": "__main__", "torch": torch, "nn": torch.nn, **names}
    tracker = Tracker(lambda: space, forecaster=forecast, diagnose=diagnose)
    tracker.code(left_out=[TESTS])  # the tests are no part of the program
    tracker.start()
    torch.manual_seed(0)
    try:
        for number, cell in enumerate(cells, 1):
            filename = f"<told {number}>"
            linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
            tracker.begin_cell(number, cell, cell_id=str(number), filename=filename)
            error = None
            try:
                exec(compile(cell, filename, "exec"), space)
            except Exception as raised:
                error = raised
            tracker.end_cell(error)
            if error is not None:
                error.with_traceback(None)
        record, found = tracker.record(), tracker.findings()
    finally:
        tracker.stop()
    assert list(tracker.problems) == []
    return record, found


def said(*cells: str, **names: Any) -> list[tuple[str, str]]:
    """The severity and the headline of each finding."""
    return [(one.severity, one.headline) for one in findings_of(*cells, **names)]
