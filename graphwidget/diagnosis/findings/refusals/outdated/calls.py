"""Outdated calls: names and forms of earlier versions that PyTorch refuses today."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals import roots
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import short
from graphwidget.model import Finding

__all__ = ["of_element", "of_keyword"]

_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
# Of `backward` and `autograd.grad`: the name then -> the name now.
_RENAMED = {"retain_variables": "retain_graph", "keep_graph": "retain_graph"}


def of_keyword(failure: Failure) -> Finding | None:
    """``loss.backward(retain_variables=True)``."""
    refused = _KEYWORD.search(failure.run.error or "")
    if refused is None:
        return None
    function, then = refused.groups()
    now, keyword = _RENAMED.get(then), _keyword(failure, function, then)
    if now is None or keyword is None:
        return None
    value = ast.unparse(keyword.value)
    called, name = roots.start(failure)
    ref = failure.tensor(name)
    new = f"{now}={value}"
    fix = failure.fix(
        "today_s_name",
        f"Write `{new}`.",
        text_edit.replace_node(failure.place.cell, failure.cell, keyword, new),
        roots.would_run(failure, ref, called),
        "What the graph has saved is kept until the graph goes." if new == "retain_graph=True" else "",
    )
    return failure.finding(
        f"`{then}` is called `{now}` today.",
        f"{short(failure.text)} passes `{then}`, which {function} does not have. Its name is `{now}`.",
        fix,
        tensor=name,
    )


def _keyword(failure: Failure, function: str, name: str) -> ast.keyword | None:
    """The argument of the one call of PyTorch's own that has it; no other function of that name."""
    found = []
    for node in ast.walk(failure.statement) if failure.statement is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of_torch = source.last_name(ast.unparse(node.func.value)) == "autograd"
        own = "Tensor.backward" if node.func.attr == "backward" else ""
        if function == (node.func.attr if of_torch else own):
            found += [one for one in node.keywords if one.arg == name]
    return found[0] if len(found) == 1 else None


def of_element(failure: Failure) -> Finding | None:
    """``loss.data[0]`` where `loss` has no dimensions."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    elements = [node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)]
    found = [node for node in elements if failure.shape(ast.unparse(_tensor(node.value))) == ()]
    found = found or [node for node in elements if _is_of_a_result(node)]
    if len({ast.unparse(node) for node in found}) != 1:
        return None
    element = found[0]
    inner = _tensor(element.value)
    tensor, cut = ast.unparse(inner), inner is not element.value
    item = ast.Call(ast.Attribute(inner, "item", ast.Load()), [], [])
    now = ast.unparse(item if cut else inner)
    edits = tuple(
        edit for node in found for edit in text_edit.replace_node(failure.place.cell, failure.cell, node, now)
    )
    what = "as a number that has no graph" if cut else "the tensor itself, with its graph; as a number `.item()`"
    return failure.finding(
        f"`{tensor}` has no element [{ast.unparse(element.slice)}]: it is one number.",
        f"{short(failure.text)} asks for an element of `{tensor}`, which has no dimensions: a loss is one "
        "number today, and not a list with one element.",
        failure.fix("today_s_name", f"Write `{now}`: its value, {what}.", edits),
        tensor=tensor,
    )


def _is_of_a_result(element: ast.Subscript) -> bool:
    """``criterion(out, y).data[0]``, ``(a + b).data[0]``: an element of what has no name to look up."""
    tensor = _tensor(element.value)
    return tensor is not element.value and not isinstance(tensor, ast.Name | ast.Attribute | ast.Subscript)


def _tensor(value: ast.expr) -> ast.expr:
    """The tensor in ``loss.data`` or ``loss.detach().cpu()``, without what follows it."""
    while True:
        inner = value.func if isinstance(value, ast.Call) and not value.args and not value.keywords else value
        if not isinstance(inner, ast.Attribute) or inner.attr not in ("data", "detach", "cpu"):
            return value
        value = inner.value
