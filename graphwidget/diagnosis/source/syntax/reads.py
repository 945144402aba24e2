"""What reads a variable after a line of its function or cell: whether something that is written there is seen."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source.syntax.definitions import function_at
from graphwidget.diagnosis.source.syntax.loops import is_from_outside, loops_around, shared
from graphwidget.diagnosis.source.syntax.names import bound
from graphwidget.diagnosis.source.syntax.statements import own_statements, parse, statements_at


def is_read_behind(source: str, line: int, names: Collection[str], made: int) -> bool:
    """Whether one of some names is read after a line, also in the next pass of a loop around it.

    `made` is a line that reads it for that line: only in a loop around both does it read it again.
    """
    last = max([line, *(s.end_lineno or line for s in statements_at(source, line)[-1:])])
    inside = {node for loop in loops_around(source, line) for node in ast.walk(loop)}
    found = _reads(source, line, names)
    again = any(not bound(loop).intersection(names) for loop in loops_around(source, made))
    return again or any(node.lineno > last or (node in inside and node.lineno != made) for node in found)


def is_returned(source: str, line: int, names: Collection[str]) -> bool:
    """Whether the function around a line returns something that one of some names is in."""
    found = function_at(source, line)
    returned = (s for s in own_statements(found[1].body) if isinstance(s, ast.Return)) if found is not None else ()
    nodes = {node for statement in returned for node in ast.walk(statement)}
    return any(node in nodes for node in _reads(source, line, names))


def is_for_others(source: str, line: int, name: str, names: Collection[str]) -> bool:
    """Whether a function only writes to `name`, which is a part of one of `names` that others have, too."""
    given = shared(source, line)
    if not any("." in one or one in given or is_from_outside(source, line, one) for one in names):
        return False
    writes = [node for node in ast.walk(_scope(source, line)) if isinstance(node, ast.stmt) and _writes(node, name)]
    written = {node for statement in writes for node in ast.walk(statement)}
    return all(node in written for node in _reads(source, line, {name}))


def _writes(statement: ast.stmt, name: str) -> bool:
    """Whether a statement does nothing but write to a name, or to a part of it."""
    part: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        part = statement.target
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        part = statement.targets[0]
    elif isinstance(statement, ast.Expr):
        part = statement.value
    method = "" if isinstance(statement, ast.Expr) else "_"
    while isinstance(part, (ast.Attribute, ast.Subscript, ast.Call)):
        method = part.attr if isinstance(part, ast.Attribute) else method
        part = part.func if isinstance(part, ast.Call) else part.value
    return isinstance(part, ast.Name) and part.id == name and method.endswith("_")


def _scope(source: str, line: int) -> ast.AST:
    """The function around a line, or the text."""
    found = function_at(source, line)
    return found[1] if found is not None else parse(source) or ast.Module([], [])


def _reads(source: str, line: int, names: Collection[str]) -> Iterator[ast.Name | ast.Attribute]:
    """Where the function around a line reads one of some names, or of some paths: ``self.rows``."""
    for node in ast.walk(_scope(source, line)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if ast.unparse(node) in names:
                yield node
