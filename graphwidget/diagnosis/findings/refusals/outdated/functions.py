"""Custom Functions as they were written until PyTorch 1.2: objects that keep what they need on `self`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, defined, functions, of_method
from graphwidget.model import CellRun, Finding, Record, TextEdit

__all__ = ["of_legacy_function"]

_STATIC = ("forward", "backward")


def of_legacy_function(failure: Failure) -> Finding:
    """``Scale()(x)``: a Function that is called as an object."""
    applied, record = failure.run.scene.applied, failure.record
    if applied is not None:
        name, place = applied.name, applied.forward
        function = (of_method(record, place) if place is not None else None) or defined(record, name)
    else:
        read = syntax.names_read(failure.statement) if failure.statement is not None else set()
        found = [one for one in functions(record) if one.name in read]
        function, place = (found[0] if len(found) == 1 else None), None
        name = function.name if function is not None else ""
    shown, edits = f"`{name}`" if name else "This Function", _as_static(record, function) if function else ()
    if function is not None and all(map(_is_static, _methods(function))):
        return failure.finding(
            f"{shown} is called as an object, as Functions were until PyTorch 1.2.",
            f"The methods of {shown} are static, and what they share is `ctx`: no object of it is ever made.",
            failure.fix("static_methods", f"Call `{name}.apply(...)`.", edits),
            cause=place,
        )
    return failure.finding(
        f"{shown} is written as Functions were until PyTorch 1.2.",
        f"{shown} is called as an object, and its methods are not static. Today `forward` and `backward` are static "
        "methods of a class that is never made into an object; what they share is `ctx`.",
        failure.fix(
            "static_methods",
            "Make both `@staticmethod`, with `ctx` as the first argument (`ctx.save_for_backward` for tensors), and "
            f"call `{name or 'Function'}.apply(...)`.",
            edits,
        ),
        cause=place,
    )


def _methods(function: FunctionText) -> list[ast.FunctionDef]:
    return [one for one in function.made.body if isinstance(one, ast.FunctionDef)]


def _is_static(method: ast.FunctionDef) -> bool:
    return "staticmethod" in map(ast.unparse, method.decorator_list)


def _as_static(record: Record, function: FunctionText) -> Edits:
    """The edits that write a class with static methods, and its calls with `apply`; empty: it is not that simple.

    What its objects are made with becomes an argument of `forward`, behind those that it has.
    """
    methods = _methods(function)
    own = [one for one in methods if one.name in _STATIC]
    made = next((one for one in methods if one.name == "__init__"), None)
    stored = _stored(made) if made is not None else {}
    if stored is None or len(own) != 2 or len(methods) != len(own) + (made is not None):
        return ()
    edits: list[TextEdit] = []
    for method in own if not all(map(_is_static, own)) else ():
        if not (new := _static(function.run, method, stored)):
            return ()
        edits += new
    calls = [_applied(run, node, function.name, made) for run, node in _made_at(record, function.name)]
    if not calls or not all(calls):
        return ()
    edits += [edit for call in calls for edit in call]
    return (*edits, *(text_edit.remove(function.run.cell, function.run.source, made) if made is not None else ()))


def _stored(made: ast.FunctionDef) -> dict[str, str] | None:
    """What `__init__` stores: the attribute of each argument; None: it does more than that."""
    arguments = [one.arg for one in made.args.args[1:]]
    found: dict[str, str] = {}
    for statement in made.body:
        pairs = _pairs(statement) if isinstance(statement, ast.Assign) else None
        for target, value in pairs or ():
            attribute = ast.unparse(target).removeprefix("self.")
            if not isinstance(target, ast.Attribute) or not attribute.isidentifier():
                return None
            if not isinstance(value, ast.Name) or value.id not in arguments:
                return None
            found[value.id] = attribute
        harmless = isinstance(statement, ast.Expr) and (
            isinstance(statement.value, ast.Constant) or ast.unparse(statement).startswith("super(")
        )
        if not pairs and not harmless:
            return None
    plain = not (made.args.vararg or made.args.kwarg or made.args.kwonlyargs or made.args.posonlyargs)
    return {one: found[one] for one in arguments} if plain and len(found) == len(arguments) else None


def _pairs(statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: ``self.lo, self.hi = lo, hi``; empty where that is not plain."""
    (target, *more), value = statement.targets, statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts)) if not more else []
    return [(target, value)] if not more else []


