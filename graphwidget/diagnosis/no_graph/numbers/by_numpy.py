"""Lines that compute with NumPy on the way from a number that was taken out of a tensor to the tensor made of it.

``table[i, j] = cost[i, j].item() + min(…)`` with ``table = np.zeros((n, m))``: the table, too, has to be a tensor, and
the functions that get parts of it have to compute with tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphwidget.diagnosis.fixes.as_tensors import in_numpy
from graphwidget.diagnosis.source import syntax
from graphwidget.model import CellRun

__all__ = ["Line", "computing_beside"]


class Line(NamedTuple):
    """A statement of a cell."""

    run: CellRun
    statement: ast.stmt


def computing_beside(runs: Collection[CellRun], start: Line) -> list[Line]:
    """The statements that compute with NumPy where a statement's result goes: in its function, and those it calls."""
    text = start.run.source
    inside = syntax.function_at(text, start.statement.lineno)
    tree = syntax.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    steps = [one for one in syntax.own_statements(body) if not hasattr(one, "body")]
    names = _filled(start.statement)
    while True:
        more = {name for one in steps if _read(one) & names for name in _filled(one)} | names
        if more == names:
            break
        names = more
    on_the_way = [one for one in steps if _read(one) & names or (_filled(one) & names and _makes_array(one))]
    found = [Line(start.run, one) for one in on_the_way if one is not start.statement]
    for one in on_the_way:
        found += (line for called in _given(one, names) for line in _called(runs, called))
    return [one for one in found if any(map(in_numpy, ast.walk(one.statement)))]


def _filled(statement: ast.stmt) -> set[str]:
    """The variables that a statement binds, or writes a part of."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    found = set[str]()
    for one in targets:
        while isinstance(one, (ast.Subscript, ast.Starred)):
            one = one.value
        found |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} if one is not None else set()
    return found | syntax.grown(statement)


def _read(statement: ast.stmt) -> set[str]:
    """The variables of whose values a statement computes something: not of their sizes."""
    sizes = {
        id(part)
        for node in ast.walk(statement)
        if (isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "dtype"))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("len", "range", "print"))
        for part in ast.walk(node)
    }
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in sizes
    }


def _makes_array(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and bool(in_numpy(syntax.given(statement)))


def _given(statement: ast.stmt, names: set[str]) -> Iterator[str]:
    """The functions that a statement gives such values to, by their last names."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and not in_numpy(node):
            given = (*node.args, *(one.value for one in node.keywords))
            if any(syntax.names_in(one) & names for one in given):
                yield syntax.last_name(ast.unparse(node.func))


def _called(runs: Collection[CellRun], name: str) -> Iterator[Line]:
    for run in runs:
        for function in syntax.functions_of(run.source, name):
            steps = syntax.own_statements(function.body)
            yield from (Line(run, one) for one in steps if not hasattr(one, "body"))
