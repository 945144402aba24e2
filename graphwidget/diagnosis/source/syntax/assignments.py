"""Statements that give a name its value."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source.syntax.definitions import function_at
from graphwidget.diagnosis.source.syntax.loops import loop_at
from graphwidget.diagnosis.source.syntax.names import changed, names_in, targets
from graphwidget.diagnosis.source.syntax.statements import nodes_of, parse


def assignments(source: str, name: str) -> list[ast.stmt]:
    """The statements that assign `name`, in the order of the text."""
    found = [s for s in nodes_of(source) if isinstance(s, ast.stmt) and name in targets(s)]
    return sorted(found, key=lambda s: s.lineno)


def bindings(source: str, name: str, line: int) -> list[ast.stmt]:
    """The statements before a line, or around it, that give `name` a value: assignments and heads of `for`."""
    found = [
        s
        for s in nodes_of(source)
        if isinstance(s, ast.stmt) and s.lineno < line
        if name in (names_in(s.target) if isinstance(s, ast.For) else targets(s))
    ]
    return sorted(found, key=lambda s: s.lineno)


def assigned_as(source: str, last: str) -> list[tuple[ast.stmt, str]]:
    """Statements that assign a name or attribute called `last`, each with its target, in the order of the text."""
    found = [
        (s, target)
        for s in nodes_of(source)
        if isinstance(s, ast.stmt)
        for target in targets(s)
        if target.rsplit(".", 1)[-1] == last
    ]
    return sorted(found, key=lambda pair: pair[0].lineno)


def _sets(statement: ast.stmt, name: str) -> bool:
    """Whether a statement assigns a variable in any case: ``if h is None: h = zeros()`` leaves it set, too."""
    if isinstance(statement, ast.If):
        asked = ast.unparse(statement.test) in (f"{name} is None", f"not {name}")
        return any(_sets(s, name) for s in statement.body) and (asked or any(_sets(s, name) for s in statement.orelse))
    return not isinstance(statement, (ast.For, ast.While)) and name in changed(statement)


def set_at(cells: list[str], cell: str, line: int, name: str) -> bool:
    """Whether a variable surely has a value other than None when a line of a cell is reached for the first time.

    It is assigned in each pass before the line, or before the loop, and no cell assigns None to it.
    """
    loop, function = loop_at(cell, line), function_at(cell, line)
    tree = parse(cell)
    body = loop.body if loop is not None else function[1].body if function is not None else tree.body if tree else []
    if loop is not None and isinstance(loop, ast.For) and name in names_in(loop.target):
        return True
    if any(_sets(s, name) for s in body if s.lineno < line):
        return True
    every = [s for text in cells for s in assignments(text, name)]
    if any(isinstance(v := getattr(s, "value", None), ast.Constant) and v.value is None for s in every):
        return False
    inside = {id(s) for s in ast.walk(loop)} if loop is not None else set[int]()
    outside = [s for s in every if id(s) not in inside]
    return bool(outside) or not every or function is not None
