"""A custom Function whose `forward` takes `ctx`, rewritten in the form that transforms need: with `setup_context`."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText

__all__ = ["separated"]


def separated(function: FunctionText) -> Edits:
    """Edits that move what `forward` does with `ctx` into `setup_context`; none where it uses values in between.

    `setup_context` gets the inputs and what `forward` returned, and nothing else that `forward` computed.
    """
    forward, inputs = function.method("forward"), function.inputs
    if forward is None or not inputs or forward.args.kwarg or forward.args.kwonlyargs or forward.args.defaults:
        return ()
    context, returned = forward.args.args[0].arg, function.results
    moved = [one for one in forward.body if context in syntax.names_in(one)]
    given = {*inputs, context, *_name_of(returned)}
    computed = {name for one in syntax.own_statements(forward.body) for name in syntax.targets(one)}
    if (
        len(returned) != 1
        or not moved
        or returned[0] in moved
        or computed & set(inputs)
        or any(hasattr(one, "body") or syntax.names_read(one) & (computed - given) for one in moved)
    ):
        return ()
    cell, text = function.run.cell, function.run.source
    first = syntax.first_line(forward)
    gone = {line for one in moved for line in range(one.lineno, (one.end_lineno or 0) + 1)}
    last = forward.end_lineno or first
    lines = text.splitlines()
    depth = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    kept = [lines[line - 1][depth:] for line in range(first, last + 1) if line not in gone]
    kept = [line.replace(f"({context}, ", "(", 1) if line.startswith("def ") else line for line in kept]
    unpacked = ", ".join(inputs) + ("," if len(inputs) == 1 else "")
    setup = ["@staticmethod", f"def setup_context({context}, inputs, output):", f"    {unpacked} = inputs"]
    setup += [f"    {name} = output" for name in _name_of(returned) if name not in inputs]
    setup += [f"    {line}" for one in moved for line in text_edit.statement_lines(text, one)]
    return text_edit.replace_lines(cell, text, first, last, [*kept, "", *setup])


def _name_of(returned: list[ast.Return]) -> list[str]:
    """The name of what `forward` returns, if it is a plain one."""
    return [one.value.id for one in returned if isinstance(one.value, ast.Name)]
