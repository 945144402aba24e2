"""A function that modifies what it was given, for its caller: there the tensor has the name by which it is used.

A new tensor for the function's own variable would be lost: ``x = x.clamp(0, 1)`` in ``def squash(x): x.clamp_(0, 1)``.
The copy has to be made where the caller hands the tensor in.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.wording import at
from graphwidget.model import Place, Record, Write

__all__ = ["HandedIn", "argument_of", "handed_in", "own_variables"]

_DETACHED = ("detach", "data", "numpy")
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)  # of tensors: each computes a new one


@dataclass(frozen=True)
class HandedIn:
    """A write whose effect is for a caller.

    Attributes
    ----------
    function
        The function that writes.
    name, spot
        How the caller calls the tensor, and its line; empty and None where that is not known.
    used
        The function itself goes on with the new value, too.
    """

    function: str
    name: str = ""
    spot: Spot | None = None
    used: bool = False


def handed_in(record: Record, write: Write, name: str, computing: Collection[Spot] = frozenset()) -> HandedIn | None:
    """How the tensor came to the function that writes; None: only the function, or what it returns, has the new value.

    Parameters
    ----------
    name
        The variable by which the line writes.
    computing
        Lines that were seen to compute a new tensor, which is no part of what they read.
    """
    if not name.isidentifier():
        return None
    cells, frames = Cells.of(record), (*write.place.stack, write.place)
    depth, made, used = len(frames) - 1, "", False
    while name.isidentifier():
        place, caller = frames[depth], frames[depth - 1] if depth else None
        text = cells.text(place.cell)
        found, ignored = source.function_at(text, place.line or 0), _ignores_result(cells, caller)
        reads = found is not None and _reads_later(text, found[1], place, name, ignored)
        own_use = reads and (not ignored or (found is not None and _is_detached(text, found[1], place, name)))
        if found is None or own_use or name not in own_variables(found[1]):
            passing = name in _of_a_pass(source.loops_around(text, place.line or 0))
            return HandedIn(made, *(("", None) if passing else (name, at(place))), used=used) if made else None
        made, used = made or found[1].name, used or reads
        origin = _made_of(text, found[1], place, name, computing)
        if origin is None:
            return None
        name = origin
        given = argument_of(cells, caller, found, name) if caller is not None else None
        if given is None:
            return HandedIn(made, used=used)
        name, depth = given, depth - 1
    return HandedIn(made, name, at(frames[depth]), used) if _is_path(name) else HandedIn(made, used=used)


def _reads_later(text: str, function: ast.FunctionDef, place: Place, name: str, ignored: bool) -> bool:
    """Whether a function reads a variable behind a line, or returns it to a caller that does not ignore it."""
    statements = source.statements_at(text, place.line or 0)
    own = statements[-1] if statements else ast.Pass(lineno=0)
    if isinstance(own, ast.Return):
        return not ignored
    names = {name, *source.targets(own)}
    around = [loop for loop in source.loops_around(text, own.lineno) if loop.lineno > function.lineno]
    left_out = [own, *(n for n in ast.walk(function) if ignored and isinstance(n, ast.Return))]
    skipped = {id(node) for one in left_out for node in ast.walk(one)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id not in names or not isinstance(node.ctx, ast.Load):
            continue
        again = any(loop.lineno <= node.lineno <= (loop.end_lineno or 0) for loop in around)
        if id(node) not in skipped and (node.lineno > own.lineno or (again and name not in _of_a_pass(around))):
            return True
    return False


def _is_detached(text: str, function: ast.FunctionDef, place: Place, name: str) -> bool:
    """Whether a function took a variable out of the graph for itself: ``values = output.detach()``.

    What it computes with that is its own business, not the caller's.
    """
    made = [s for s in source.bindings(text, name, place.line or 0) if s.lineno > function.lineno]
    value = source.given(made[-1]) if made else None
    return value is not None and any(isinstance(n, ast.Attribute) and n.attr in _DETACHED for n in ast.walk(value))


def _of_a_pass(loops: Sequence[ast.stmt]) -> set[str]:
    """The variables that loops give another value in each pass."""
    return {name for loop in loops if isinstance(loop, ast.For) for name in source.names_in(loop.target)}


def own_variables(function: ast.FunctionDef) -> set[str]:
    """The variables of a function, its parameters among them."""
    outside = {n for s in ast.walk(function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    assigned = {name for s in ast.walk(function) if isinstance(s, ast.stmt) for name in source.targets(s)}
    heads = {name for s in ast.walk(function) if isinstance(s, ast.For) for name in source.names_in(s.target)}
    return (assigned | heads | set(_parameters(function))) - outside


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _made_of(text: str, function: ast.FunctionDef, place: Place, name: str, computing: Collection[Spot]) -> str | None:
    """The parameter of which a variable is another name, or a view; the name itself where that is not known.

    None: of what the function has computed: ``alpha = 1 - torch.exp(-x)``, also by the name of a parameter:
    ``x = self.conv(x)``.
    """
    parameters = set(_parameters(function))
    made = [s for s in source.bindings(text, name, place.line or 0) if s.lineno > function.lineno]
    if not made:
        return name
    value = source.given(made[-1])
    seen = (place.cell, made[-1].lineno) in computing
    if isinstance(made[-1], (ast.Assign, ast.AnnAssign)) and (seen or isinstance(value, _OPERATORS)):
        return None
    if isinstance(made[-1], ast.For) or isinstance(value, ast.Subscript):
        return ""  # perhaps an element of a list
    read = source.names_in(value) & parameters if isinstance(value, ast.expr) else set()
    if len(read) != 1:
        return ""
    (parameter,) = read
    rebound = [s for s in source.bindings(text, parameter, made[-1].lineno) if s.lineno > function.lineno]
    return None if any(_root(source.given(s)) != parameter for s in rebound) else parameter


def _root(value: ast.AST) -> str:
    """The variable of which a value is a method's result, an attribute or an element; empty: of none."""
    while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""


