"""Edits of a custom Function after which it keeps what is no tensor as an attribute of its context."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText

__all__ = ["kept_on_context"]


def kept_on_context(function: FunctionText, saving: ast.Call, number: int) -> Edits:
    """``ctx.bits = bits`` in place of an argument of ``ctx.save_for_backward(x, bits)``; empty: it is not that simple.

    Where `backward` unpacks what was saved, the same name gets its value from there.

    Parameters
    ----------
    saving
        The only call of `save_for_backward` of the Function.
    number
        The position of the argument.
    """
    cell, text, backward = function.run.cell, function.run.source, function.backward
    given, statement = saving.args[number], syntax.statements_at(text, saving.lineno)[-1]
    context = ast.unparse(saving.func).rpartition(".")[0]
    plain = isinstance(statement, ast.Expr) and statement.value is saving and not saving.keywords
    if not (plain and isinstance(given, ast.Name) and backward is not None) or len(saving.args) < 2:
        return ()
    unpacking = [one for one in ast.walk(backward) if isinstance(one, ast.Assign) and _unpacks(one, len(saving.args))]
    reads = [one for one in ast.walk(backward) if isinstance(one, ast.Attribute) and one.attr == "saved_tensors"]
    if len(unpacking) != 1 or len(reads) != 1:
        return ()
    (target,) = unpacking[0].targets
    assert isinstance(target, ast.Tuple | ast.List) and isinstance(unpacking[0].value, ast.Attribute)
    kept = f"{ast.unparse(unpacking[0].value.value)}.{given.id}"
    rest = [ast.unparse(one) for at, one in enumerate(target.elts) if at != number]
    saved = [ast.unparse(one) for at, one in enumerate(saving.args) if at != number]
    return (
        *text_edit.replace_node(cell, text, saving, f"{ast.unparse(saving.func)}({', '.join(saved)})"),
        *text_edit.insert_after(cell, text, statement, [f"{context}.{given.id} = {given.id}"]),
        *text_edit.replace_node(cell, text, target, ", ".join(rest) if len(rest) > 1 else f"({rest[0]},)"),
        *text_edit.insert_after(cell, text, unpacking[0], [f"{ast.unparse(target.elts[number])} = {kept}"]),
    )


def _unpacks(statement: ast.Assign, length: int) -> bool:
    """``x, bits = ctx.saved_tensors``, of that many."""
    target, value = statement.targets[0], statement.value
    takes = isinstance(value, ast.Attribute) and value.attr == "saved_tensors" and len(statement.targets) == 1
    return takes and isinstance(target, ast.Tuple | ast.List) and len(target.elts) == length