def _static(run: CellRun, method: ast.FunctionDef, stored: dict[str, str]) -> Edits:
    """A static method with `ctx` for `self`. `forward` gets what objects were made with, which gets no gradient.

    A method that calls its first argument `ctx` keeps it, and so does one that calls something else by that name.
    """
    cell, text = run.cell, run.source
    given = method.args
    if method.decorator_list or not given.args or given.defaults or given.vararg or given.kwarg or given.kwonlyargs:
        return ()
    first = given.args[0]
    taken = any(isinstance(node, ast.Name) and node.id == "ctx" for node in ast.walk(method))
    shared = first.arg if taken else "ctx"
    edits = [*text_edit.insert_before(cell, text, method, ["@staticmethod"])]
    if first.arg != shared:
        edits += text_edit.replace_node(cell, text, first, shared)
        for node in ast.walk(method):
            if isinstance(node, ast.Name) and node.id == first.arg:
                edits += text_edit.replace_node(cell, text, node, shared)
    if method.name == "forward" and stored:
        edits += text_edit.insert_behind(cell, text, given.args[-1], "".join(f", {one}" for one in stored))
        rest = method.body[1:] if ast.get_docstring(method, clean=False) is not None else method.body
        if not rest:
            return ()
        edits += text_edit.insert_before(
            cell, text, rest[0], [f"{shared}.{name} = {one}" for one, name in stored.items()]
        )
    if method.name == "backward" and stored:
        returns = [one for one in syntax.own_statements(method.body) if isinstance(one, ast.Return)]
        if not returns or any(one.value is None for one in returns):
            return ()
        for one in returns:
            edits += _with_none(run, one.value, len(stored)) if one.value is not None else ()
    return tuple(edits)


def _with_none(run: CellRun, value: ast.expr, count: int) -> Edits:
    """What `backward` returns, and None for each of the new arguments."""
    last = value.elts[-1] if isinstance(value, ast.Tuple) else value
    return text_edit.insert_behind(run.cell, run.source, last, ", None" * count)


def _made_at(record: Record, name: str) -> Iterator[tuple[CellRun, ast.expr]]:
    """The expressions that make an object of a class: its call, or the call of that where it follows at once."""
    for run in Cells.of(record).latest:
        nodes = [one for one in syntax.nodes_of(run.source) if isinstance(one, ast.Call)]
        called = {id(one.func): one for one in nodes}
        for one in nodes:
            if syntax.last_name(ast.unparse(one.func)) == name:
                yield run, called.get(id(one), one)


def _applied(run: CellRun, node: ast.expr, name: str, made: ast.FunctionDef | None) -> Edits:
    """``Scale(2.0)(x)`` as ``Scale.apply(x, 2.0)``, and ``Scale()`` as ``Scale.apply``."""
    if not isinstance(node, ast.Call):
        return ()
    direct = isinstance(node.func, ast.Call)
    making = node.func if isinstance(node.func, ast.Call) else node
    needed = [one.arg for one in made.args.args[1:]] if made is not None else []
    defaults = dict(zip(needed[::-1], [ast.unparse(one) for one in made.args.defaults[::-1]])) if made else {}
    given = {**defaults, **dict(zip(needed, map(ast.unparse, making.args)))}
    given |= {one.arg: ast.unparse(one.value) for one in making.keywords if one.arg is not None}
    starred = any(isinstance(one, ast.Starred) for one in making.args) or any(k.arg is None for k in making.keywords)
    if starred or set(given) != set(needed) or len(making.args) > len(needed) or (needed and not direct):
        return ()
    function = f"{ast.unparse(making.func)}.apply"
    if not needed:
        return text_edit.replace_node(run.cell, run.source, making, function)
    inputs = ", ".join([*map(ast.unparse, node.args), *(given[one] for one in needed)])
    return () if node.keywords else text_edit.replace_node(run.cell, run.source, node, f"{function}({inputs})")
