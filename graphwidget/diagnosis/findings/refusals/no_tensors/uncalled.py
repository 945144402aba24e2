"""What was not called, or called with the wrong brackets: ``loss = x.mean``, ``loss = nn.MSELoss(out, y)``."""

from __future__ import annotations

import ast

from torch import nn

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.no_tensors.asked import Asked
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Finding, Fix, Place

__all__ = ["of_criterion", "of_method", "of_settings"]


def of_method(one: Asked) -> Finding:
    """``loss = x.mean``: the method itself, which was not called."""
    made = one.made
    given = made.given if made is not None and isinstance(made.given, ast.Attribute | ast.Name) else None
    edits: text_edit.Edits = ()
    if made is not None and given is not None:
        edits = text_edit.insert_behind(made.run.cell, made.run.source, given, "()")
    call = f"`{ast.unparse(given)}()`" if given is not None else "it, with brackets"
    return one.failure.finding(
        f"`{one.name}` is a function that was not called.",
        f"{made.told if made is not None else one.line} names a function and does not call it. {one.line} asks it for "
        f"`{one.attribute}`, and only a tensor has one.",
        Fix("mend_the_code", f"Call {call}.", False, at(made.place if made else one.failure.place), edits=edits),
        tensor=one.name,
        cause=made.place if made is not None else None,
    )


def of_criterion(one: Asked) -> Finding | None:
    """``loss = nn.MSELoss(out, y)``: the module that computes losses, made of what it is to be applied to."""
    made = one.made
    call = made.given if made is not None and isinstance(made.given, ast.Call) else None
    if made is None or call is None or ast.unparse(call.func).rsplit(".", 1)[-1] != one.kind or not call.args:
        return None
    return _applied(one.failure, made.run.cell, made.run.source, call, made.place, one.name)


def of_settings(failure: Failure) -> Finding | None:
    """The same, where PyTorch has asked the first tensor whether it is true: `size_average` was a flag."""
    if "Boolean value of Tensor" not in (failure.run.error or "") or failure.statement is None:
        return None
    made = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call) and len(n.args) > 1 and _is_loss(n)]
    if len(made) != 1:
        return None
    name = next(iter(syntax.targets(failure.statement)), ast.unparse(made[0].func))
    return _applied(failure, failure.place.cell, failure.cell, made[0], failure.place, name)


def _is_loss(call: ast.Call) -> bool:
    """Whether it makes one of PyTorch's modules that compute losses: those that have a `reduction`."""
    made = getattr(nn, syntax.last_name(ast.unparse(call.func)), None)
    return isinstance(made, type) and issubclass(made, nn.Module) and "reduction" in getattr(made, "__constants__", ())


def _applied(failure: Failure, cell: int | None, text: str, call: ast.Call, place: Place, name: str) -> Finding:
    maker = ast.unparse(call.func)
    settings = ", ".join(f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg)
    new = f"{maker}({settings})({', '.join(map(ast.unparse, call.args))})"
    return failure.finding(
        f"`{maker}` is a module, and was made where it was to be applied.",
        f"{short(place.source)} ({where(place)}) makes the module and gives it the tensors as its settings. It is not "
        f"applied to them, so `{name}` is no tensor.",
        Fix(
            "mend_the_code",
            f"Make the module, then apply it: `{new}`.",
            False,
            at(place),
            edits=text_edit.replace_node(cell, text, call, new),
        ),
        tensor=name,
        cause=place,
    )
