"""Writes to values that no variable held before their line: no version of them was compared, the graph shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.in_place.temporaries import calls_on_temporaries, operation, writes_to_new_names
from graphwidget.diagnosis.wording import at, lines_of
from graphwidget.model import Record, Snapshot, Write

__all__ = ["writes_to_temporary"]

MOST = 4  # writes to one value


def writes_to_temporary(record: Record, graph: Snapshot, index: int, key: int) -> tuple[Write, ...]:
    """The writes to a node's result, with storage `key`, that its value had no name for before their line, in order.

    Each is a node that was made of the result, on a line that has an in-place call of that operation on a value
    without a name, or a write to a name that the same line has given a value: ``y = x.exp(); y += 1``.
    """
    cells = Cells.of(record)
    # A value without a name lives as long as the statement that made it, here or in a caller.
    around = (_written_at(cells, spot) for spot in lines_of(graph.place_of(index)))
    return tuple(_writes(cells, graph, index, key)) if any(around) else ()


def _written_at(cells: Cells, spot: Spot) -> list[tuple[ast.stmt, str]]:
    """The statements of a line that write to such values, and the operations of their writes."""
    statement = cells.statement(spot)
    found = [(statement, operation(call)) for call in calls_on_temporaries(statement)] if statement is not None else []
    return [*found, *writes_to_new_names(source.beginning_at(cells.text(spot[0]), spot[1]))]


def _writes(cells: Cells, graph: Snapshot, index: int, key: int) -> Iterator[Write]:
    for _ in range(MOST):
        above = [node for node in range(len(graph)) if list(graph.next(node))[:1] == [index]]
        found = next((write for node in above if (write := _write(cells, graph, node, key)) is not None), None)
        if found is None:
            return
        yield found
        index = next(node for node in above if graph.seq[node] == found.number)


def _write(cells: Cells, graph: Snapshot, node: int, key: int) -> Write | None:
    """The write that made a node; None: its line has no such call."""
    place = graph.place_of(node)
    spot = at(place)
    name = graph.name_of(node).lower()
    written = _written_at(cells, spot) if spot is not None else []
    statement = next((one for one, operation in written if name.startswith(operation)), None)
    if place is None or statement is None:
        return None
    text = place.source
    if source.statement_of(text) is None:  # one of several lines, or of several on one line
        text = ast.unparse(statement)
    return Write(place, text, (), (key,), 0, made=(graph.seq[node],), number=graph.seq[node])
