"""Whether a variable or attribute may be None, or a number, where a statement reads it, as far as the text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot

__all__ = ["when_tensor"]


def when_tensor(cells: Mapping[int, str], spot: Spot, path: str) -> str:
    """The condition under which a path is a tensor where a line is reached; empty: always, for all that is known.

    Where it lives (in the class of its method, in its function, or in any text) it may be given None or a number. No
    statement before the line gives it a value in any case, and no test before the line excludes None.

    Parameters
    ----------
    cells
        The texts by their numbers.
    spot
        The line; its own statement has not run.
    """
    text = cells.get(spot[0], "")
    found = source.beginning_at(text, spot[1])[:1] or source.statements_at(text, spot[1])[-1:]
    if not found:
        return ""
    nodes = list(_where_it_lives(cells, text, found[0], path))
    owner, _, attribute = path.rpartition(".")
    tests = [one for one in _before(text, found[0]) if isinstance(one, ast.If)]
    given = any(path in source.targets(s) for one in tests for s in one.body)  # ``if not hasattr(self, "h"): self.h =``
    if owner and not given and any(_asks_whether_there(node, attribute) for node in nodes):
        return f"hasattr({owner}, {attribute!r})"
    values = _Values(cells, nodes, mine=path.startswith("self.") or "." not in path)
    if values.may_be(path, int, float):
        return f"torch.is_tensor({path})"
    if values.may_be(path, type(None)):
        before = _before(text, found[0])
        if not any(_excludes_none(one, found[0], path) for one in before) and not _is_set(text, found[0], path):
            return f"{path} is not None"
    return ""


def _asks_whether_there(node: ast.AST, attribute: str) -> bool:
    """``hasattr(self, 'mean')``, ``getattr(self, 'mean', None)``: in the first pass it may not be there."""
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    asked = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    return called in ("hasattr", "getattr") and isinstance(asked, ast.Constant) and asked.value == attribute


def _where_it_lives(cells: Mapping[int, str], text: str, statement: ast.stmt, path: str) -> Iterator[ast.AST]:
    function = source.function_at(text, statement.lineno)
    own = path.startswith("self.") or ("." not in path and not source.is_from_outside(text, statement.lineno, path))
    if function is not None and own:
        yield from ast.walk(function[0] or function[1])
    else:
        yield from (node for one in cells.values() for node in source.nodes_of(one))


def _is_set(text: str, statement: ast.stmt, path: str) -> bool:
    """Whether a statement before another in its pass, or in its function, gives a path a value in any case."""
    loop, function = source.loop_at(text, statement.lineno), source.function_at(text, statement.lineno)
    body = loop.body if loop is not None else function[1].body if function is not None else []
    return any(_sets(one, path) for one in body if one.lineno < statement.lineno)


def _sets(statement: ast.stmt, path: str) -> bool:
    """``h = f(h)``; ``if h is None: h = zeros()``, after which it is set, too."""
    if isinstance(statement, ast.If):
        asked = ast.unparse(statement.test) in (f"{path} is None", f"not {path}")
        return any(_sets(s, path) for s in statement.body) and (asked or any(_sets(s, path) for s in statement.orelse))
    return path in source.targets(statement)


class _Values:
    """What paths are given, also by other names: ``self.v = self.v_reset`` in a class made with ``v_reset=0.0``.

    `mine`: the path is of the object or function whose nodes these are; else any object may have it.
    """

    def __init__(self, cells: Mapping[int, str], nodes: list[ast.AST], *, mine: bool) -> None:
        self._cells, self._nodes, self._mine = cells, nodes, mine

    def may_be(self, path: str, *kinds: type) -> bool:
        """Whether a line gives a path a constant of one of these types."""
        seen, queue = {path}, [path]
        for one in queue:
            for value in self._given(one, None if one == path else kinds):
                for part in _parts(value):
                    if _is(part, kinds):
                        return True
                    if isinstance(part, (ast.Name, ast.Attribute)) and (text := ast.unparse(part)) not in seen:
                        seen.add(text)
                        queue.append(text)
        return False

    def _given(self, path: str, by_callers: tuple[type, ...] | None) -> Iterator[ast.expr]:
        """The values that lines give a path. `by_callers`: a variable may also be an argument of this name."""
        name = path.rsplit(".", 1)[-1]
        for node in self._nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                yield from self._assigned(node, node.value, path, name)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _defaults(node, name, only_none=by_callers is None)
            elif isinstance(node, ast.Call):  # ``self.register_memory("v", 0.0)``
                for first, second in zip(node.args, node.args[1:]):
                    if isinstance(first, ast.Constant) and first.value == name:
                        yield second
        if by_callers is not None and "." not in path:
            calls = (n for text in self._cells.values() for n in source.nodes_of(text) if isinstance(n, ast.Call))
            yield from (one.value for call in calls for one in call.keywords if one.arg == path)

    def _assigned(self, node: ast.Assign | ast.AnnAssign, value: ast.expr, path: str, name: str) -> Iterator[ast.expr]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        flat = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.expr)]
        for one in map(ast.unparse, flat):
            if one in (path, name) or (not self._mine and one.endswith(f".{name}")):
                yield source.given_to(node, one)[0] if isinstance(node, ast.Assign) else value


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, *, only_none: bool) -> Iterator[ast.expr]:
    """What an argument of a function is by default; of the path itself a number says little: it may be another's."""
    places = [*node.args.posonlyargs, *node.args.args]
    given = [*zip(places[::-1], node.args.defaults[::-1]), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
    for argument, default in given:
        if argument.arg == name and default is not None and (not only_none or _is(default, (type(None),))):
            yield default


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a value may be: ``a if b else c``, ``a or b``."""
    if isinstance(value, ast.IfExp):
        return [*_parts(value.body), *_parts(value.orelse)]
    return [one for each in value.values for one in _parts(each)] if isinstance(value, ast.BoolOp) else [value]


def _is(value: ast.expr | None, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("float", "int"):
        return float in kinds
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
