"""Fixes for leaves that refer to themselves through a `.grad` with a graph: nothing but emptying it frees both."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, names, root_name, where
from graphwidget.model import BackwardCall, Fix, Record

__all__ = ["for_cycle"]


def for_cycle(record: Record, call: BackwardCall, grads: tuple[str, ...]) -> tuple[Fix, ...]:
    """Fixes for leaves that refer to themselves through a `.grad` with a graph.

    If a step uses `.grad`, it is emptied after that step. Taking gradients from `autograd.grad` is then only advice:
    an optimizer would find none.
    """
    line, root, place = call.place.source.strip(), root_name(call), at(call.place)
    grads = tuple(map(local, grads))
    cell = Cells.of(record).text(call.place.cell)
    steps = [write for write in record.writes if write.optimizer or ".grad" in write.by]
    users = _users_of_grads(cell, call, [w.place.line or 0 for w in steps if w.place.cell == call.place.cell])
    used = bool(steps or users)
    last = users[-1].lineno if users else None if used else call.place.line
    drop = [f"{grad} = None" for grad in grads if is_code(grad.removesuffix(".grad"))]
    after = text_edit.insert_after(call.place.cell, cell, last, drop) if last is not None else ()
    text = f"Set {names(grads)} to None after {'the line that uses it last' if used else 'use'}."
    empty = Fix("set_grad_none", text, bool(after) or not used, place, "The gradients are gone.", edits=after)
    leaves = [grad.removesuffix(".grad") for grad in grads if grad.endswith(".grad")]
    asked = source.backward_root(line)
    instead: text_edit.Edits = ()
    if asked and leaves and not used and place is not None:
        new = f"grads = torch.autograd.grad({asked}, [{', '.join(leaves)}], create_graph=True)"
        instead = text_edit.replace_line(place[0], cell, place[1], new)
    text = f"Use `torch.autograd.grad({root}, ..., create_graph=True)` ({where(call.place)}): no `.grad` then."
    price = "What uses `.grad`, an optimizer too, must be given what it returns." if used else "Nothing reads `.grad`."
    other = Fix("autograd_grad_instead", text, not used, place, price, edits=instead)
    return (empty, other) if used else (other, empty)


def _users_of_grads(cell: str, call: BackwardCall, steps: list[int]) -> list[ast.stmt]:
    """The statements behind a call, in its block, that read a `.grad` or contain one of the lines of `steps`."""
    found = source.beginning_at(cell, call.place.line) if call.place.line is not None else []
    behind = source.behind(cell, found[-1]) if found else []
    return [s for s in behind if _reads_grad(s) or any(s.lineno <= line <= (s.end_lineno or 0) for line in steps)]


def _reads_grad(statement: ast.stmt) -> bool:
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Attribute))
    return any(node.attr == "grad" and isinstance(node.ctx, ast.Load) for node in nodes)
