"""Whether a line runs between two calls: an edit that the failing pass never comes by helps nobody.

A place knows its innermost frame in a cell, the outermost one, and the pass of a loop. What lies between these frames,
or in code without recorded lines, it does not know: there the answer is no.
"""

from __future__ import annotations

import ast

from graphwidget.diagnosis.reuse.reuse import Meeting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import Place

Spot = tuple[int, int]  # cell, line


def comes_by(meeting: Meeting, spot: Spot, since: Place | None = None) -> bool:
    """Whether the line at `spot` runs after `since` (the earlier call) and before the later call, as far as known."""
    a, b = since or meeting.earlier.place, meeting.later.place
    if a.run != b.run or a.run is None:
        return not _is_behind(meeting, spot, b)
    text = meeting.text_of_cell(spot[0])
    here = _scope(text, spot[1])
    if spot[0] == b.outer_cell and b.outer_line is not None and here == _scope(text, b.outer_line):
        return _outside(text, spot[1], a, b)
    if spot[0] == b.cell and b.line is not None and here == _scope(text, b.line):
        return _inside(meeting, text, spot[1], a, b)
    return _made_something(meeting, text, spot, here)


def _is_behind(meeting: Meeting, spot: Spot, later: Place) -> bool:
    """Whether a line at the top of the cell that made the later call stands behind it, and in no loop around it."""
    text = meeting.text_of_cell(spot[0])
    if spot[0] != later.outer_cell or later.outer_line is None or spot[0] == meeting.earlier.place.outer_cell:
        return False
    alike = _scope(text, spot[1]) == _scope(text, later.outer_line)
    return alike and spot[1] > later.outer_line and not _shared_loop(text, spot[1], later.outer_line)


def _outside(text: str, line: int, a: Place, b: Place) -> bool:
    """The same for a line in the outermost frame, in which each call stands in one statement."""
    first, last = a.outer_line or 0, b.outer_line or 0
    if _next_pass_outside(text, a, b):
        return _shared_loop(text, line, last)
    return first != last and first <= line <= last


def _next_pass_outside(text: str, a: Place, b: Place) -> bool:
    """Whether a loop of the outermost frame has gone on between two places."""
    loop = source.loop_at(text, b.outer_line or 0)
    if loop is None:
        return False
    direct = (b.cell, b.line) == (b.outer_cell, b.outer_line) and a.outer_line == b.outer_line
    return a.iteration != b.iteration or (direct and runs_backward(text, b.line))


def _inside(meeting: Meeting, text: str, line: int, a: Place, b: Place) -> bool:
    """The same for a line of the function that makes the later call."""
    outer = meeting.text_of_cell(b.outer_cell)
    if _next_pass_outside(outer, a, b) or a.outer_line != b.outer_line:
        return True  # the function has been called again, as a whole
    last = b.line or 0
    looped = _shared_loop(text, line, last)
    if (a.cell, _scope(text, a.line or 0)) != (b.cell, _scope(text, last)):
        return line <= last or looped
    if a.line != b.line and (a.line or 0) <= line <= last:
        return True
    # What calls backward itself has run twice; for another line, a loop of its function must have gone on.
    again = a.line == b.line and runs_backward(text, b.line)
    if source.loop_at(text, last) is None:
        return again
    return looped and (again or a.iteration != b.iteration)


def _made_something(meeting: Meeting, text: str, spot: Spot, scope: object) -> bool:
    """Whether a line of the same function made a node, after the earlier call, that the later one reaches."""
    graph = meeting.graph
    for index in meeting.reached:
        place = graph.place_of(index) if graph.seq[index] >= meeting.earlier.newest_seq else None
        if place is not None and place.cell == spot[0] and _scope(text, place.line or 0) == scope:
            return True
    return False


def runs_backward(text: str, line: int | None) -> bool:
    """Whether the statement at a line calls backward itself: ``loss.backward()``, ``self.manual_backward(loss)``."""
    if line is None:
        return False
    found = [*source.statements_at(text, line)[-1:], *source.beginning_at(text, line)]
    called = (name for s in found if not hasattr(s, "body") for name in source.calls_in(s))
    return any(name.endswith("backward") or name.rsplit(".", 1)[-1] == "grad" for name in called)


def _shared_loop(text: str, line: int, other: int) -> bool:
    """Whether some loop has both lines in its body."""
    around = source.loops_around(text, other)
    return any(loop.lineno < line <= (loop.end_lineno or 0) for loop in around)


def _scope(text: str, line: int) -> ast.stmt | None:
    found = source.function_at(text, line)
    return found[1] if found is not None else None
