"""Whether a line runs between two calls: an edit at a line that the failing pass does not run has no effect.

A place has its innermost frame in a cell, the outermost one, and the pass of a loop. Frames between these, and code
without recorded lines, are not considered: for their lines the answer is no.
"""

from __future__ import annotations

import ast

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import lines_of
from graphwidget.model import Place

__all__ = ["runs_backward", "runs_between"]

CellLine = tuple[int, int]  # cell, line


def runs_between(setting: Setting, at: CellLine, since: Place | None = None) -> bool:
    """Whether the line `at` runs after `since` (the earlier call) and before the later call, as far as known."""
    a, b = since or setting.reuse.earlier.place, setting.reuse.later.place
    if a.run != b.run or a.run is None:
        return not _stands_after(setting, at, b)
    cell, line = at
    text = setting.text_of_cell(cell)
    here = _scope(text, line)
    if cell == b.outer_cell and b.outer_line is not None and here == _scope(text, b.outer_line):
        return _in_outermost_frame(text, line, a, b)
    if cell == b.cell and b.line is not None and here == _scope(text, b.line):
        return _in_calling_function(setting, text, line, a, b)
    return _made_something(setting, text, cell, here)


def _stands_after(setting: Setting, at: CellLine, later: Place) -> bool:
    """Whether a line at the top of the cell that made the later call stands behind it, and in no loop around it."""
    cell, line = at
    text = setting.text_of_cell(cell)
    if cell != later.outer_cell or later.outer_line is None or cell == setting.reuse.earlier.place.outer_cell:
        return False
    same_scope = _scope(text, line) == _scope(text, later.outer_line)
    return same_scope and line > later.outer_line and not _shared_loop(text, line, later.outer_line)


def _in_outermost_frame(text: str, line: int, a: Place, b: Place) -> bool:
    """`runs_between` for a line in the outermost frame, in which each call stands in one statement."""
    first, last = a.outer_line or 0, b.outer_line or 0
    if _next_pass(text, a, b):
        loop = source.loop_at(text, last)
        inside = loop is not None and loop.lineno <= first <= (loop.end_lineno or 0)
        return _shared_loop(text, line, last) or (not inside and first <= line <= last)
    return first != last and first <= line <= last


def _next_pass(text: str, a: Place, b: Place) -> bool:
    """Whether a loop of the outermost frame has gone on between two places."""
    loop = source.loop_at(text, b.outer_line or 0)
    if loop is None:
        return False
    direct = (b.cell, b.line) == (b.outer_cell, b.outer_line) and a.outer_line == b.outer_line
    return a.iteration != b.iteration or (direct and runs_backward(text, b.line))


def _in_calling_function(setting: Setting, text: str, line: int, a: Place, b: Place) -> bool:
    """`runs_between` for a line of the function that makes the later call."""
    outer = setting.text_of_cell(b.outer_cell)
    if _next_pass(outer, a, b) or a.outer_line != b.outer_line:
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


def _made_something(setting: Setting, text: str, cell: int, scope: ast.stmt | None) -> bool:
    """Whether a line of the same function made a node, after the earlier call, that the later one reaches."""
    graph, since = setting.reuse.graph, setting.reuse.earlier.newest_seq
    for index in setting.reuse.reached:
        place = graph.place_of(index) if graph.seq[index] >= since else None
        if any(at == cell and _scope(text, line) == scope for at, line in lines_of(place)):
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
    """Whether a loop has both lines in its body."""
    around = source.loops_around(text, other)
    return any(loop.lineno < line <= (loop.end_lineno or 0) for loop in around)


def _scope(text: str, line: int) -> ast.stmt | None:
    found = source.function_at(text, line)
    return found[1] if found is not None else None
