"""Cuts at the lines that write in place: they write no graph.

After a call, a line that updates a state, such as an average of weights. Before the passes, lines that fill a storage.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.reuse.graph_paths import path_to_failure
from graphwidget.diagnosis.reuse.passes.filled_before import filled_before
from graphwidget.diagnosis.reuse.writes_between import follows_a_call, writes_between
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Place

__all__ = ["filled_detached", "written_after_call"]


def filled_detached(context: CuttingContext) -> Iterator[Cut]:
    """Fill a storage detached, before the passes that read it: ``self.logp[self.i] = logp.detach()``.

    Not where something trains through it alone: another line may read it for that, such as a generator's loss.
    """
    if context.reuse.starved:
        return
    graph, written = context.reuse.graph, dict[Spot, tuple[Place, Edits]]()
    for filled in filled_before(context.setting):
        name = source.last_name(local(filled.path).split("[", 1)[0])
        for write in filled.writes:
            spot = at(write.place)
            if spot is None:
                return
            text = context.text(spot)
            for statement in source.statements_at(text, spot[1])[-1:]:
                values = _given(statement, name)
                edits = [containers.detached_value(spot[0], text, one, context.cells.values()) for one in values]
                if edits:
                    _, before = written.get(spot, (write.place, ()))
                    every = (*before, *(edit for some in edits for edit in some))
                    written[spot] = write.place, tuple(dict.fromkeys(every))
            if spot not in written:
                return
    if written:
        # The old part is made of these tensors alone: none of it would have a graph.
        gone = frozenset(edge for edge, to in enumerate(graph.edge_to) if to in context.reuse.boundary)
        shown = (
            f"{short(text_edit.new_text(context.text(spot), some))} ({where(place)})"
            for spot, (place, some) in written.items()
        )
        every_edit = tuple(edit for _, some in written.values() for edit in some)
        yield Cut(f"Write it detached: {' and '.join(shown)}.", next(iter(written)), every_edit, gone)


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


def _given(statement: ast.stmt, name: str = "") -> list[ast.expr]:
    """The values that a statement writes into a tensor.

    Parameters
    ----------
    name
        The last name of the tensor: which value is for it, if there are several targets.
    """
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
        value, targets = statement.value, statement.targets[0].elts
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(targets) else []
        parts = ((one, given) for one, given in zip(targets, values) if isinstance(one, ast.Subscript))
        return [given for one, given in parts if source.last_name(ast.unparse(one).split("[", 1)[0]) == name]
    if isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.Assign) and any(isinstance(one, ast.Subscript) for one in statement.targets)
    ):
        return [statement.value]
    modified = inplace.modified(ast.unparse(statement))
    return inplace.values_written(statement, source.last_name(modified.split("[", 1)[0])) if modified else []
