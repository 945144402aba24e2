"""A `.grad` that is read for a loss: which backward made it, and what builds a graph for it."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_assignable, root_of
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Record

__all__ = ["asked_instead", "built_by_backward", "is_read", "maker"]


def is_read(node: ast.AST) -> bool:
    """Whether an expression reads the `.grad` of something: ``torch.autograd.grad`` is a function."""
    return isinstance(node, ast.Attribute) and node.attr == "grad" and not ast.unparse(node).endswith("autograd.grad")


def maker(record: Record, call: BackwardCall) -> BackwardCall | None:
    """The backward whose gradients a loss found in `.grad`: the last one before the loss's own, on another line."""
    before = [one for one in record.calls if one.n < call.n and one.api == "backward" and one.result == "ok"]
    last = before[-1] if before else None
    if last is None or last.create_graph or (last.place.cell, last.place.line) == (call.place.cell, call.place.line):
        return None
    return last


def built_by_backward(record: Record, made: BackwardCall) -> Fix:
    """Let the backward build a graph for what it puts into `.grad`."""
    spot = at(made.place)
    edits = Cells.of(record).with_keyword(spot, "create_graph=True")
    return Fix(
        "create_graph",
        f"Pass `create_graph=True` in {short(made.place.source)} ({where(made.place)}), if the loss is to train by it, "
        "and clear each `.grad` before the next backward: it then has a graph.",
        False,
        spot,
        "It keeps the graph, and builds one for the gradients; PyTorch warns of what a `.grad` with a graph keeps.",
        edits=edits,
    )


def asked_instead(record: Record, run: CellRun, node: ast.Attribute, made: BackwardCall) -> Fix | None:
    """Ask for the gradient itself: ``torch.autograd.grad(fit, x, create_graph=True)[0]`` in place of ``x.grad``.

    Where the line and the backward are in one function of one text. The backward goes if nothing but this read uses
    what it made: the program clears all gradients behind it, or the function's only task is this gradient.
    """
    text, owner = run.source, ast.unparse(node.value)
    statement = next(reversed(syntax.statements_at(text, node.lineno)), None)
    before = next(reversed(syntax.statements_at(text, made.place.line or 0)), None)
    if made.place.cell != run.cell or statement is None or before is None or before.lineno >= node.lineno:
        return None
    homes = [syntax.function_at(text, one.lineno) for one in (statement, before)]
    if len({home[1].lineno if home is not None else 0 for home in homes}) > 1 or not is_assignable(owner):
        return None
    call = before.value if isinstance(before, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return None
    root = ast.unparse(call.func.value)
    if call.args or any(one.arg not in ("retain_graph",) for one in call.keywords):
        return None
    passing = {name for loop in ast.walk(statement) if isinstance(loop, ast.comprehension) for name in _names(loop)}
    if root_of(owner) in passing | syntax.loop_names(text):
        return None  # one pass through the graph for each
    between = [one for one in syntax.behind(text, before) if one.lineno <= statement.lineno]
    if any(syntax.bound(one) & syntax.names_in(call.func.value) for one in between if one is not statement):
        return None
    new = f"torch.autograd.grad({root}, {owner}, create_graph=True)[0]"
    behind = syntax.behind(text, before)
    cleared = any(name.endswith(".zero_grad") for one in behind for name in syntax.calls_in(one))
    if not cleared and behind and isinstance(behind[-1], ast.Return):
        cleared = any(".zero_grad(" in one.source for one in record.runs.values())
    if cleared and statement in behind and _reads_once(behind):
        edits = text_edit.remove(run.cell, text, before)
    elif not is_assignable(root):
        return None  # it would be computed twice
    else:
        edits = text_edit.with_keyword(run.cell, text, before, "retain_graph=True") if not call.keywords else ()
    return Fix(
        "autograd_grad_instead",
        f"Compute it with a graph, if the loss is to train by it: {short(new, 80)}, in place of `{owner}.grad`.",
        False,
        (run.cell, node.lineno) if run.cell is not None else None,
        "It keeps the graph, and builds one for the gradient.",
        edits=(*edits, *text_edit.replace_node(run.cell, text, node, new)),
    )


def _names(loop: ast.comprehension) -> set[str]:
    return syntax.names_in(loop.target)


def _reads_once(statements: list[ast.stmt]) -> bool:
    return sum(is_read(node) and isinstance(node.ctx, ast.Load) for one in statements for node in ast.walk(one)) == 1  # type: ignore[attr-defined]
