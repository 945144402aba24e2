"""Whether a variable or attribute may be None, or a number, where a statement reads it, as far as the text shows."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax as source

__all__ = ["when_tensor"]


def when_tensor(text: str, statement: ast.stmt, path: str) -> str:
    """The condition under which a path is a tensor where a statement reads it; empty: always, for all that is known.

    Where it lives (in its class or function, or in the file for a variable from outside) it may be given None or a
    number, and no test before the statement excludes None.
    """
    found = source.function_at(text, statement.lineno)
    home: ast.AST | None = (found[0] or found[1]) if found is not None else source.parse(text)
    if "." not in path and source.is_from_outside(text, statement.lineno, path):
        home = source.parse(text)
    nodes = list(ast.walk(home)) if home is not None else []
    if any(_gives(node, path, int, float) for node in nodes):
        return f"torch.is_tensor({path})"
    if any(_gives(node, path, type(None)) for node in nodes):
        if not any(_excludes_none(one, statement, path) for one in _before(text, statement)):
            return f"{path} is not None"
    return ""


def _gives(node: ast.AST, path: str, *kinds: type) -> bool:
    """``self.h = None``; in the body of a class ``h: Tensor | None = None``; ``def __init__(self, h=None)``."""
    name = path.rsplit(".", 1)[-1]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        flat = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.expr)]
        return _is(node.value, kinds) and any(ast.unparse(one) in (path, name) for one in flat)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.defaults, *node.args.kw_defaults]
        named = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
        return name in named and type(None) in kinds and any(_is(one, kinds) for one in given)
    return False


def _is(value: ast.expr | None, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) in kinds


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
