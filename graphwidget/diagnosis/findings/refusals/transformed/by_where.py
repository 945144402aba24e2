"""A Python `if` on a tensor, written as ``torch.where``: both branches are computed, and each element takes its own."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["asks", "by_where"]


def asks(failure: Failure) -> bool:
    """Whether the line decides by a value: an `if`, or ``a if c else b``."""
    return isinstance(_statement(failure), ast.If) or _expression(failure) is not None


def by_where(failure: Failure) -> tuple[str, Edits]:
    """What to write, and its edits; empty where the branches do more than to compute one value."""
    cell, text = failure.place.cell, failure.cell
    expression = _expression(failure)
    if expression is not None and _is_plain(expression.test):
        new = _where(expression.test, expression.body, expression.orelse)
        return new, text_edit.replace_node(cell, text, expression, new)
    one = _statement(failure)
    if not isinstance(one, ast.If) or not _is_plain(one.test) or len(one.body) != 1:
        return "", ()
    then, otherwise, last = one.body[0], one.orelse[:1], one.end_lineno or one.lineno
    if not otherwise:
        behind = [s for s in source.block_of(text, one) if s.lineno > last]
        if isinstance(then, ast.Return):  # ``if c: return a`` and then ``return b``
            otherwise = behind[:1] if len(behind) == 1 and isinstance(behind[0], ast.Return) else []
            last = (behind[0].end_lineno or behind[0].lineno) if otherwise else last
        elif isinstance(then, ast.Assign):  # ``if c: x = a``: else it stays as it is
            otherwise = [ast.Assign(then.targets, _loaded(then.targets[0]))]
    if len(otherwise) != 1 or len(one.orelse) > 1:
        return "", ()
    new = _joined(one.test, then, otherwise[0])
    return new, text_edit.replace_lines(cell, text, one.lineno, last, [new]) if new else ()


def _joined(test: ast.expr, then: ast.stmt, otherwise: ast.stmt) -> str:
    """Two statements that give the same thing a value, as one."""
    if isinstance(then, ast.Return) and isinstance(otherwise, ast.Return) and then.value and otherwise.value:
        return f"return {_where(test, then.value, otherwise.value)}"
    if isinstance(then, ast.Assign) and isinstance(otherwise, ast.Assign) and len(then.targets) == 1:
        target = ast.unparse(then.targets[0])
        plain = isinstance(then.targets[0], ast.Name) and [ast.unparse(one) for one in otherwise.targets] == [target]
        return f"{target} = {_where(test, then.value, otherwise.value)}" if plain else ""
    return ""


def _where(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> str:
    return f"torch.where({', '.join(map(ast.unparse, (test, then, otherwise)))})"


def _is_plain(test: ast.expr) -> bool:
    """Whether a test is one comparison: `and`, `or` and `not` ask for one value themselves."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and not isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.In))
    )


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(ast.unparse(target), ast.Load())


def _statement(failure: Failure) -> ast.stmt | None:
    """The innermost statement at the line, whose head it is."""
    found = source.statements_at(failure.cell, failure.place.line or 0)
    return found[-1] if found and found[-1].lineno == failure.place.line else None


def _expression(failure: Failure) -> ast.IfExp | None:
    """The one ``a if c else b`` of a simple statement."""
    one = failure.statement
    found = [node for node in ast.walk(one) if isinstance(node, ast.IfExp)] if one is not None else []
    return found[0] if len(found) == 1 else None
