"""A cut at the line that updates a state in place after a call, such as an average of weights: it writes no graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Write

__all__ = ["written_after_call"]


def written_after_call(context: CuttingContext) -> Iterator[Cut]:
    """Write the state detached: ``p.mul_(0.9).add_((q * 0.1).detach())``. The pass has no more use for its graph."""
    reuse, spot = context.reuse, at(context.reuse.carrier_place)
    graph = reuse.graph
    if spot is None:
        return
    writes = [w for w in reuse.record.writes if at(w.place) == spot]
    made = {number for write in writes for number in write.made}
    if not made.issuperset(graph.seq[i] for i in reuse.boundary) or not all(
        _follows_a_call(context, w) for w in writes
    ):
        return
    text = context.text(spot)
    for statement in source.statements_at(text, spot[1])[-1:]:
        edits = tuple(edit for value in _given(statement) for edit in containers.detached_value(spot[0], text, value))
        if not edits:
            return
        there = {i for i in reuse.reached if at(graph.place_of(i)) == spot}
        gone = frozenset(
            edge
            for user in reuse.reached - there
            for edge in range(graph.edge_start[user], graph.edge_start[user + 1])
            if graph.edge_to[edge] in there
        )
        sentence = f"Write it detached: {short(text_edit.new_text(text, edits))} ({where(reuse.carrier_place)})."
        yield Cut(sentence, spot, edits, gone)


def _given(statement: ast.stmt) -> list[ast.expr]:
    """The values that a statement writes into a tensor."""
    if isinstance(statement, ast.AugAssign):
        return [statement.value]
    name = inplace.modified(ast.unparse(statement))
    return inplace.values_written(statement, source.last_name(name.split("[", 1)[0])) if name else []


def _follows_a_call(context: CuttingContext, write: Write) -> bool:
    """Whether a write came after a backward call of the same pass, and so is no part of what that pass trains.

    A simulation does not ask what trains: where the loss is made of ``state.mul_(0.9).add_(net(x))``, a cut in that
    line would be the first fix, and nothing would reach `net`.
    """
    run, iteration = write.place.run, write.place.iteration
    return any(
        call.n < write.after_calls and (call.place.run, call.place.iteration) == (run, iteration)
        for call in context.reuse.record.calls
    )
