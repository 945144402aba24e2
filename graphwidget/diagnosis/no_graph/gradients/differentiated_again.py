"""A gradient without a graph of which the next gradient was asked for: that one needs a graph, too, if it is a loss."""

from __future__ import annotations

import ast
from dataclasses import replace

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import BackwardCall, Fix, Record

__all__ = ["differentiated_again"]


def differentiated_again(record: Record, call: BackwardCall, fix: Fix) -> Fix:
    """The fix for a gradient without a graph: the call that failed makes a gradient, too, which a later loss needs."""
    cells, spot = Cells.of(record), at(call.place)
    statement = cells.statement(spot) if spot is not None else None
    if fix.id != "create_graph" or call.api != "autograd.grad" or call.create_graph or not fix.edits:
        return fix
    if spot is None or statement is None or not _is_used_in_a_loss(cells.text(spot[0]), statement):
        return fix
    text = f"{fix.text.rstrip('.')}, and in {short(ast.unparse(statement))} ({where(call.place)}), if its gradient is "
    more = text_edit.with_keyword(spot[0], cells.text(spot[0]), statement, "create_graph=True")
    return replace(fix, text=f"{text}a part of the loss.", edits=(*fix.edits, *more))


def _is_used_in_a_loss(cell: str, statement: ast.stmt) -> bool:
    """Whether a backward follows in the same function, cell or loop, or the function returns what is computed."""
    inside = source.function_at(cell, statement.lineno)
    tree = source.parse(cell)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    later = [one for one in source.own_statements(body) if one.lineno >= statement.lineno]
    return any(isinstance(one, ast.Return) or ".backward(" in ast.unparse(one) for one in later)
