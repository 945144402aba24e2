"""Roots that are complex: which of a real part and a size is meant, as far as the text says it.

The mean of an observable, ``vdot(psi, H @ psi)``, is real but for rounding. An overlap of two states,
``vdot(phi, psi)``, has a phase that means nothing: its size counts. So does that of each value of a residual.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.roots import start
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Finding, Fix, Place

__all__ = ["of_no_real_number"]

MOST_STEPS = 4  # from a name to what it was computed by
_CONJUGATING = ("conj", "conj_physical", "adjoint")
_TRANSPOSED = ("H", "mH")
_JOINING = ("einsum", "vdot", "inner", "dot", "matmul", "sum", "bmm", "tensordot")
_GENERAL = "Make it real before it is reduced: by `.abs()` where sizes count, else by `.real` or `.imag`."
_OBSERVABLE = "Take its real part, if it is the mean of an observable: its imaginary part is zero, but for rounding: "
_AMPLITUDE = "Take the square of its size, if it is an overlap or an amplitude, whose phase means nothing: "
_REAL = "Or take its real part, if that is what is meant: "
_SIZES = "Make it real before it is reduced: by `.abs()`, the size of each value: "


class _Way(NamedTuple):
    """A way to make a value real: what to write behind an expression, and when it is right."""

    target: ast.expr
    ending: str
    text: str


def of_no_real_number(failure: Failure) -> Finding:
    """``((P - T) ** 2).mean().backward()`` where `P` is complex."""
    called, name = start(failure)
    shown = f"`{name}`" if name else "The root"
    node = failure.computed(name) if name else None
    place = failure.record.snapshot.place_of(node) if node is not None else None
    elsewhere = place is not None and at(place) != at(failure.place)
    value = _made(failure, place) if place is not None and elsewhere else _root(failure, called)
    spot = place if place is not None and elsewhere else failure.place
    text = failure.cells.text(spot.cell)
    ways = _ways(value, text, spot.line or 0) if value is not None else ()
    fixes = [_fix(failure, spot, text, one, value) for one in ways]
    made = f" {short(place.source)} ({where(place)}) made it." if place is not None and elsewhere else ""
    return failure.finding(
        f"{shown} is complex.",
        f"{shown} is a complex number, and a gradient is that of a real one.{made}",
        *(fixes or [replace(failure.fix("scalar_loss", _GENERAL), at=at(spot), choice=True)]),
        tensor=name,
        cause=place if fixes and elsewhere else None,
    )


def _fix(failure: Failure, place: Place, text: str, way: _Way, whole: ast.expr | None) -> Fix:
    inside = any(isinstance(one, ast.Attribute) and one.value is way.target for one in ast.walk(whole or way.target))
    new = f"{source.in_brackets(way.target)}{way.ending}"
    edits: Edits = text_edit.replace_node(place.cell, text, way.target, f"({new})" if inside and "**" in new else new)
    if isinstance(way.target, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and not (inside and "**" in new):
        edits = text_edit.insert_behind(place.cell, text, way.target, way.ending)
    elif inside:  # the brackets are there
        edits = _in_its_brackets(place.cell, text, way, whole) or edits
    sentence = f"{way.text}{short(new, 80)}."
    return replace(failure.fix("scalar_loss", sentence, edits), at=at(place), choice=True)


def _in_its_brackets(cell: int | None, text: str, way: _Way, whole: ast.expr | None) -> Edits:
    """``((P - T) ** 2).abs().mean()``: written before the dot that follows the brackets."""
    nodes = ast.walk(whole) if whole is not None else ()
    over = next((one for one in nodes if isinstance(one, ast.Attribute) and one.value is way.target), None)
    if over is None or "**" in way.ending:
        return ()
    return text_edit.insert_before_attribute(cell, text, over, way.ending)


# ------------------------------------------------------------------ where it was made


def _made(failure: Failure, place: Place) -> ast.expr | None:
    """What the line that made the root assigns, adds or returns."""
    spot = at(place)
    statement = failure.cells.statement(spot) if spot is not None else None
    simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return))
    value: ast.expr | None = getattr(statement, "value", None) if simple else None
    return None if isinstance(value, (ast.Tuple, ast.List, ast.Dict)) else value


def _root(failure: Failure, called: bool) -> ast.expr | None:
    """The root in the line that failed: ``(1 - overlap).backward()``."""
    wanted = "backward" if called else "grad"
    found = [
        node
        for node in (ast.walk(failure.statement) if failure.statement is not None else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == wanted
    ]
    if len(found) != 1:
        return None
    (call,) = found
    root = call.func.value if called and isinstance(call.func, ast.Attribute) else next(iter(call.args), None)
    return None if isinstance(root, (ast.List, ast.Tuple)) else root


# ------------------------------------------------------------------ what it means


def _ways(value: ast.expr, text: str, line: int) -> Iterator[_Way]:
    """The ways to make a value real, the likeliest first."""
    core, turned = _core(value)
    reduced = _reduced(core)
    meant = _resolved(core, text, line)
    if _is_observable(meant):
        yield _Way(core, ".real", _OBSERVABLE)
    elif _conjugated(meant) or (turned and reduced is None):
        inner = reduced is not None and _is_joined(reduced)
        yield _Way(reduced if inner and reduced is not None else core, ".abs() ** 2", _AMPLITUDE)
        yield _Way(core, ".real", _REAL)
    elif reduced is not None:
        yield _Way(reduced, ".abs()", _SIZES)
    else:
        yield _Way(core, ".real", _OBSERVABLE)
        yield _Way(core, ".abs() ** 2", _AMPLITUDE.replace("Take", "Or take"))


def _core(value: ast.expr) -> tuple[ast.expr, bool]:
    """The part of a value that is not real by its text: `z` of ``1 - z`` and ``0.5 * z``; and whether it is turned."""
    turned = False
    while True:
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            value, turned = value.operand, True
        elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            sub = isinstance(value.op, ast.Sub)
            if _is_real(value.left) and not isinstance(value.op, ast.Div):
                value, turned = value.right, turned or sub
            elif _is_real(value.right):
                value = value.left
            else:
                return value, turned
        else:
            return value, turned


def _is_real(value: ast.expr) -> bool:
    """Whether a value is a real number by its text."""
    if isinstance(value, ast.UnaryOp):
        return _is_real(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_real(value.left) and _is_real(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float))


def _reduced(value: ast.expr) -> ast.expr | None:
    """`x` of ``x.mean()`` and ``torch.sum(x)``."""
    func = value.func if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or not isinstance(func, ast.Attribute) or func.attr not in ("mean", "sum"):
        return None
    if ast.unparse(func.value) == "torch":
        return value.args[0] if value.args and not isinstance(value.args[0], ast.Starred) else None
    return func.value


def _is_joined(value: ast.expr) -> bool:
    """Whether a value is an inner product already, and what is done with it goes over several."""
    calls = (source.last_name(one) for one in source.calls_in(value))
    return any(one in _JOINING for one in calls) or any(isinstance(one, ast.MatMult) for one in ast.walk(value))


def _resolved(value: ast.expr, text: str, line: int) -> ast.expr:
    """What a name stands for, or what a function of the program returns."""
    for _ in range(MOST_STEPS):
        if isinstance(value, ast.Name):
            inside = source.function_at(text, line)
            first = inside[1].lineno if inside is not None else 0
            made = [one for one in source.bindings(text, value.id, line) if one.lineno > first]
            if not made or not isinstance(made[-1], ast.Assign):
                return value
            value, line = source.given_to(made[-1], value.id)[0], made[-1].lineno
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            called = [one for one in source.defined(text, value.func.id) if isinstance(one, ast.FunctionDef)]
            body = called[0].body if len(called) == 1 else []
            returns = [one for one in source.own_statements(body) if isinstance(one, ast.Return)]
            if len(returns) != 1 or returns[0].value is None or _conjugated(value):
                return value
            value, line = returns[0].value, returns[0].lineno
        else:
            return value
    return value


def _conjugated(value: ast.expr) -> list[ast.expr]:
    """What a value is computed from the conjugate of."""
    found: list[ast.expr] = []
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            last = source.last_name(ast.unparse(node.func))
            if last in _CONJUGATING and isinstance(node.func, ast.Attribute):
                found.append(node.args[0] if ast.unparse(node.func.value) == "torch" and node.args else node.func.value)
            elif last == "vdot" and node.args:
                found.append(node.args[0])
        elif isinstance(node, ast.Attribute) and node.attr in _TRANSPOSED:
            found.append(node.value)
    return found


def _is_observable(value: ast.expr) -> bool:
    """Whether a value is ``<psi|H|psi>``, or a trace: the conjugate of a state meets the state itself."""
    if any(source.last_name(one) == "trace" for one in source.calls_in(value)):
        return True
    conjugated = _conjugated(value)
    inside = {id(node) for one in conjugated for node in ast.walk(one)}
    others = {one.id for one in ast.walk(value) if isinstance(one, ast.Name) and id(one) not in inside}
    named = set[str]().union(*map(source.names_in, conjugated))
    return bool(named) and named <= others
