"""Cells that run as in a notebook, with a tracker and no shell."""

from __future__ import annotations

from typing import Any

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast


class Notebook:
    """`errors`: what cells have raised."""

    def __init__(self, **options: Any) -> None:
        self.namespace: dict[str, Any] = {"torch": torch}
        self.tracker = Tracker(lambda: self.namespace, forecaster=forecast, **options)
        self.tracker.start()
        self.number = 0
        self.errors: list[BaseException] = []

    def run(self, source: str) -> None:
        self.number += 1
        filename = f"<cell {self.number}>"
        self.tracker.begin_cell(self.number, source, filename=filename, cell_id=f"id{self.number}")
        error: BaseException | None = None
        try:
            exec(compile(source, filename, "exec"), self.namespace)
        except Exception as raised:
            error = raised.with_traceback(None)
            self.errors.append(error)
        self.tracker.end_cell(error)
