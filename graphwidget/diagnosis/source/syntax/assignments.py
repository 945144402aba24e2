"""Statements that give a name its value."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source.syntax.names import names_in, targets
from graphwidget.diagnosis.source.syntax.statements import nodes_of


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
