"""A cut at the line that updates a state in place after a call, such as an average of weights: it writes no graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.reuse.graph_paths import path_to_failure
from graphwidget.diagnosis.reuse.writes_between import follows_a_call, writes_between
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Place

__all__ = ["written_after_call"]


def written_after_call(context: CuttingContext) -> Iterator[Cut]:
    """Write the state detached: ``p.mul_(0.9).add_((q * 0.1).detach())``. The pass has no more use for its graph."""
    reuse = context.reuse
    graph, way = reuse.graph, path_to_failure(reuse.graph, reuse.later)
    places = [write.place for write in writes_between(reuse, way)]
    writes = [w for w in reuse.record.writes if at(w.place) == at(reuse.carrier_place)]
    made = {number for write in writes for number in write.made}
    if reuse.carrier_place is not None and made.issuperset(graph.seq[i] for i in reuse.boundary):
        places.insert(0, reuse.carrier_place)
    for spot, place in {at(place): place for place in reversed(places)}.items():
        there = [w for w in reuse.record.writes if at(w.place) == spot]
        if spot is not None and all(follows_a_call(reuse, w) for w in there):
            yield from _detached_at(context, spot, place)


def _detached_at(context: CuttingContext, spot: Spot, place: Place) -> Iterator[Cut]:
    reuse, text = context.reuse, context.text(spot)
    graph = reuse.graph
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
        sentence = f"Write it detached: {short(text_edit.new_text(text, edits))} ({where(place)})."
        yield Cut(sentence, spot, edits, gone)


def _given(statement: ast.stmt) -> list[ast.expr]:
    """The values that a statement writes into a tensor."""
    if isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.Assign) and any(isinstance(one, ast.Subscript) for one in statement.targets)
    ):
        return [statement.value]
    name = inplace.modified(ast.unparse(statement))
    return inplace.values_written(statement, source.last_name(name.split("[", 1)[0])) if name else []
