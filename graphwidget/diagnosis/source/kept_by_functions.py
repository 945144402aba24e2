"""What a function that is put into a container keeps: variables around it, defaults, arguments of a ``partial``.

``pending.append(lambda: print(loss.item()))`` keeps `loss` with its graph until the function is called.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import Steps
from graphwidget.model import TextEdit

__all__ = ["Kept", "kept_by", "with_defaults"]

_VARIABLE, _DEFAULT = ".__closure__", ".__defaults__"
_POSITIONAL, _KEYWORD = ".args", ".keywords"
_STARTS = ("backward", "grad")


class Kept(NamedTuple):
    """What two steps of a path into a function lead to.

    `value`: the expression that gives it, if nothing else reads that. None: a variable that others need as it is; then
    `function` may have it as a default, under the same `name`.
    """

    value: ast.expr | None
    function: ast.Lambda | ast.FunctionDef | None = None
    name: str = ""


def kept_by(text: str, given: ast.AST, steps: Steps) -> Kept | None:
    """What is kept at a place in the function that an expression stands for; None: it is no function, or not found."""
    how, key = steps[0], steps[1].strip("[]'\"") if len(steps) > 1 else ""
    if how in (_POSITIONAL, _KEYWORD) and isinstance(given, ast.Call):
        if not given.args or _runs_backward(text, given.args[0]):
            return None
        value = _argument(given, how, key)
        return Kept(value) if value is not None else None
    function = _function(text, given) if how in (_VARIABLE, _DEFAULT) else None
    if function is None or _runs_backward(text, given):
        return None
    if how == _DEFAULT:
        value = _default(function, key)
        return Kept(value) if value is not None else None
    return _variable(text, function, key)


def _runs_backward(text: str, given: ast.AST) -> bool:
    """Whether a function starts the engine, for which it keeps a graph: ``lambda: loss.backward()``."""
    inside = _function(text, given) or given
    called = {syntax.last_name(name) for name in syntax.calls_in(inside)}
    return not called.isdisjoint(_STARTS) or (
        isinstance(given, (ast.Name, ast.Attribute)) and syntax.last_name(ast.unparse(given)) in _STARTS
    )


def _argument(call: ast.Call, how: str, key: str) -> ast.expr | None:
    """An argument that ``partial(function, a, b=c)`` keeps."""
    if syntax.last_name(ast.unparse(call.func)) != "partial" or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if how == _KEYWORD:
        return next((one.value for one in call.keywords if one.arg == key), None)
    return call.args[int(key) + 1] if key.isdigit() and int(key) + 1 < len(call.args) else None


def _function(text: str, given: ast.AST) -> ast.Lambda | ast.FunctionDef | None:
    """The function of an expression: a lambda, or the one of this name that stands in a function or text around it."""
    if isinstance(given, ast.Lambda):
        return given
    if not isinstance(given, ast.Name):
        return None
    for body in syntax.bodies_around(text, given.lineno):
        for one in (node for statement in body for node in ast.walk(statement)):
            if isinstance(one, ast.FunctionDef) and one.name == given.id:
                return one
            if isinstance(one, ast.Assign) and given.id in syntax.targets(one) and isinstance(one.value, ast.Lambda):
                return one.value
    return None


def _default(function: ast.Lambda | ast.FunctionDef, name: str) -> ast.expr | None:
    arguments = function.args
    last = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(last[len(last) - len(arguments.defaults) :], arguments.defaults)]
    pairs += [(one, value) for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None]
    return next((value for one, value in pairs if one.arg == name), None)


def _variable(text: str, function: ast.Lambda | ast.FunctionDef, name: str) -> Kept | None:
    """A variable of the function around that a function reads; None: it is bound anew later, or no default fits."""
    around = [one for one in syntax.statements_at(text, function.lineno) if isinstance(one, ast.FunctionDef)]
    outer = next((one for one in reversed(around) if one is not function), None)
    shared = any(isinstance(one, (ast.Nonlocal, ast.Global)) and name in one.names for one in ast.walk(function))
    if outer is None or shared or function.args.kwarg is not None:
        return None
    made = [one for one in syntax.own_statements(outer.body) if name in syntax.targets(one)]
    if any(one.lineno > function.lineno for one in made):
        return None
    own = set(map(id, ast.walk(function)))
    others = [one for one in ast.walk(outer) if isinstance(one, ast.Name) and one.id == name and id(one) not in own]
    if len(others) != 1 or len(made) != 1 or not isinstance(made[0], ast.Assign):
        return Kept(None, function, name)
    value, element = syntax.given_to(made[0], name)
    return Kept(value if element is None else None, function, name)


def with_defaults(
    cell: int | None, text: str, function: ast.Lambda | ast.FunctionDef, values: Mapping[str, str]
) -> Edits:
    """The edit that gives a function defaults, which keep values of now: ``lambda loss=loss.detach(): ...``.

    Empty: the text leaves no place for them.
    """
    arguments = function.args
    given: list[ast.AST | None] = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
    ends = [text_edit.span(text, one)[1] for one in (*given, *arguments.defaults, *arguments.kw_defaults) if one]
    new = ", ".join(f"{name}={value}" for name, value in values.items())
    (line, column), _ = text_edit.span(text, function)
    if ends:
        only = "" if arguments.vararg or arguments.kwonlyargs else "*, "  # who calls it gives as many as before
        at, new = max(ends), f", {only}{new}"
        if arguments.posonlyargs and not arguments.args:
            return ()
    elif isinstance(function, ast.Lambda):
        at, new = (line, column + len("lambda")), f" {new}"
    else:
        at = (line, text_edit.with_ends(text)[line - 1].find("()") + 1)
    return (TextEdit(at, at, new, cell),) if at[1] else ()
