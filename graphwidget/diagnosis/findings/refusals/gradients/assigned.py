"""``p.grad = g`` where `g` is not like `p`."""

from __future__ import annotations

import ast
import re
from math import prod

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import short
from graphwidget.model import Finding

__all__ = ["of_assigned"]

_NUMBERS = re.compile(r"'\[([\d, ]*)\]'")
_TYPES = re.compile(r"dtype '(?:c10::)?(\w+)' to a tensor with grad_dtype '(?:c10::)?(\w+)'")
_SPELLED = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16"}


def of_assigned(failure: Failure) -> Finding | None:
    """A `.grad` that got something of another shape, type or device than its tensor's, or no tensor."""
    statement = failure.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "grad":
        return None
    name, value = ast.unparse(target.value), ast.unparse(statement.value)
    what, change = _difference(failure.run.error or "", name)
    edits: Edits = ()
    if change:
        edits = text_edit.replace_node(
            failure.place.cell, failure.cell, statement.value, _called_on(statement.value, change)
        )
    given = failure.given
    return failure.finding(
        f"{short(value)} cannot be the `.grad` of `{name}`.",
        f"{short(failure.text)} gives `{name}` a gradient {what}. A gradient has one number for each of its tensor's "
        "values, so it has the tensor's shape, type and device: PyTorch refuses any "
        f"other.{' ' if given else ''}{given}",
        failure.fix(
            "matching_gradient",
            f"Give it one like `{name}`: {short(_called_on(statement.value, change))}."
            if change
            else f"Assign one that is like `{name}`, or None.",
            edits,
        ),
        tensor=name,
    )


def _called_on(value: ast.expr, change: str) -> str:
    return f"{syntax.in_brackets(value)}.{change}"


def _difference(message: str, name: str) -> tuple[str, str]:
    """What is different, and the method that makes it alike; empty if no method does so for sure."""
    shapes = _NUMBERS.findall(message)
    if len(shapes) == 2:
        counts = [prod(map(int, re.findall(r"\d+", one))) for one in shapes]
        same = counts[0] == counts[1]
        return f"of shape [{shapes[0]}], and its own is [{shapes[1]}]", f"view_as({name})" if same else ""
    types = _TYPES.search(message)
    if types is not None:
        got, wanted = (_SPELLED.get(one, one.lower()) for one in types.groups())
        return f"of type {got}, and its own is {wanted}", f"to({name}.dtype)"
    if "device" in message:
        return "on another device", f"to({name}.device)"
    found = re.search(r"but got grad of type (\w+)", message)
    if found is not None:
        return f"that is no tensor but {found[1]}", ""
    return "that it cannot have", ""
