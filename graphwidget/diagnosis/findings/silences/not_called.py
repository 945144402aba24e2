"""Methods of a training loop that a line names and does not call: ``opt.zero_grad``. The line does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["find", "is_named_only"]

_SO = {
    "backward": "No gradient is computed there.",
    "step": "No step is made there.",
    "zero_grad": "So gradients add up from pass to pass.",
}


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each such line of what ran to its end."""
    for run in Cells.of(record).latest:
        for one, value in _named(record, run) if run.error is None else ():
            place, shown = place_of(run, one.lineno), ast.unparse(value)
            yield Finding(
                "silent",
                "warning",
                f"{short(shown)} ({where(place)}) names the method and does not call it, so the line does nothing. "
                f"{_SO[value.attr]}",
                f"`{shown}` is not called.",
                made_at=place,
                cause=place,
                names=(shown,),
                fixes=(
                    Fix(
                        "call_it",
                        f"Call it: `{shown}()`.",
                        False,
                        (run.cell, one.lineno) if run.cell is not None else None,
                        edits=text_edit.insert_behind(run.cell, run.source, value, "()"),
                    ),
                ),
            )


def is_named_only(record: Record, owner: str, method: str) -> bool:
    """Whether a line names this method of an object and does not call it: what follows from that is told with it."""
    return any(
        value.attr == method and ast.unparse(value.value) == owner
        for run in Cells.of(record).latest
        if run.error is None
        for _, value in _named(record, run)
    )


def _named(record: Record, run: CellRun) -> Iterator[tuple[ast.Expr, ast.Attribute]]:
    tree = syntax.parse(run.source)
    last = tree.body[-1] if tree is not None and tree.body else None
    for one in syntax.nodes_of(run.source) if run.cell is not None else ():
        if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Attribute) or one.value.attr not in _SO:
            continue
        if one is last or (one.value.attr == "step" and not _is_optimizer(record, ast.unparse(one.value.value))):
            continue  # a notebook shows a cell's last value; `step` may be a field of something else
        yield one, one.value


def _is_optimizer(record: Record, owner: str) -> bool:
    made = (one for run in record.runs.values() for one, _ in syntax.assigned_as(run.source, owner.rsplit(".", 1)[-1]))
    return any(OPTIMIZER.search(ast.unparse(one)) or "Scheduler" in ast.unparse(one) for one in made)
