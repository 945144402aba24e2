"""A tensor that is filled under `vmap`, and that was not made from what is mapped: how to make it."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of

__all__ = ["made_of_mapped"]

_MAKING = ("zeros", "ones", "empty", "full")


def made_of_mapped(failure: Failure) -> Edits:
    """``out = q.new_zeros(2, 2)`` for ``out = torch.zeros(2, 2)``, where `q` is mapped and there by then."""
    inside = syntax.function_at(failure.cell, failure.place.line or 0)
    name = _written(failure.statement)
    if inside is None or name is None:
        return ()
    before = [one for one in syntax.own_statements(inside[1].body) if one.lineno < (failure.place.line or 0)]
    makers = [one for one in before if name in syntax.targets(one)]
    made = syntax.given(makers[-1]) if makers else None
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return ()
    source = _mapped(failure, inside[1], makers[-1], name)
    what = made.func.attr.removesuffix("_like")
    if source is None or what not in _MAKING or not made.args or ast.unparse(made.func.value) != "torch":
        return ()
    cell, text = failure.place.cell, failure.cell
    edits = text_edit.replace_node(cell, text, made.func, f"{source}.new_{what}")
    if made.func.attr.endswith("_like"):
        edits = (*edits, *text_edit.insert_behind(cell, text, made.args[0], ".shape"))
    return edits


def _written(statement: ast.stmt | None) -> str | None:
    """`x` of ``x[i] = v``, ``x[i] += v`` and ``x.add_(v)``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return root_of(ast.unparse(call.func.value))
    return root_of(next(syntax.targets(statement), "")) or None if statement is not None else None


def _mapped(failure: Failure, function: ast.FunctionDef, maker: ast.stmt, name: str) -> str | None:
    """A variable that is mapped and has a value before a line; one of the same type, and one that is written, first."""
    sights = failure.run.scene.sights
    values = sights[0].values if sights else {}
    earlier = [one for one in syntax.own_statements(function.body) if one.lineno < maker.lineno]
    known = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    known |= {target for one in earlier for target in syntax.targets(one)}
    read = syntax.names_in(failure.statement) if failure.statement is not None else set()
    dtype = values[name].dtype if name in values else ""
    found = [one for one, value in values.items() if value.mapped and one in known and one.isidentifier()]
    return min(found, key=lambda one: (values[one].dtype != dtype, one not in read), default=None)
