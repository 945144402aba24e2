"""Where the text of a cell switches grad mode off: blocks and decorators, and whether they surely do."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax as source

__all__ = [
    "Switch",
    "around",
    "by_name",
    "condition",
    "deciding",
    "decorated_by",
    "expressions",
    "switches",
    "switches_off",
    "switching",
]

_NAMES = ("no_grad", "inference_mode", "set_grad_enabled", "enable_grad")


class Switch(NamedTuple):
    """A `with` or a decorated function. `off`: True: surely switches it off; False: on; None: that depends."""

    outer: ast.stmt
    text: str
    off: bool | None


def around(cell: str, statement: ast.stmt) -> Switch | None:
    """The innermost `with` or decorator around a statement that decides about grad mode, if that may be off.

    What stands around a function's definition, its decorators apart, says nothing of its calls.
    """
    found = deciding(cell, statement)
    return found if found is not None and found.off is not False else None


def deciding(cell: str, statement: ast.stmt) -> Switch | None:
    """The same, also if grad mode is on there."""
    for outer in reversed(source.statements_at(cell, statement.lineno)):
        if outer is statement or (outer.lineno, outer.col_offset) == (statement.lineno, statement.col_offset):
            continue
        for one in expressions(outer):
            off = switches_off(one)
            if off is not False or switches(one):
                return Switch(outer, ast.unparse(one), off)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
    return None


def by_name(cell: str, statement: ast.stmt, name: str) -> Switch | None:
    """The innermost `with` or decorator of that name around a statement, whatever else is inside it."""
    for outer in reversed(source.statements_at(cell, statement.lineno)):
        for one in expressions(outer):
            if _last(one.func if isinstance(one, ast.Call) else one) == name:
                return Switch(outer, ast.unparse(one), True)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
    return None


def decorated_by(cell: str, statement: ast.stmt, names: Collection[str]) -> Switch | None:
    """The function around a statement, if one of these decorators is around it, each of which switches it off."""
    found = source.function_at(cell, statement.lineno)
    for one in found[1].decorator_list if found is not None else ():
        if found is not None and _last(one.func if isinstance(one, ast.Call) else one) in names:
            return Switch(found[1], ast.unparse(one), True)
    return None


def switching(tree: ast.AST) -> Iterator[tuple[str, ast.With]]:
    """The decorators that a text defines and that call what they decorate without grad mode, each with its `with`."""
    for made in ast.walk(tree):
        if not isinstance(made, ast.FunctionDef):
            continue
        given = {one.arg for one in (*made.args.posonlyargs, *made.args.args)}
        inner = [one for one in ast.walk(made) if isinstance(one, ast.FunctionDef) and one is not made]
        returned = {
            one.value.id
            for one in source.own_statements(made.body)
            if isinstance(one, ast.Return) and isinstance(one.value, ast.Name)
        }
        for function in (one for one in inner if one.name in returned):
            blocks = [one for one in ast.walk(function) if isinstance(one, ast.With)]
            off = [one for one in blocks if any(switches_off(item.context_expr) for item in one.items)]
            calls = [ast.unparse(n.func) for one in off for n in ast.walk(one) if isinstance(n, ast.Call)]
            if len(off) == 1 and given.intersection(calls):
                yield made.name, off[0]


def expressions(outer: ast.stmt) -> list[ast.expr]:
    """What a `with` enters, or what decorates a function; the innermost first."""
    if isinstance(outer, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in reversed(outer.items)]
    return outer.decorator_list[::-1] if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) else []


def switches(node: ast.AST) -> bool:
    """Whether an expression names something of torch's that switches grad mode."""
    return any(_last(one) in _NAMES for one in ast.walk(node))


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def switches_off(node: ast.expr) -> bool | None:
    """Whether grad mode is off where this is entered, or decorates; None: it may be."""
    function = node.func if isinstance(node, ast.Call) else node
    name = _last(function)
    if name not in _NAMES:
        return None if any(switches_off(one) is not False for one in _parts(node)) else False
    if name in ("no_grad", "enable_grad"):
        return name == "no_grad"
    given = list(_given(node))
    if not given:
        return name == "inference_mode"
    if not isinstance(given[0], ast.Constant):
        return None
    return bool(given[0].value) is (name == "inference_mode")


def _parts(node: ast.expr) -> list[ast.expr]:
    """Of a choice what it chooses from: ``nullcontext() if train else torch.no_grad()``."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]


def _given(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from (*node.args, *(k.value for k in node.keywords))


def condition(text: str) -> tuple[str, bool] | None:
    """What decides whether it is off, and with which answer: ``set_grad_enabled(phase == 'train')`` where false."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if isinstance(node, ast.IfExp):
        found = [answer for answer, part in ((True, node.body), (False, node.orelse)) if switches_off(part)]
        return (ast.unparse(node.test), found[0]) if len(found) == 1 else None
    given = list(_given(node))
    if _last(node.func if isinstance(node, ast.Call) else node) not in ("set_grad_enabled", "inference_mode"):
        return None
    inverse = "inference" in text
    return (ast.unparse(given[0]), inverse) if given and not isinstance(given[0], ast.Constant) else None
