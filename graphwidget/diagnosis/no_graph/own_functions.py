"""Outputs of custom Functions that have no graph: marked so, or returned in a way that PyTorch does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, functions
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import Fix, Record

__all__ = ["without_history"]

_HIDING = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set)


def without_history(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """The cause if a custom Function made the root, and gave it no history."""
    for one in _applied(record, origins, root, spot):
        found = _marked(one) or _hidden(one)
        if found is not None:
            return found
    return None


def _applied(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Iterator[FunctionText]:
    """The Functions that were applied on the way to the root."""
    made = functions(record)
    for _, node, _ in origins.back(root, spot):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
            applied = {name for name in source.calls_in(node) if name.endswith(".apply")}
            yield from (one for one in made if f"{one.name}.apply" in applied)


def _marked(one: FunctionText) -> Cause | None:
    """``ctx.mark_non_differentiable(y)``."""
    calls = [node for node in ast.walk(one.made) if isinstance(node, ast.Call)]
    marks = [call for call in calls if source.last_name(ast.unparse(call.func)) == "mark_non_differentiable"]
    if not marks:
        return None
    place = place_of(one.run, marks[0].lineno)
    words = f"Leave out that line if a gradient should flow through `{one.name}`."
    text = f"{short(place.source)} ({where(place)}) says that `{one.name}` has no derivative there."
    return Cause(text, Fix("differentiable_op", words, False, at(place)), place)


def _hidden(one: FunctionText) -> Cause | None:
    """A `forward` that returns its tensors in a list or a dict."""
    forward = one.method("forward")
    found = [
        node
        for node in source.own_statements(forward.body if forward is not None else [])
        if isinstance(node, ast.Return) and isinstance(node.value, _HIDING)
    ]
    if len(found) != 1 or found[0].value is None:
        return None
    place, value = place_of(one.run, found[0].lineno), found[0].value
    kind = "a dict" if isinstance(value, (ast.Dict, ast.DictComp)) else "a list"
    edits: text_edit.Edits = ()
    words = "Return the tensors themselves, in a tuple."
    if isinstance(value, ast.List) and value.elts and not any(isinstance(each, ast.Starred) for each in value.elts):
        new = ", ".join(map(ast.unparse, value.elts)) + ("," if len(value.elts) == 1 else "")
        edits = text_edit.replace_node(one.run.cell, one.run.source, value, new)
        words = f"Return a tuple: `return {new}`."
    return Cause(
        f"{short(place.source)} ({where(place)}) returns {kind}. PyTorch gives a history to the tensors that "
        f"`{one.name}.forward` returns, alone or in a tuple, and does not look into {kind}.",
        Fix("differentiable_op", words, False, at(place), edits=edits),
        place,
    )
