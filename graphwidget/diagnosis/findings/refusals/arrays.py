"""Tensors with a graph that are converted to arrays: ``out.numpy()``, ``np.asarray(loss)``, ``np.mean(losses)``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.no_graph.numbers.in_torch import Known, write
from graphwidget.diagnosis.no_graph.numbers.round_trips import with_torch
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import short
from graphwidget.model import Finding, Fix

__all__ = ["of_numpy"]

_MODULES = ("np", "numpy")


def of_numpy(failure: Failure) -> Finding:
    """A line that asks for the values of a tensor that requires grad."""
    asked, edits = _methods(failure)
    if not asked:
        asked, edits = _arguments(failure)
    shown = f"`{asked[0]}`" if len(asked) == 1 else "A tensor"
    return failure.finding(
        f"{shown} requires grad, and an array has no graph.",
        f"{short(failure.text)} asks for the values as an array. No gradient flows back from an array, so torch asks "
        "for an explicit `.detach()`.",
        failure.fix(
            "detach",
            "Write `.detach()` before the values are taken.",
            edits,
            verified=not failure.before_a_backward,
            price="No gradient flows back through the array.",
        ),
        *_with_tensors(failure, asked),
        tensor=asked[0] if len(asked) == 1 else None,
    )


def _with_tensors(failure: Failure, asked: list[str]) -> list[Fix]:
    """The fix for an array of which a tensor of the loss is made: then it is not to leave the graph at all.

    It is the second one. Where another way leads to what trains, as past a target or a reward, to detach is right, and
    its trial passes. So it is where the line computes with NumPy and the value is used as it comes: as an array the
    detached one is right, and as a tensor it is none.
    """
    statement = failure.statement
    run = next((one for one in failure.cells.latest if one.cell == failure.place.cell), None)
    found = with_torch(failure.record, run, statement) if run is not None and statement is not None else None
    found = found or _computed_by_torch(failure, asked)
    return [found] if found is not None else []


def _computed_by_torch(failure: Failure, asked: list[str]) -> Fix | None:
    """``torch.sum(torch.stack(final), dim=0)`` for ``np.sum(final, 0)``; None: torch has no such function."""
    for call in _calls(failure):
        if ast.unparse(call.func).split(".", 1)[0] not in _MODULES or not call.args:
            continue
        if ast.unparse(call.args[0]) not in asked:
            continue
        lists = [name for name in asked if _is_list(failure, name)]
        written = write(call, asked, lists, Known({}, (), ()))
        if not written.lacking and ast.unparse(written.node) != ast.unparse(call):
            new = ast.unparse(written.node)
            return failure.fix(
                "differentiable_op",
                f"Or compute with torch, where a tensor is wanted: {short(new)}.",
                text_edit.replace_node(failure.place.cell, failure.cell, call, new),
                price="The gradient then flows through it.",
            )
    return None


def _methods(failure: Failure) -> tuple[list[str], Edits]:
    """What the line calls `.numpy()` on, and edits that detach it before."""
    there = [
        node.func
        for node in _calls(failure)
        if not node.args and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
        if failure.may_require_grad(node.func.value)
    ]
    edits = tuple(
        edit
        for function in there
        if ".detach()" not in ast.unparse(function)
        for edit in text_edit.insert_before_attribute(failure.place.cell, failure.cell, function, ".detach()")
    )
    return [ast.unparse(function.value) for function in there], edits


def _arguments(failure: Failure) -> tuple[list[str], Edits]:
    """What the line passes to functions of NumPy, and edits that pass it without its graph."""
    asked: list[str] = []
    edits: Edits = ()
    for call in _calls(failure):
        root = ast.unparse(call.func).split(".", 1)[0]
        given = call.args[0] if root in _MODULES and call.args else None
        if not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)):
            continue
        name = ast.unparse(given)
        new = _without_graph(failure, call, name)
        if new:
            asked.append(name)
            edits += text_edit.replace_node(failure.place.cell, failure.cell, given, new)
    return asked, edits


def _without_graph(failure: Failure, call: ast.Call, name: str) -> str:
    """An argument without its graph; empty where it is not known to have one.

    The variable of a comprehension has no measured value: then the function has to be one that takes a single tensor.
    """
    value = failure.value(name)
    if value is not None:
        return f"{name}.detach()" if value.kind == "tensor" and value.requires_grad else ""
    if _is_list(failure, name):
        return f"[one.detach() for one in {name}]"
    loops = [node for node in ast.walk(failure.statement or call) if isinstance(node, ast.comprehension)]
    passing = {part.id for loop in loops for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    one_array = ast.unparse(call.func).rsplit(".", 1)[-1] in ("asarray", "array")
    return f"{name}.detach()" if name in passing and one_array else ""


def _is_list(failure: Failure, name: str) -> bool:
    """Whether a list of that name keeps tensors that have a graph."""
    paths = (owner.path.rsplit(": ", 1)[-1] for owner in failure.record.snapshot.owners)
    return any(path.startswith(f"{name}[") for path in paths)


def _calls(failure: Failure) -> list[ast.Call]:
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    return [node for node in nodes if isinstance(node, ast.Call)]
