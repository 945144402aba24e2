"""Lines that clear gradients, themselves or in a function of the user's own that they call."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import place_of
from graphwidget.model import CellRun, Place, Record

__all__ = ["clears", "where_cleared"]


def clears(statement: ast.AST) -> bool:
    """Whether a statement calls some ``zero_grad``."""
    return any(syntax.last_name(name) == "zero_grad" for name in syntax.calls_in(statement))


def where_cleared(record: Record, run: CellRun, statement: ast.stmt) -> list[Place]:
    """The lines with a ``zero_grad``: the statement itself, or those of the functions that it calls.

    A function is taken for the one that is called if no other has its name.
    """
    if syntax.blocks_of(statement):
        return []
    if clears(statement):
        return [place_of(run, statement.lineno)]
    latest, found = Cells.of(record).latest, list[Place]()
    for name in {syntax.last_name(called) for called in syntax.calls_in(statement)}:
        named = [(other, one) for other in latest for one in syntax.functions_of(other.source, name)]
        if len(named) == 1:
            other, function = named[0]
            own = syntax.own_statements(function.body)
            found += [place_of(other, one.lineno) for one in own if not syntax.blocks_of(one) and clears(one)]
    return found
