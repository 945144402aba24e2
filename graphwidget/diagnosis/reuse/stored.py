"""The line that keeps a carrier: ``self.cache[key] = value``, ``self.h = h``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphwidget.diagnosis.source import containers, syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import place_of
from graphwidget.model import CellRun, Place, Record

__all__ = ["stored_at"]


def stored_at(record: Record, paths: Iterable[str]) -> Place | None:
    """The one line of the program that gives the first of these paths its value; None: there is none, or several."""
    path = next((one for one in map(local, paths) if is_code(one) and ("." in one or "[" in one)), None)
    if path is None:
        return None
    runs = Cells.of(record).latest
    holder, bracket, rest = path.partition("[")
    if bracket:
        lines = {
            (run.run, line): run
            for run in runs
            for line, _ in containers.detached_in(run.cell, run.source, holder, [f"[{rest}"])
        }
    else:
        name = path.rpartition(".")[2]
        lines = {(run.run, one.lineno): run for run in runs for one in _assigning(run, name)}
    if len(lines) != 1:
        return None
    ((_, line), run), *_ = lines.items()
    return place_of(run, line)


def _assigning(run: CellRun, name: str) -> Iterable[ast.Assign]:
    """The assignments to an attribute of this name, but for those of a constructor and of a constant."""
    for node in syntax.nodes_of(run.source):
        if isinstance(node, ast.Assign) and name in {
            one.rpartition(".")[2] for one in syntax.targets(node) if "." in one
        }:
            inside = syntax.function_at(run.source, node.lineno)
            constructor = inside is not None and inside[1].name in ("__init__", "__post_init__")
            if not constructor and not isinstance(node.value, ast.Constant):
                yield node
