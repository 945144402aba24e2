"""Where a program makes something: the calls of a function, and the line that made a part of a module."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import place_of
from graphwidget.model import CellRun, Place, Record

__all__ = ["CallText", "calls", "line_that_made"]


class CallText(NamedTuple):
    """A call in the text of a cell."""

    run: CellRun
    call: ast.Call

    def argument(self, name: str) -> ast.expr | None:
        """The value of a keyword argument."""
        return next((one.value for one in self.call.keywords if one.arg == name), None)


def calls(record: Record, *names: str) -> list[CallText]:
    """The calls of functions or classes with these last names, in the order of the cells and lines.

    ``partial(checkpoint, block)`` is one, too: it has the keywords of the call that it prepares.
    """
    found = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        there = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
        own = [node for node in there if syntax.last_name(ast.unparse(_called(node))) in names]
        found += [CallText(run, node) for node in sorted(own, key=lambda node: (node.lineno, node.col_offset))]
    return found


def _called(call: ast.Call) -> ast.expr:
    """The function that a call calls, or prepares a call of."""
    prepares = syntax.last_name(ast.unparse(call.func)) == "partial" and call.args
    return call.args[0] if prepares else call.func


def line_that_made(record: Record, path: str) -> Place | None:
    """The line that made what a path names, or the module that it is in.

    For example ``self.head = nn.Linear(8, 2)`` for ``net.head.weight``, and ``net = nn.Sequential(...)`` for
    ``net[0].weight``. None where several lines may have made it.
    """
    first, *parts = re.findall(r"[A-Za-z_]\w*", path)
    for part in reversed(parts):
        found = [(run, one) for run in Cells.of(record).latest for one in _assigned(run, f"self.{part}")]
        if len(found) == 1:
            run, statement = found[0]
            return place_of(run, statement.lineno)
        if found:
            return None
    made = [(run, one) for run in Cells.of(record).latest for one in syntax.assignments(run.source, first)]
    return place_of(made[0][0], made[0][1].lineno) if len(made) == 1 else None


def _assigned(run: CellRun, target: str) -> list[ast.stmt]:
    tree = syntax.parse(run.source)
    every = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree is not None else []
    plain = [one for one in every if isinstance(one, (ast.Assign, ast.AnnAssign)) and target in syntax.targets(one)]
    return [one for one in plain if not _is_none(one)]


def _is_none(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