def _ignores_result(cells: Cells, caller: Place | None) -> bool:
    """Whether the calling statement is the call alone."""
    statement = _statement(cells, caller)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _statement(cells: Cells, place: Place | None) -> ast.stmt | None:
    found = source.statements_at(cells.text(place.cell), place.line) if place is not None and place.line else []
    return found[-1] if found and not hasattr(found[-1], "body") else None


def argument_of(
    cells: Cells, caller: Place, found: tuple[ast.ClassDef | None, ast.FunctionDef], parameter: str
) -> str | None:
    """What the calling line hands in for a parameter, as it is written there; None: unknown."""
    statement, (owner, function) = _statement(cells, caller), found
    names = _parameters(function)
    if statement is None or parameter not in names:
        return None
    called = (function.name, *((owner.name,) if owner is not None and function.name == "__init__" else ()))
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    by_name = [n for n in calls if source.last_name(ast.unparse(n.func)) in called]
    if not by_name and function.name in ("forward", "__call__"):
        by_name = calls  # `net(x)`
    if len(by_name) != 1 or any(isinstance(one, ast.Starred) for one in by_name[0].args):
        return None
    position = names.index(parameter) - (owner is not None and (names[0] in ("self", "cls") or _gets_context(*found)))
    given = {keyword.arg: keyword.value for keyword in by_name[0].keywords}
    if 0 <= position < len(by_name[0].args):
        return ast.unparse(by_name[0].args[position])
    return ast.unparse(given[parameter]) if parameter in given else None


def _gets_context(owner: ast.ClassDef | None, function: ast.FunctionDef) -> bool:
    """Whether a method is the `forward` of a custom Function, which `apply` hands a context before its arguments."""
    static = "staticmethod" in map(ast.unparse, function.decorator_list)
    methods = {one.name for one in owner.body if isinstance(one, ast.FunctionDef)} if owner is not None else set[str]()
    return function.name == "forward" and static and "setup_context" not in methods


def _is_path(text: str) -> bool:
    """Whether a name, or an attribute of one, is written: it can get a copy."""
    parts = text.split(".")
    return all(part.isidentifier() for part in parts)
