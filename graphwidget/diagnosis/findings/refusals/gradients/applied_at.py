"""The line that applied an operation without a derivative, where its node has no number: from the text around it.

PyTorch numbers the nodes that it makes, and lines are known by these numbers. A node that only stands for a missing
derivative has none. What is known is what was computed from it, and where.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.no_graph.terms import history
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, place_of
from graphwidget.model import BackwardCall, Place, Record, Snapshot

__all__ = ["lines_that_apply"]

_LEAST = 4  # letters of a function's name that is looked for in an operation's


def lines_that_apply(record: Record, call: BackwardCall, operation: str, node: int | None) -> list[Place]:
    """Return the lines one of which applied an operation, in the order of the text; empty: unknown.

    Parameters
    ----------
    operation
        As PyTorch names it: ``histogram``, ``linalg_ldl_factor_ex``.
    node
        What stands for its derivative in the graph of the call; None: unknown.
    """
    values = Values([run for _, run in sorted(record.runs.items())])
    last = {run.cell: index for index, run in enumerate(values.runs)}  # of a cell that ran twice
    calls = [
        (index, one)
        for index in last.values()
        for one in _calls(values.runs[index].source, operation)
        if not _is_cut_off(values, index, one)
    ]
    if len(_lines(calls)) > 1 and call.graph is not None:
        users = _users(call.graph, node) if node is not None else []
        for place in [*users, call.place]:
            behind = _behind(record, values, place)
            calls = [(index, one) for index, one in calls if id(one) in behind] or calls
            if len(_lines(calls)) == 1:
                break
    return [place_of(values.runs[index], line) for index, line in _lines(calls)]


def _calls(text: str, operation: str) -> Iterator[ast.Call]:
    """The calls of a function whose name is in that of the operation, of the longest such name."""
    named = syntax.calls_by_name(text)
    fits = [name for name in named if len(name) >= _LEAST and re.search(rf"(?:^|_){name}(?:_|$)", operation)]
    yield from named[max(fits, key=len)] if fits else ()


def _is_cut_off(values: Values, index: int, call: ast.Call) -> bool:
    """Whether the program says that what a call is given has no graph: it left nothing in the graph."""
    given = call.args[:1] or ([call.func.value] if isinstance(call.func, ast.Attribute) else [])
    outer = [one.func if isinstance(one, ast.Call) else one for one in given]
    around = syntax.statements_at(values.runs[index].source, call.lineno)
    switched = bool(around) and values.switch_around(index, around[-1]) is not None
    return switched or any(isinstance(one, ast.Attribute) and one.attr in ("detach", "data") for one in outer)


def _lines(calls: list[tuple[int, ast.Call]]) -> list[tuple[int, int]]:
    return sorted({(index, one.lineno) for index, one in calls})


def _users(graph: Snapshot, node: int) -> list[Place]:
    """Where something was computed from what a node stands for."""
    found = (graph.place_of(one) for one in range(len(graph)) if node in graph.next(one))
    return list(dict.fromkeys(place for place in found if place is not None))


def _behind(record: Record, values: Values, place: Place) -> set[int]:
    """The ids of the expressions that a line computes with, and of those that made these."""
    spot = at(place)
    statement = Cells.of(record).statement(spot) if spot is not None else None
    index = max((i for i, run in enumerate(values.runs) if spot is not None and run.cell == spot[0]), default=-1)
    if statement is None or spot is None or index < 0 or hasattr(statement, "body"):
        return set()
    given = [syntax.given(statement), getattr(statement, "target", None)]  # ``loss += term`` reads both
    roots = [one for one in given if isinstance(one, ast.expr)]
    return history(values, roots, Spot(index, statement.lineno), ast.Constant(None)) or set()
