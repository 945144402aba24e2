"""Weights of float16, which a `GradScaler` refuses: the line that made a module's weights so."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import Finding, Place

__all__ = ["of_line"]

_HALF = re.compile(r"(?<![a-zA-Z])(half|float16|fp16)(?![a-zA-Z0-9])")


def of_line(failure: Failure) -> Finding:
    """A scaler that met gradients of float16."""
    places = list(dict.fromkeys(place_of(one.run, one.call.lineno) for one in _casts(failure)))
    place: Place | None = places[0] if len(places) == 1 else None
    made = "The weights themselves are float16 here"
    text = "Keep the weights that train in float32: leave out `.half()`, and use `torch.autocast`."
    if place is not None:
        line = f"{short(place.source)} ({where(place)})"
        made = f"{line} makes the weights themselves float16"
        text = f"Keep the weights that train in float32: do without {line} for them, and use `torch.autocast`."
    fix = replace(failure.fix("float_dtype", text), at=at(place or failure.place))
    return failure.finding(
        f"{short(failure.text)} met gradients of float16.",
        f"A scaler is for weights of float32 whose operations are autocast to float16. {made}: divided by the scale, "
        "their gradients would lose what the scaling was to keep.",
        fix,
        cause=place,
    )


def _casts(failure: Failure) -> list[CallText]:
    """The calls that make a module's parameters float16: ``net.half()``, ``net.to(dtype=torch.float16)``."""
    return [one for one in calls(failure.record, "half", "to", "type") if _to_half(one) and _of_a_module(one)]


def _to_half(one: CallText) -> bool:
    if syntax.last_name(ast.unparse(one.call.func)) == "half":
        return not one.call.args
    given = [*one.call.args, *(kept.value for kept in one.call.keywords if kept.arg == "dtype")]
    return any(_HALF.search(text) for value in given for text in (ast.unparse(value), *_values(one, value)))


def _values(one: CallText, name: ast.expr) -> list[str]:
    """What a variable may stand for: ``weight_dtype = torch.float16``."""
    if not isinstance(name, (ast.Name, ast.Attribute)):
        return []
    made = syntax.assigned_as(one.run.source, syntax.last_name(ast.unparse(name)))
    return [ast.unparse(syntax.given(statement)) for statement, _ in made]


def _of_a_module(one: CallText) -> bool:
    """Whether what is cast is a module: it is cast in place, or called or asked for its parameters elsewhere."""
    statements = syntax.statements_at(one.run.source, one.call.lineno)
    if not statements or not isinstance(one.call.func, ast.Attribute):
        return False
    statement = statements[-1]
    if isinstance(statement, ast.Expr) and statement.value is one.call:
        return True  # of a tensor it would be without effect
    names = {ast.unparse(one.call.func.value), *syntax.targets(statement)}
    called = {ast.unparse(node.func) for node in ast.walk(_whole(one)) if isinstance(node, ast.Call)}
    return any(name in called or f"{name}.parameters" in called for name in names)


def _whole(one: CallText) -> ast.Module:
    return syntax.parse(one.run.source) or ast.Module([], [])
