"""The runs of cells, finished or running, and the result of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.errors import missing_grads, scene, trainable
from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.cells import Cell
from graphwidget.model import CellRun, Kind, Snapshot, TensorRef

__all__ = ["CellRuns"]


class CellRuns:
    """Cell runs by number.

    Parameters
    ----------
    book
        Knows which code belongs to a cell.
    namespace
        Returns the user's variables.
    limit
        Number of runs that are kept.
    """

    def __init__(self, book: Book, namespace: Callable[[], Mapping[str, Any]], limit: int) -> None:
        self.book, self.namespace, self.limit = book, namespace, limit
        self.runs: dict[int, CellRun] = {}
        self.running: list[int] = []  # the innermost last
        self.next = 0  # number of the next run

    def begin(self, cell: Cell, number: int | None, source: str, cell_id: str | None) -> None:
        """Begin the run of a cell. The body of a cell magic belongs to the run of the whole cell."""
        run = self.next if cell.run is None else cell.run
        if run == self.next:
            self.next += 1
        if run not in self.runs:
            file = cell.file.shown if cell.file is not None else None
            self.runs[run] = CellRun(
                run, number, source or cell.source, cell_id, grad_before=torch.is_grad_enabled(), file=file
            )
            if len(self.runs) > self.limit:
                del self.runs[next(iter(self.runs))]
        self.running.append(run)

    def end(self, error: BaseException | None) -> int:
        """End the innermost running cell and return its number. `error` is the exception it raised."""
        self.note_grad_mode()
        if error is not None:
            self.note_modules()
        run = self.running.pop()
        if error is not None and run in self.runs:
            self._note_error(run, error)
        return run

    def note_grad_mode(self) -> None:
        """Record the grad mode that the running cells would leave if they ended now."""
        for run in self.running:
            if run in self.runs:
                self.runs[run] = replace(self.runs[run], grad_after=torch.is_grad_enabled())

    def note_modules(self) -> None:
        """Record which modules can train, for the innermost running cell, which has failed."""
        if self.running and self.running[-1] in self.runs:
            run = self.running[-1]
            self.runs[run] = replace(self.runs[run], modules=trainable.modules(self.namespace()))

    def _note_error(self, run: int, error: BaseException) -> None:
        place, frame = self.book.raised_at(error.__traceback__)
        self.runs[run] = replace(
            self.runs[run],
            error_type=type(error).__name__,
            error=BaseException.__str__(error),
            error_place=place,
            without_grad=missing_grads.kinds(frame, place.source) if frame is not None and place is not None else {},
            through_backward=ti.came_through_backward(error.__traceback__),
            scene=scene.of_error(error, self.book, self.sources()),
        )

    def sources(self) -> list[str]:
        """Return the sources of the runs, the last one first."""
        return [run.source for run in reversed(self.runs.values())]

    def cell_of(self, run: int) -> int | None:
        """Return the execution count of a run."""
        return self.runs[run].cell if run in self.runs else None

    def that_made(self, snapshot: Snapshot, root: TensorRef) -> tuple[int, ...] | None:
        """Return the runs that made the graph of a root, in order; None if the run of any node is unknown."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = [root.node] if root.node >= 0 else []
        while stack:
            index = stack.pop()
            if index in seen:
                continue
            seen.add(index)
            if snapshot.kind[index] == Kind.ACCUMULATE:
                continue
            place = snapshot.place_of(index)
            if place is None or place.run is None or place.run not in self.runs:
                return None
            found.add(place.run)
            stack.extend(snapshot.next(index))
        return tuple(sorted(found)) if found else None
