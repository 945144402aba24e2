"""A reuse inside one call of a function, as if the function's lines were those of the cell.

``def step(self): …; d_loss.backward(); …; g_loss.backward()``: statements that build a graph are usually searched among
the lines of the cell that ran. If lines of one function made both calls and all that they need in one pass, the lines
of that function are searched instead. Nodes that other functions made in the same pass have no line here: then there is
no answer.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import BackwardCall, CellRun, Kind, Place, Snapshot

__all__ = ["inside_function"]


def inside_function(setting: Setting, everything: bool) -> Setting | None:
    """The setting with the lines of its function as those of the cell; None where not all of it is of one pass.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed or modified saved tensors.
    """
    reuse = setting.reuse
    function = _function(setting)
    home = [run for run in reuse.record.runs.values() if run.cell == reuse.later.place.cell][-1:]
    if function is None or not home:
        return None
    lines = _FunctionLines(reuse.later.place, function, home[0])
    for index in reuse.reached if everything else reuse.needed:
        place = reuse.graph.place_of(index)
        if reuse.graph.kind[index] != Kind.ACCUMULATE and (place is None or not lines.hold(place)):
            return None
    later, earlier = lines.moved_call(reuse.later), lines.moved_call(reuse.earlier)
    moved = {later.n: later, earlier.n: earlier}
    record = replace(reuse.record, calls=tuple(moved.get(call.n, call) for call in reuse.record.calls))
    return Setting(Reuse(record, later, earlier, lines.moved_graph(reuse.graph)))


def _function(setting: Setting) -> ast.FunctionDef | None:
    """The function that made both calls, by two of its lines and while it ran once."""
    a, b = setting.reuse.earlier.place, setting.reuse.later.place
    text = setting.text_of_cell(b.cell)
    if a.line is None or b.line is None or a.line == b.line or a.cell != b.cell:
        return None
    if (a.run, a.outer_line, a.iteration) != (b.run, b.outer_line, b.iteration):
        return None
    here, there = source.function_at(text, b.line), source.function_at(text, a.line)
    return here[1] if here is not None and there is not None and here[1] is there[1] else None


class _FunctionLines:
    """The lines of a function in the pass to which a call belongs.

    Parameters
    ----------
    call
        The place of the call.
    home
        The run of the cell that defines the function.
    """

    def __init__(self, call: Place, function: ast.FunctionDef, home: CellRun) -> None:
        self._call, self._function, self._home = call, function, home

    def hold(self, place: Place) -> bool:
        """Whether a place is one of these lines."""
        found = source.function_at(self._home.source, place.line or 0) if place.cell == self._call.cell else None
        now = (place.run, place.outer_line, place.iteration)
        same_pass = now == (self._call.run, self._call.outer_line, self._call.iteration)
        return found is not None and found[1] is self._function and same_pass

    def moved(self, place: Place) -> Place:
        """A place among these lines as a place of the cell itself; any other place unchanged."""
        if not self.hold(place):
            return place
        home = self._home
        outer = (place.cell, place.line, place.source)
        return Place(place.cell, place.line, place.source, *outer, cell_id=home.cell_id, run=home.run)

    def moved_graph(self, graph: Snapshot) -> Snapshot:
        return replace(graph, places=tuple(map(self.moved, graph.places)))

    def moved_call(self, call: BackwardCall) -> BackwardCall:
        graph = self.moved_graph(call.graph) if call.graph is not None else None
        return replace(call, place=self.moved(call.place), graph=graph)
