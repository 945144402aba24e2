"""Arguments of a function to which some calls hand tensors and others may hand plain numbers: ``meter.update(acc)``.

A number has no ``detach``. So where such an argument is detached, it is asked first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphwidget.diagnosis.source import syntax as source

__all__ = ["detached_where_tensor"]

_NUMBERS = ("item", "float", "int", "len", "round", "time", "perf_counter", "monotonic")  # calls that return one
_MIXED = ("items", "values")  # a loop over a dict: its values may be of several kinds
_MOST_STEPS = 4  # from an argument to what a caller of the caller hands in

# Whether a value is a number: None if it may be one, and may be a tensor; False if nothing shows that it is one.
_Kind = bool | None


def detached_where_tensor(texts: Iterable[str], text: str, value: ast.AST) -> dict[ast.Name, str]:
    """What the arguments in an expression become, in brackets, so that those that are tensors are detached.

    Empty: nothing shows that one of them may be a number.

    Parameters
    ----------
    texts
        The texts with the calls of the function.
    text, value
        The text of the function, and an expression in it.
    """
    inside, known = source.function_at(text, getattr(value, "lineno", 0)), [*texts]
    if inside is None:
        return {}
    objects = {id(one.value) for one in ast.walk(value) if isinstance(one, ast.Attribute)}  # `self` in `self.avg`
    names = [one for one in ast.walk(value) if isinstance(one, ast.Name) and one.id in _arguments(inside[1])]
    names = [one for one in names if id(one) not in objects]
    kinds = {one.id: _argument(known, inside, one.id, _MOST_STEPS) for one in names}
    if None not in kinds.values():
        return {}
    asked = [one for one in names if kinds[one.id] is not True]
    return {one: f"({one.id}.detach() if hasattr({one.id}, 'detach') else {one.id})" for one in asked}


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _argument(texts: list[str], inside: tuple[ast.ClassDef | None, ast.FunctionDef], name: str, steps: int) -> _Kind:
    """What the calls of a function hand in for an argument. One that is a number by default counts or weighs."""
    around, function = inside
    places = _arguments(function)
    defaults = dict(zip(places[::-1], function.args.defaults[::-1]))
    if name not in places or not steps:
        return False
    if name in defaults and _is_number(defaults[name]):
        return True
    at = places.index(name) - (around is not None and places[0] == "self")
    called = around.name if around is not None and function.name == "__init__" else function.name
    return _one_of(_handed(texts, called, name, at, steps - 1))


def _handed(texts: list[str], called: str, name: str, at: int, steps: int) -> Iterator[_Kind]:
    for text in texts:
        for call in source.calls_by_name(text).get(called, ()):
            by_name = [one.value for one in call.keywords if one.arg == name]
            yield from (_kind(texts, text, one, steps) for one in by_name or call.args[at : at + 1])


def _one_of(kinds: Iterable[_Kind]) -> _Kind:
    """The kind of what may be each of these."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else None if found else False


def _kind(texts: list[str], text: str, value: ast.expr, steps: int) -> _Kind:
    """What a line hands in."""
    if _is_number(value):
        return True
    if not steps:
        return False
    if isinstance(value, ast.BinOp):
        parts = {_kind(texts, text, one, steps - 1) for one in (value.left, value.right)}
        return False if False in parts else None if None in parts else True
    if isinstance(value, ast.Name):
        return _variable(texts, text, value, steps - 1)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        kept = [(one, part) for one in texts for part in _kept_under(one, value.slice.value)]
        return _one_of(_kind(texts, one, part, steps - 1) for one, part in kept)
    return False


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return source.last_name(ast.unparse(value.func)) in _NUMBERS
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _variable(texts: list[str], text: str, name: ast.Name, steps: int) -> _Kind:
    if any(_gives_mixed(loop, name.id) for loop in source.loops_around(text, name.lineno)):
        return None
    inside = source.function_at(text, name.lineno)
    made = [one for one in source.assignments(text, name.id) if source.function_at(text, one.lineno) == inside]
    given = [source.given_to(one, name.id) for one in made if isinstance(one, ast.Assign)]
    if not given and inside is not None:
        return _argument(texts, inside, name.id, steps)
    return _one_of(_kind(texts, text, one, steps) if at is None else False for one, at in given)


def _gives_mixed(loop: ast.stmt, name: str) -> bool:
    """``for key, value in stats.items():``."""
    over = loop.iter if isinstance(loop, ast.For) else None
    called = source.last_name(ast.unparse(over.func)) if isinstance(over, ast.Call) else ""
    return called in _MIXED and isinstance(loop, ast.For) and name in source.names_in(loop.target)


def _kept_under(text: str, key: object) -> Iterator[ast.expr]:
    """What a text keeps under a key: in a display, or by ``stats['loss'] = ...``."""
    for node in source.nodes_of(text):
        if isinstance(node, ast.Dict):
            yield from (v for k, v in zip(node.keys, node.values) if isinstance(k, ast.Constant) and k.value == key)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            where = node.targets[0].slice
            if isinstance(where, ast.Constant) and where.value == key:
                yield node.value
