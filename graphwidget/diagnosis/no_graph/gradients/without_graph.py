"""Gradients for which no graph was built: ``autograd.grad`` without ``create_graph``, and `.grad` that is read."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.gradients.from_gradients import Parts, parts
from graphwidget.diagnosis.no_graph.gradients.kept_by_forward import kept_by_forward
from graphwidget.diagnosis.no_graph.gradients.read_grads import asked_instead, is_read, maker
from graphwidget.diagnosis.no_graph.leaves import by_hand
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.custom_functions import functions
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, CellRun, Fix, Place, Record

__all__ = ["behind", "is_cut_behind", "only"]


def behind(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """Return the nearest statement behind the root that computes a gradient for which no graph was built."""
    statements = (
        (where, node if isinstance(node, ast.stmt) else origins.values.statement_of(where, node))
        for where, node, _ in origins.back(root, spot)
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg))
    )
    gradients = (
        _gradient_without_graph(record, origins.values.runs[where.at], node, record.calls)
        for where, node in statements
        if node is not None and hasattr(node, "value") and not origins.is_cut(where, node)
    )
    return next((one for one in gradients if one is not None), None)


def only(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """The same where all of the root comes from such gradients: no line before these can have cut its graph."""
    found = _parts(record, origins, root, spot)
    without = found.gradients and not any(one.create_graph for one in found.gradients)
    if not without or not found.only_gradients:
        return None
    made = _statement_of(record, found.gradients[0].place)
    own = _gradient_without_graph(record, *made, found.gradients) if made is not None else None
    return behind(record, origins, root, spot) or own


def is_cut_behind(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> bool:
    """Whether a line cuts the graph between the root and any such gradient."""
    found = _parts(record, origins, root, spot)
    return found.cut and not found.gradients and not found.read


def _parts(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Parts:
    calls = {(one.place.cell, one.place.line): one for one in record.calls if one.api == "autograd.grad"}
    return parts(origins.values, root, spot, calls)


def _gradient_without_graph(
    record: Record, run: CellRun, statement: ast.stmt, calls: Sequence[BackwardCall]
) -> Cause | None:
    """Return the cause if a statement computes a gradient, or reads a `.grad`, for which no graph was built."""
    place, text = place_of(run, statement.lineno), short(ast.unparse(statement))
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    for call in calls:
        here = next((one for one in _lines_of(call) if one.cell == run.cell and one.line in lines), None)
        if here is None or call.api != "autograd.grad" or call.result != "ok":
            continue
        if here != call.place:  # a function that the statement calls
            inner = _statement_of(record, call.place)
            return _gradient_without_graph(record, *inner, (call,)) if inner is not None else None
        if call.create_graph:
            kept = _kept(record, call, text) if call.graph is not None else None
            return _differentiated_once(record, call, text) or kept or _constant(text, place)
        fix = Fix(
            "create_graph",
            f"Pass `create_graph=True` in {text} ({where(place)}).",
            False,
            line_of(place),
            "It keeps the graph, and builds one for the gradient.",
            edits=text_edit.with_keyword(run.cell, run.source, statement, "create_graph=True"),
        )
        return Cause(f"The gradient from {text} ({where(place)}) has no graph.", fix, place)
    nodes = list(ast.walk(_value(statement)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    read = [one for one in nodes if isinstance(one, ast.Attribute) and is_read(one) and id(one) not in called]
    with_graph = any(call.create_graph and call.api == "backward" for call in record.calls)
    if read and not with_graph:
        if (rebound := by_hand.replaced(record, run, statement, sure=False)) is not None:
            return rebound  # its `.grad` is only a step of what replaces the leaf
        made = maker(record, calls[-1]) if calls else None
        instead = asked_instead(record, run, read[0], made) if made is not None and len(read) == 1 else None
        words = "Use the result of `torch.autograd.grad(..., create_graph=True)` instead of `.grad`."
        fix = instead or Fix("autograd_grad_instead", words, False, line_of(place))
        return Cause(f"{text} ({where(place)}) reads `.grad`, for which no graph was built.", fix, place)
    return None


def _lines_of(call: BackwardCall) -> tuple[Place, ...]:
    """Return the line that made a call, and the lines that led to it."""
    return (call.place, *reversed(call.place.stack))


def _statement_of(record: Record, place: Place) -> tuple[CellRun, ast.stmt] | None:
    """Return the statement at a place, and the run whose text has it."""
    spot, cells = line_of(place), Cells.of(record)
    statement = cells.statement(spot) if spot is not None else None
    run = next((one for one in cells.latest if spot is not None and one.cell == spot[0]), None)
    return (run, statement) if run is not None and statement is not None else None


def _differentiated_once(record: Record, call: BackwardCall, text: str) -> Cause | None:
    """Return the cause if the call ran a cell's Function whose ``@once_differentiable`` backward builds no graph."""
    ran = set(call.graph.names) if call.graph is not None else None
    for one in functions(record):
        run, function, found = one.run, one.backward, one.once
        if function is None or found is None or (ran is not None and f"{one.name}Backward" not in ran):
            continue
        without = restore_graph.without_decorator(run.cell, run.source, function, found)
        if without is None:
            continue
        line, edits = without
        place = place_of(run, line)
        sentence = f"Drop `@{found}` ({where(place)}), if all in that backward has a derivative."
        return Cause(
            f"`{one.name}.backward` is `@{found}` ({where(place)}): it builds no graph for its gradients. "
            f"{text} got one of them, in spite of `create_graph=True`.",
            Fix("differentiable_backward", sentence, False, line_of(place), edits=edits),
            place,
        )
    return None


def _kept(record: Record, call: BackwardCall, text: str) -> Cause | None:
    """Return the cause if the call ran a cell's Function whose backward computes with what has no graph."""
    graph = call.graph
    found = (
        kept_by_forward(record, graph, reachable(graph, (ref.node for ref in call.roots)))
        if graph is not None
        else None
    )
    if found is None:
        return None
    return Cause(
        f"The gradient from {text} has no graph, in spite of `create_graph=True`. {found.text}", found.fix, found.place
    )


def _constant(text: str, place: Place) -> Cause:
    """Return the cause for a gradient that has no graph although `create_graph` was set."""
    return Cause(
        f"The gradient from {text} ({where(place)}) has no graph, although `create_graph=True` asks for one. It is "
        "constant, or went through a backward that has no derivative itself.",
        Fix("differentiable_op", "Compute the loss from a gradient that depends on what requires grad.", False),
        place,
    )


def _value(statement: ast.stmt) -> ast.AST:
    """Return the value of an assignment; of another statement, the statement itself."""
    return getattr(statement, "value", None) or statement
