"""Parts of a loss that are computed from a gradient without a graph: a penalty that no step goes by."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.constants import switched_graphs
from graphwidget.diagnosis.findings.silences.constants.sums import sums
from graphwidget.diagnosis.no_graph.gradients.from_gradients import Line, parts
from graphwidget.diagnosis.no_graph.gradients.read_grads import asked_instead, built_by_backward, maker
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, opening, short, spoken, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record

__all__ = ["find", "operands", "with_graph"]


class _Constant(NamedTuple):
    """The operand of a sum that is computed from gradients alone, and its line.

    `made_by`: the call of ``autograd.grad`` that made them; None: it reads a `.grad`, `read`, in `run`.
    """

    operand: ast.expr
    place: Place
    made_by: BackwardCall | None
    read: ast.Attribute | None = None
    run: CellRun | None = None


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that computes such a gradient."""
    switched = list(switched_graphs.find(record))
    yield from switched
    calls = {
        (one.place.cell, one.place.line): one
        for one in reversed(record.calls)
        if one.api == "autograd.grad" and one.result == "ok" and not one.create_graph
    }
    trained = {path for write in record.writes if write.optimizer for path in write.paths}
    runs = [run for _, run in sorted(record.runs.items())]
    if not trained or not (calls or any(".grad" in run.source for run in runs)):
        return
    values, told = Values(runs), {(one.cause.cell, one.cause.line) for one in switched if one.cause is not None}
    at_lines: dict[Line | None, _Constant | None] = {}  # a loop, or a solver, adds at one line again and again
    for call in record.calls:
        graph = call.graph
        if call.api != "backward" or call.result != "ok" or graph is None:
            continue
        for missing in (one for one in sums(call, graph) if one.lacks):
            place = graph.place_of(missing.node)
            spot = at(place)
            if spot not in at_lines:
                at_lines[spot] = _constant(record, values, place, calls)
            found = at_lines[spot]
            gradient = found.made_by or maker(record, call) if found is not None else None
            if found is None or gradient is None:
                continue
            line = (gradient.place.cell, gradient.place.line)
            own = _trained_leaves(record, gradient)
            asked = {path for ref in gradient.inputs or () for path in ref.paths}
            if line in told or gradient.n > call.n or not own or (not missing.plainly and asked & trained):
                continue
            told.add(line)
            yield _of(record, call, found, gradient, _by_weight(own), plainly=missing.plainly)


def _trained_leaves(record: Record, call: BackwardCall) -> set[str]:
    """The leaves below the roots of a call that steps of an optimizer modify, by the names that they have there."""
    known = [one.graph for one in record.calls if one.n in (call.n, call.same_as) and one.graph is not None]
    leaves = known[0].leaves.values() if known else ()
    return {path for leaf in leaves if record.is_stepped(leaf) for path in leaf.paths}


def _by_weight(leaves: set[str]) -> list[str]:
    return sorted(leaves, key=lambda path: (not path.endswith("weight"), path))


def _constant(
    record: Record, values: Values, place: Place | None, calls: Mapping[Line, BackwardCall]
) -> _Constant | None:
    spot = at(place)
    statement = Cells.of(record).statement(spot) if spot is not None else None
    if spot is None or place is None or statement is None or hasattr(statement, "body"):
        return None
    index = max((i for i, run in enumerate(values.runs) if run.cell == spot[0]), default=-1)
    for operand in operands(statement):
        found = parts(values, operand, Spot(index, spot[1]), calls)
        if found.only_gradients and found.gradients:
            return _Constant(operand, place, found.gradients[0])
        if found.only_gradients:
            node, there = found.read[0]
            return _Constant(operand, place, None, node if len(found.read) == 1 else None, values.runs[there.at])
    return None


def operands(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement adds or subtracts."""
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            yield node.left
            yield node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
            yield node.value


def _of(
    record: Record,
    call: BackwardCall,
    found: _Constant,
    gradient: BackwardCall,
    leaves: list[str],
    *,
    plainly: bool,
) -> Finding:
    shown, line, place = short(ast.unparse(found.operand)), gradient.place, found.place
    what = "adds a constant to the loss, and no step goes by it" if plainly else "is a constant in the loss"
    named = source.last_name(leaves[0])
    computes, asks, flag = "computes a gradient without a graph", "its gradient was", "create_graph"
    fixes = [with_graph(record, gradient)]
    if found.made_by is None:
        computes, asks = "puts gradients without a graph into `.grad`", "the `.grad` that it reads was"
        asked = asked_instead(record, found.run, found.read, gradient) if found.run and found.read else None
        fixes = [*filter(None, [asked]), built_by_backward(record, gradient)]
    return Finding(
        "silent",
        "warning" if plainly else "info",
        f"{short(line.source)} ({where(line)}) {computes}, so what is computed from it has "
        f"none either. {short(place.source)} ({where(place)}) adds {shown}: it {what}. {opening(call.n)} gives "
        f"`{spoken(leaves[0])}`{' and others' if len(leaves) > 1 else ''} no gradient from that part.",
        f"{shown} is a constant: {asks} computed without `create_graph=True`.",
        call.n,
        made_at=line,
        cause=line,
        cut_at=line,
        names=tuple(dict.fromkeys((*sorted(source.names_in(found.operand) - {"self"}), flag, named))),
        fixes=tuple(fixes),
    )


def with_graph(record: Record, gradient: BackwardCall) -> Fix:
    """Build a graph for a gradient."""
    spot = at(gradient.place)
    edits = Cells.of(record).with_keyword(spot, "create_graph=True")
    return Fix(
        "create_graph",
        f"If the loss is to train by it, pass `create_graph=True` ({where(gradient.place)}). If it is meant as a "
        "constant, `.detach()` says so.",
        False,
        spot,
        "It keeps the graph, and builds one for the gradient.",
        edits=edits,
    )
