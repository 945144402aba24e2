"""Where a tensor got the type of its numbers: the lines that made something float64 of what NumPy or a list holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cutting import is_library
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun

__all__ = ["CONVERSIONS", "Typed", "of_type", "part_converted"]

# How code names a type of floating point: the method that converts to it, and other words.
CONVERSIONS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}
_WORDS = {
    **{kind: kind for kind in CONVERSIONS},
    **{method: kind for kind, method in CONVERSIONS.items()},
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
}
_CHANGING = ("to", "type", "type_as")
_TAKING = (
    "tensor",
    "as_tensor",
    "asarray",
    "from_numpy",
)  # functions of torch that keep the type of what they are given
_OF_DEFAULT = ("zeros", "ones", "full", "rand", "randn", "linspace", "empty", "eye", "scalar_tensor")
_MOST_STEPS = 300


class Typed(NamedTuple):
    """An expression that makes a tensor of a type, and the whole that goes on with it: ``torch.tensor(a).to(d)``.

    `via`: the variables that led to it, of which the first is read where the walk began. `sure`: the last of them was
    measured to be of the type.
    """

    run: CellRun
    node: ast.expr
    whole: ast.expr
    via: tuple[str, ...]
    sure: bool

    @property
    def takes_numpy(self) -> bool:
        """Whether the line itself shows that the numbers are NumPy's."""
        last = source.last_name(ast.unparse(self.node.func)) if isinstance(self.node, ast.Call) else ""
        return last == "from_numpy" or any(
            isinstance(one, ast.Name) and one.id in ("np", "numpy") for one in ast.walk(self.node)
        )


class _Step(NamedTuple):
    """An expression whose value leads on, and which element of it; None: the whole."""

    spot: Spot
    value: ast.expr
    element: int | None
    via: tuple[str, ...]
    sure: bool = False


def of_type(values: Values, root: ast.expr, spot: Spot, kind: str) -> list[Typed]:
    """The expressions behind another one that may have made a tensor of a type, the nearest first.

    What was measured to be of another type does not lead there.
    """
    queue, seen, found = [_Step(spot, root, None, ())], set[tuple[int, int | None]](), list[Typed]()
    default = any("set_default_dtype" in run.source for run in values.runs)
    for step in queue:
        if (id(step.value), step.element) in seen or len(seen) > _MOST_STEPS:
            continue
        seen.add((id(step.value), step.element))
        value = step.value
        if step.element is not None and isinstance(value, (ast.Tuple, ast.List)) and step.element < len(value.elts):
            value = value.elts[step.element]
        for whole, node in _parts(value, kind):
            if _makes(node, kind, default) and 0 <= step.spot.at < len(values.runs):
                found.append(Typed(values.runs[step.spot.at], node, whole, step.via, step.sure))
            else:
                queue += _behind(values, node, step, kind)
    return found


def _parts(value: ast.expr, kind: str, whole: ast.expr | None = None) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of an expression that its type may come from, each with the chain of calls that it stands in."""
    whole = whole or value
    if _named_type(value) not in (None, kind):
        return
    if _named_type(value) == kind or isinstance(value, (ast.Name, ast.Attribute)):
        yield whole, value
    elif isinstance(value, ast.Subscript):
        yield from _parts(value.value, kind, whole)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not is_library(value.func):
        yield whole, value
        yield from _parts(value.func.value, kind, whole)
        for one in value.args:
            yield from _parts(one, kind)
    elif isinstance(value, ast.Call):
        yield whole, value
        if source.last_name(ast.unparse(value.func)) not in _TAKING:
            for one in value.args:
                yield from _parts(one, kind)
    elif not isinstance(value, (ast.Compare, ast.Lambda, ast.Constant, ast.JoinedStr)):
        for child in ast.iter_child_nodes(value):
            if isinstance(child, ast.expr):
                yield from _parts(child, kind)


def _named_type(node: ast.expr) -> str | None:
    """The type that a call names for its result: by ``.float()``, ``.to(torch.float32)`` or ``dtype=``; else None."""
    if not isinstance(node, ast.Call):
        return None
    last = source.last_name(ast.unparse(node.func))
    named = [one.value for one in node.keywords if one.arg == "dtype"]
    if isinstance(node.func, ast.Attribute) and last in _CHANGING:
        named += node.args
    words = [_WORDS.get(source.last_name(ast.unparse(one)).strip("'\"")) for one in named]
    known = next(filter(None, words), None)
    if known is not None or any(ast.unparse(one).endswith(".dtype") for one in named) or last == "type_as":
        return known or "another"
    return _WORDS.get(last)


def _makes(node: ast.expr, kind: str, default: bool) -> bool:
    """Whether an expression may make a tensor of a type of something else than a tensor, or names that type."""
    if _named_type(node) == kind:
        return True
    if kind != "float64" or not isinstance(node, ast.Call) or not is_library(node.func):
        return False
    last = source.last_name(ast.unparse(node.func))
    if ast.unparse(node.func).split(".", 1)[0] in ("np", "numpy", "math"):
        return False
    named = any(isinstance(one, ast.Name) for given in node.args for one in ast.walk(given))
    return (last in _TAKING and (named or default)) or (default and last in _OF_DEFAULT)


def _behind(values: Values, node: ast.expr, step: _Step, kind: str) -> Iterator[_Step]:
    """What gave a variable its value, or what a function returns."""
    called = isinstance(node, ast.Call)
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    measured = values.measured(name, step.spot)
    if not called and measured is not None and (measured.kind != "tensor" or measured.dtype != kind):
        return
    via = step.via if called or name in step.via else (*step.via, name)
    sure = step.sure if called else measured is not None
    for spot, made in values.made(name, step.spot):
        if isinstance(made, (ast.FunctionDef, ast.ClassDef)):
            returned = values.returned(made) if called else []
            yield from (_Step(Spot(spot.at, one.lineno), one, step.element, via, sure) for one in returned)
        elif isinstance(made, ast.Assign):
            value, element = source.given_to(made, name)
            yield _Step(spot, value, element if element is not None else step.element, via, sure)
        elif isinstance(made, (ast.AugAssign, ast.AnnAssign)) and made.value is not None:
            yield _Step(spot, made.value, None, via, sure)
        elif isinstance(made, ast.For):
            yield _Step(spot, made.iter, None, via, sure)
        elif isinstance(made, ast.expr):
            yield _Step(spot, made, step.element, via, sure)


def part_converted(values: Values, root: ast.expr, spot: Spot, kind: str) -> list[tuple[str, ast.expr]]:
    """The variables that a line reads and that were measured to be of a type, each with the chain of calls on it."""
    found = []
    for whole, node in _parts(root, kind):
        measured = values.measured(ast.unparse(node), spot) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if measured is not None and measured.kind == "tensor" and measured.dtype == kind:
            found.append((ast.unparse(node), whole))
    return found
