"""Statements that give a name its value, as seen from a line: assignments, heads of loops, definitions."""

from __future__ import annotations

import ast
import sys

from graphwidget.diagnosis.source import syntax as source

_PUTTING = ("append", "extend", "insert", "add", "update")

_CONTAINERS = ("list", "dict", "set", "deque", "collections.deque", "OrderedDict")


def iterated(cell: str, name: str, line: int) -> list[ast.expr]:
    """What a comprehension on a line iterates over, by the name of its variable."""
    loops = [n for s in source.statements_at(cell, line)[-1:] for n in ast.walk(s) if isinstance(n, ast.comprehension)]
    return [loop.iter for loop in loops if name in source.names_in(loop.target)]


def put(statement: ast.AST, name: str) -> list[ast.expr]:
    """What a statement puts into a container with this name: ``losses.append(loss)``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return []
    return call.args if call.func.attr in _PUTTING and ast.unparse(call.func.value) == name else []


def is_empty(node: ast.AST) -> bool:
    """Whether an expression is an empty container."""
    if isinstance(node, (ast.List, ast.Set)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and not (node.args or node.keywords) and is_container(ast.unparse(node.func))


def is_container(called: str) -> bool:
    """Whether a call of this name makes a container."""
    return called in _CONTAINERS


def _gives(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name a value, or one of its elements."""
    if isinstance(statement, ast.For):
        return name in source.names_in(statement.target)
    if put(statement, name):
        return True
    return any(target == name or target.startswith(f"{name}[") for target in source.targets(statement))


def binding(statements: list[ast.stmt], name: str, line: int) -> list[ast.stmt]:
    """The last statement before a line that binds a name, and the last one of the previous pass of a loop.

    A statement that sets one element does not hide the earlier value of the whole.
    """
    giving = sorted((s for s in statements if _gives(s, name)), key=lambda s: s.lineno)
    earlier = [s for s in giving if s.lineno < line]
    whole = next((i for i, s in reversed(list(enumerate(earlier))) if not only_element(s, name)), 0)
    loops = [s for s in statements if isinstance(s, (ast.For, ast.While)) and s.lineno < line <= (s.end_lineno or 0)]
    again = [s for s in giving if s.lineno >= line and any(s.lineno <= (loop.end_lineno or 0) for loop in loops)]
    return [*reversed(earlier[whole:]), *reversed(again)]


def bound_in(body: list[ast.stmt], name: str, line: int = sys.maxsize) -> list[ast.stmt]:
    """The same for the body of a function or a file, with what functions inside it bind there: ``nonlocal h``."""
    inner = [binding(list(source.own_statements(one.body)), name, sys.maxsize) for one in source.sharing(body, name)]
    return [*binding(list(source.own_statements(body)), name, line), *(one for found in inner for one in found)]


def only_element(statement: ast.stmt, name: str) -> bool:
    return not isinstance(statement, ast.For) and name not in source.targets(statement)


def of_attribute(owner: ast.ClassDef, name: str) -> list[ast.AST]:
    """What a class assigns to an attribute of `self` in any method; for its method with this name the class itself."""
    attribute = name.split(".")[1]
    if any(isinstance(s, ast.FunctionDef) and s.name == attribute for s in owner.body):
        return [s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == attribute]
    whole = f"self.{attribute}"
    return [s for s in ast.walk(owner) if isinstance(s, ast.stmt) and whole in source.targets(s)]
