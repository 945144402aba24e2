"""What a block computes with parts of modules from which the program makes its optimizers, as its text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.dataflow.called import classes_of, objects_of
from graphwidget.diagnosis.source.pytorch.optimizers import is_below, optimized_paths
from graphwidget.model import CellRun

__all__ = ["trained_calls"]


def trained_calls(runs: list[CellRun], run: CellRun, statements: Iterable[ast.stmt]) -> tuple[str, ...]:
    """What some statements of a run call of modules, or of parts of modules, whose parameters an optimizer is given."""
    holders = optimized_paths(runs)
    found = dict[str, None]()
    for one in statements:
        for called in syntax.calls_in(one):
            if called.startswith("self."):
                within = [cls for cls in classes_of(run.source) if _spans(cls, one)]
                held = any(is_below(called, holder) for holder in holders if holder.startswith("self."))
                if held or (within and _is_trained(runs, within[-1].name, holders, set())):
                    found[called] = None
            elif any(is_below(called, holder) for holder in holders):
                found[called] = None
    return tuple(found)


def _is_trained(runs: list[CellRun], cls: str, holders: set[str], seen: set[str]) -> bool:
    """Whether an object of a class, or what it is a part of, is given to an optimizer."""
    if cls in seen:
        return False
    seen.add(cls)
    for run in runs:
        for name in objects_of(run.source, cls):
            if name in holders:
                return True
            owners = [one.name for one in classes_of(run.source) if name.startswith("self.") and _makes(one, name)]
            if any(_is_trained(runs, owner, holders, seen) for owner in owners):
                return True
    return False


def _makes(cls: ast.ClassDef, name: str) -> bool:
    return any(name in syntax.targets(node) for node in ast.walk(cls) if isinstance(node, ast.stmt))


def _spans(outer: ast.stmt, inner: ast.stmt) -> bool:
    return outer.lineno <= inner.lineno <= (outer.end_lineno or outer.lineno)
