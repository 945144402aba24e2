"""What is found in a program whose cells run in this process, as the extension runs them."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from graphwidget.capture.flow.hooks.unpacked import UnpackedTensors
from graphwidget.capture.flow.leaves.joined import JoinedParameters
from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.capture.flow.operands import tensors_in
from graphwidget.capture.flow.zero_gradients import ZeroFlow
from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.engine.forecast import forecast
from graphwidget.model import Finding, Lineage, Record, TextLine
from graphwidget.programs.trying import lines_of

TESTS = str(Path(__file__).parents[1])

__all__ = ["findings_of", "record_of", "said", "with_joined", "with_lineage", "with_unpacked", "with_zero_flow"]


def findings_of(*cells: str, **names: Any) -> tuple[Finding, ...]:
    """Run cells with a tracker, also after an error, and return the findings. `names` stand for objects beforehand."""
    return _run(cells, names)[1]


def record_of(*cells: str) -> Record:
    """The record of the same."""
    return _run(cells, {})[0]


def with_zero_flow(*cells: str) -> tuple[Finding, ...]:
    """The findings of cells, with what is measured of gradients of zeros in the same run."""
    flow = ZeroFlow()
    steps = register_optimizer_step_post_hook(lambda optimizer, *_: flow.step(held(optimizer)))
    try:
        record = _run(cells, {}, lambda tracker: flow.before_call)[0]
    finally:
        steps.remove()
    return diagnose(replace(record, lineage=Lineage(None, zeros=flow.found())))


def with_lineage(*cells: str) -> tuple[Finding, ...]:
    """The findings of cells, with what is measured of where values leave the graph in the same run."""
    patched = ((torch.optim.Optimizer, "__init__"), (torch.optim.Optimizer, "zero_grad"), (nn.Parameter, "__new__"))
    before = [(owner, name, getattr(owner, name)) for owner, name in patched]
    modes: list[LineageMode] = []
    no_graph: list[Lineage] = []

    def begins(tracker: Tracker) -> Callable[[int, Any], None]:
        frames = tracker.provenance.cell_frames
        name = tracker.write_recorder.watched.name
        modes.append(LineageMode(lambda: lines_of(tracker), name, None, lambda: frames(sys._getframe())))
        modes[0].begin()

        def called(n: int, outputs: Any) -> None:
            if not any(one.requires_grad for one in tensors_in((outputs,))):
                no_graph[:] = [modes[0].measured(n, outputs)]
            modes[0].called(n, outputs)

        return called

    try:
        record = _run(cells, {}, begins)[0]
    finally:
        modes[0].end()
        for owner, name, value in before:
            setattr(owner, name, value)
    return diagnose(replace(record, lineage=no_graph[0] if no_graph else modes[0].measured(None)))


def with_joined(*cells: str) -> tuple[Finding, ...]:
    """The findings of cells, with what is measured in the same run of the lines that give modules their parameters."""
    watched: list[JoinedParameters] = []

    def begins(tracker: Tracker) -> Callable[[int, Any], None]:
        name = tracker.write_recorder.watched.name
        watched.append(JoinedParameters(lambda: lines_of(tracker), name))
        watched[0].begin()
        return lambda n, outputs: None

    try:
        record = _run(cells, {}, begins)[0]
        found = watched[0].found()
    finally:
        watched[0].end()
    return diagnose(replace(record, lineage=Lineage(None, joined=found)))


def with_unpacked(*cells: str) -> tuple[Finding, ...]:
    """The findings of cells, with what is measured of hooks for saved tensors in another run."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    before = hooks.__init__
    watched: list[UnpackedTensors] = []

    def begins(tracker: Tracker) -> Callable[[int, Any], None]:
        book = tracker.provenance.book

        def line_of(code: CodeType) -> TextLine | None:
            scope = book.scope(code)
            place = book.line_at(scope.base + code.co_firstlineno) if scope is not None else None
            return TextLine(place.cell, place.file, place.line) if place is not None and place.line else None

        watched.append(UnpackedTensors(lambda: lines_of(tracker), line_of))
        watched[0].begin()
        return lambda n, outputs: watched[0].called(n)

    try:
        _run(cells, {}, begins)
    finally:
        hooks.__init__ = before  # type: ignore[method-assign]
    return diagnose(replace(record_of(*cells), lineage=Lineage(None, unpacked=watched[0].found())))


def held(optimizer: Any) -> list[Any]:
    """The parameters of an optimizer."""
    return [one for group in optimizer.param_groups for one in group["params"]]


def _run(
    cells: tuple[str, ...],
    names: dict[str, Any],
    begins: Callable[[Tracker], Callable[[int, Any], None]] | None = None,
) -> tuple[Record, tuple[Finding, ...]]:
    space: dict[str, Any] = {"__name__": "__main__", "torch": torch, "nn": torch.nn, **names}
    tracker = Tracker(lambda: space, forecaster=forecast, diagnose=diagnose)
    tracker.code(left_out=[TESTS])  # the tests are no part of the program
    tracker.start()
    if begins is not None:
        before_call = begins(tracker)
        tracker.log.begins = lambda n, outputs, inputs: before_call(n, outputs)
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
