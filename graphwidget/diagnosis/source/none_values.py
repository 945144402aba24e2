"""Whether a variable or attribute may be None, or a number, where a statement reads it, as far as the text shows."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax as source

__all__ = ["may_be_a_number", "may_be_none"]


def may_be_none(text: str, statement: ast.stmt, path: str) -> bool:
    """Whether a path is None somewhere in its class or function, and no test before the statement has excluded that."""
    found = source.function_at(text, statement.lineno)
    home = (found[0] or found[1]) if found is not None else source.parse(text)
    if home is None or not any(_gives_none(node, path) for node in ast.walk(home)):
        return False
    return not any(_excludes_none(one, statement, path) for one in _before(text, statement))


def may_be_a_number(text: str, statement: ast.stmt, path: str) -> bool:
    """Whether a path begins as a number in its class or function: ``self.kl = 0`` before ``self.kl += loss``."""
    found = source.function_at(text, statement.lineno)
    home = (found[0] or found[1]) if found is not None else source.parse(text)
    given = (s for s, target in source.assigned_as(text, source.last_name(path)) if target == path)
    within = {id(node) for node in ast.walk(home)} if home is not None else set()
    return any(_gives_a_number(s, path) for s in given if id(s) in within and s.lineno != statement.lineno)


def _gives_a_number(statement: ast.stmt, path: str) -> bool:
    value: ast.AST = source.given(statement)
    if isinstance(statement, ast.Assign):
        value, element = source.given_to(statement, path)
        if element is not None:
            return False
    number = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return number and isinstance(statement, (ast.Assign, ast.AnnAssign))


def _gives_none(node: ast.AST, path: str) -> bool:
    """``self.h = None``; in the body of a class ``h: Tensor | None = None``; ``def __init__(self, h=None)``."""
    name = path.rsplit(".", 1)[-1]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        none = isinstance(node.value, ast.Constant) and node.value.value is None
        flat = [one for target in targets for one in ast.walk(target)]
        return none and any(ast.unparse(one) in (path, name) for one in flat if isinstance(one, ast.expr))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.defaults, *node.args.kw_defaults]
        named = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
        return name in named and any(isinstance(one, ast.Constant) and one.value is None for one in given)
    return False


def _before(text: str, statement: ast.stmt) -> list[ast.stmt]:
    """The statements around a statement, and those that stand before it in their blocks."""
    spot = (statement.lineno, statement.col_offset)
    return [one for one in source.leading_to(text, statement.lineno) if (one.lineno, one.col_offset) < spot] + [
        one for one in source.statements_at(text, statement.lineno) if isinstance(one, ast.If)
    ]


def _excludes_none(test: ast.stmt, statement: ast.stmt, path: str) -> bool:
    """``if self.h is None: self.h = ...`` or ``return`` before it; or it stands under ``if self.h is not None:``."""
    if not isinstance(test, ast.If):
        return False
    asked = ast.unparse(test.test)
    inside = any(
        statement.lineno == node.lineno for s in test.body for node in ast.walk(s) if isinstance(node, ast.stmt)
    )
    other = any(
        statement.lineno == node.lineno for s in test.orelse for node in ast.walk(s) if isinstance(node, ast.stmt)
    )
    if inside or other:
        return (inside and asked in (f"{path} is not None", path)) or (
            other and asked in (f"{path} is None", f"not {path}")
        )
    if asked not in (f"{path} is None", f"not {path}"):
        return False
    last = test.body[-1]
    gives = any(path in source.targets(s) for s in test.body)
    return gives or isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break))
