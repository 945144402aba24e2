"""A meeting inside one call of a function, as if the function's lines were those of a cell.

``def step(self): …; d_loss.backward(); …; g_loss.backward()``: what builds a graph anew is looked for among the lines
of the cell that ran. Where both calls, and all that they are to build on, were made by lines of one function in one
pass, these lines are looked at instead. What other functions of cells made on the way has no line here: then nothing
is said.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from graphwidget.diagnosis.reuse.reuse import Meeting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import BackwardCall, CellRun, Kind, Place, Snapshot


def in_its_function(meeting: Meeting, everything: bool) -> Meeting | None:
    """The meeting with the lines of its function as those of the cell; None where not all of it is of one pass.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed or modified saved tensors.
    """
    function = _function(meeting)
    home = [run for run in meeting.record.runs.values() if run.cell == meeting.later.place.cell][-1:]
    if function is None or not home:
        return None
    inside = _Inside(meeting, function, home[0])
    graph = meeting.graph
    for index in meeting.reached if everything else meeting.needed:
        place = graph.place_of(index)
        if graph.kind[index] != Kind.ACCUMULATE and (place is None or not inside.holds(place)):
            return None
    later, earlier = inside.call(meeting.later), inside.call(meeting.earlier)
    changed = {later.n: later, earlier.n: earlier}
    record = replace(meeting.record, calls=tuple(changed.get(call.n, call) for call in meeting.record.calls))
    return Meeting(record, later, earlier, inside.graph(graph))


def _function(meeting: Meeting) -> ast.FunctionDef | None:
    """The function that made both calls, by two of its lines and while it ran once."""
    a, b = meeting.earlier.place, meeting.later.place
    text = meeting.text_of_cell(b.cell)
    if a.line is None or b.line is None or a.line == b.line or a.cell != b.cell:
        return None
    if (a.run, a.outer_line, a.iteration) != (b.run, b.outer_line, b.iteration):
        return None
    here, there = source.function_at(text, b.line), source.function_at(text, a.line)
    return here[1] if here is not None and there is not None and here[1] is there[1] else None


class _Inside:
    """The lines of a function in the pass to which a call belongs."""

    def __init__(self, meeting: Meeting, function: ast.FunctionDef, home: CellRun) -> None:
        self._call, self._function, self._home = meeting.later.place, function, home

    def holds(self, place: Place) -> bool:
        found = source.function_at(self._home.source, place.line or 0) if place.cell == self._call.cell else None
        spot = (place.run, place.outer_line, place.iteration)
        same_pass = spot == (self._call.run, self._call.outer_line, self._call.iteration)
        return found is not None and found[1] is self._function and same_pass

    def place(self, place: Place) -> Place:
        if not self.holds(place):
            return place
        home = self._home
        outer = (place.cell, place.line, place.source)
        return Place(place.cell, place.line, place.source, *outer, cell_id=home.cell_id, run=home.run)

    def graph(self, graph: Snapshot) -> Snapshot:
        return replace(graph, places=tuple(map(self.place, graph.places)))

    def call(self, call: BackwardCall) -> BackwardCall:
        graph = self.graph(call.graph) if call.graph is not None else None
        return replace(call, place=self.place(call.place), graph=graph)
