"""Tensors of several values that are asked for as one number: ``loss.item()``, ``float(loss)``, ``if loss:``."""

from __future__ import annotations

import ast
from math import prod

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import Finding, Place

__all__ = ["of_several"]

_NUMBERS = ("float", "int", "complex", "bool")


def of_several(failure: Failure) -> Finding | None:
    """A line that takes one number out of what requires grad; None where no such tensor is known."""
    asked = _asked(failure)
    if asked is None:
        return None
    node, name = asked
    value = failure.value(name)
    if value is not None and (value.kind != "tensor" or not value.requires_grad or prod(value.shape) == 1):
        return None
    shape = f"{prod(value.shape)} values, of shape {list(value.shape)}" if value is not None else "several values"
    made, original = _made(failure, name)
    told = f" {short(made.source)} ({where(made)}) made it." if made is not None else ""
    edits = text_edit.insert_behind(failure.place.cell, failure.cell, node, ".mean()")
    return failure.finding(
        f"`{original}` is not one number.",
        f"{short(failure.text)} ({where(failure.place)}) asks `{name}` for one number, and it has {shape}.{told} "
        "A loss is reduced first, by `mean()` or `sum()`.",
        failure.fix("scalar_loss", f"Take the mean of it: `{name}.mean()`.", edits),
        tensor=original,
        cause=made,
    )


def _asked(failure: Failure) -> tuple[ast.expr, str] | None:
    """What the line takes a number of: the expression, and how it is written."""
    nodes = [node for node in ast.walk(failure.statement) if isinstance(node, ast.Call)] if failure.statement else []
    found: list[ast.expr] = [
        node.func.value for node in nodes if isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    ]
    found += [
        node.args[0]
        for node in nodes
        if isinstance(node.func, ast.Name) and node.func.id in _NUMBERS and len(node.args) == 1
    ]
    plain = [one for one in found if isinstance(one, (ast.Name, ast.Attribute))]
    return (plain[0], ast.unparse(plain[0])) if len(plain) == 1 and len(found) == 1 else None


def _made(failure: Failure, name: str) -> tuple[Place | None, str]:
    """The line that made the tensor, and its name there: for an argument, the caller's."""
    place, sights = failure.place, failure.run.scene.sights
    for depth, sight in enumerate(sights[:3]):
        text = failure.cells.text(sight.place.cell)
        before = source.bindings(text, name, sight.place.line or 0)
        if before:
            run = next((one for one in failure.record.runs.values() if one.cell == sight.place.cell), None)
            return (place_of(run, before[-1].lineno) if run is not None else None), name
        inside = source.function_at(text, sight.place.line or 0)
        above = sights[depth + 1] if depth + 1 < len(sights) else None
        argument = _argument(failure, inside[1], name, above.place) if inside is not None and above is not None else ""
        if not argument:
            return None, name
        name, place = argument, above.place if above is not None else place
    return None, name


def _argument(failure: Failure, function: ast.FunctionDef, name: str, caller: Place) -> str:
    """What the caller's line hands in for a parameter, if that is a name."""
    statement = failure.cells.statement((caller.cell, caller.line)) if caller.cell and caller.line else None
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement is not None else []
    named = [one for one in calls if ast.unparse(one.func).rsplit(".", 1)[-1] == function.name]
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if len(named) != 1 or name not in parameters:
        return ""
    call, position = named[0], parameters.index(name)
    position -= parameters[0] == "self" and isinstance(call.func, ast.Attribute)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    value = given.get(name) or (call.args[position] if 0 <= position < len(call.args) else None)
    return ast.unparse(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""
