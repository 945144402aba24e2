"""What was not called, or called with the wrong brackets: ``loss = x.mean``, ``loss = nn.MSELoss(out, y)``."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.no_tensors.asked import Asked
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Finding, Fix, Place

__all__ = ["FUNCTIONS", "of_criterion", "of_iterable", "of_method", "of_settings"]

FUNCTIONS = ("method", "function", "builtin_function_or_method", "method-wrapper", "type")  # classes of what is called
_LISTING = ("parameters", "named_parameters", "buffers", "modules", "children")


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
    if not _is_loss(one.failure, call):
        return None
    return _applied(one.failure, made.run.cell, made.run.source, call, made.place, one.name)


def of_iterable(failure: Failure) -> Finding | None:
    """``SGD(net.parameters)`` and ``SGD(net)``: what holds parameters, where they are to be listed."""
    kind = re.fullmatch(r"'(\w+)' object is not iterable", (failure.run.error or "").strip())
    if kind is None or failure.statement is None:
        return None
    given = [a for n in ast.walk(failure.statement) if isinstance(n, ast.Call) for a in n.args]
    methods: list[ast.expr] = [a for a in given if isinstance(a, ast.Attribute) and a.attr in _LISTING]
    modules = [a for a in given if (value := failure.value(ast.unparse(a))) is not None and value.kind == "module"]
    if kind[1] in FUNCTIONS and len(methods) == 1:
        node, behind, what = methods[0], "()", "a method that was not called"
    elif kind[1] not in FUNCTIONS and len(modules) == 1 and OPTIMIZER.search(failure.text):
        node, behind, what = modules[0], ".parameters()", "a module"
    else:
        return None
    name = ast.unparse(node)
    return failure.finding(
        f"`{name}` is {what}: parameters are listed by `{name}{behind}`.",
        f"{short(failure.text)} ({where(failure.place)}) takes each tensor of `{name}`, which is {what}.",
        Fix(
            "mend_the_code",
            f"Give it `{name}{behind}`.",
            False,
            at(failure.place),
            edits=text_edit.insert_behind(failure.place.cell, failure.cell, node, behind),
        ),
        cause=failure.place,
    )


def of_settings(failure: Failure) -> Finding | None:
    """The same, where PyTorch has asked the first tensor whether it is true: `size_average` was a flag."""
    if "Boolean value of Tensor" not in (failure.run.error or "") or failure.statement is None:
        return None
    calls = (n for n in ast.walk(failure.statement) if isinstance(n, ast.Call) and len(n.args) > 1)
    made = [n for n in calls if _is_loss(failure, n)]
    if len(made) != 1:
        return None
    name = next(iter(syntax.targets(failure.statement)), ast.unparse(made[0].func))
    return _applied(failure, failure.place.cell, failure.cell, made[0], failure.place, name)


def _is_loss(failure: Failure, call: ast.Call) -> bool:
    """Whether it makes one of PyTorch's modules that compute losses: by its name, and it is no class of the program."""
    name = syntax.last_name(ast.unparse(call.func))
    own = (n for run in failure.cells.latest for n in syntax.nodes_of(run.source) if isinstance(n, ast.ClassDef))
    return name.endswith("Loss") and name[0].isupper() and name not in {one.name for one in own}


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
