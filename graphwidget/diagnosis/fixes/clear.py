"""Whether a container may be emptied after a call: surely one that has `clear`, and filled again before its next read.

A simulation on the graph does not tell: a loop over an emptied list ends early, without an error. This reads it from
the text, and says no in doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.reuse.reuse import Meeting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import Edit

_EMPTY = ("[]", "list()", "{}", "dict()")
_FILLING = ("append", "appendleft", "extend", "insert")
_DEPTH = 4  # functions that call functions


def refilled(meeting: Meeting, buffer: str, plan: Edit = ()) -> bool:
    """Whether `buffer` can be emptied after the earlier call, or before the lines that a plan writes.

    The code that runs again is the loop around the call, or the cell that was run again. It has to put something in
    before it reads the container; a loop that goes over it, or that runs as long as it has something, would end early.
    """
    texts = [run.source for run in meeting.record.runs.values()]
    if not _begins_empty(texts, buffer):
        return False
    reading = _Reading(texts, buffer.rsplit(".", 1)[-1])
    if plan:
        new = source.parse("\n".join(line[2:] for line in plan if line.startswith("+ ")))
        return new is not None and reading.first(new.body) == "fill"
    loops = list(_loops(meeting))
    if any(reading.mentions(_head(loop)) for loop in loops):
        return False
    again = loops[-1].body if loops else _cell_again(meeting)
    return reading.first(again) == "fill"


def _begins_empty(texts: Collection[str], buffer: str) -> bool:
    """Whether all that the cells assign to such a name is an empty list, dict or queue."""
    last = buffer.rsplit(".", 1)[-1]
    values = [getattr(s, "value", None) for text in texts for s, _ in source.assigned_as(text, last)]
    shown = [ast.unparse(value) for value in values if value is not None]
    return bool(shown) and all(one in _EMPTY or one.split("(", 1)[0].endswith("deque") for one in shown)


def _loops(meeting: Meeting) -> Iterator[ast.For | ast.While]:
    """The loops around both calls: the innermost one of the function that makes them, the innermost one of the cell."""
    if not meeting.in_loop:
        return
    place, run = meeting.later.place, meeting.run_of(meeting.later.place)
    spots = [(meeting.text_of_cell(place.cell), place.line), (run.source if run else "", place.outer_line)]
    for cell, line in dict.fromkeys(spots):
        around = source.statements_at(cell, line)[:-1] if line is not None else []
        yield from (s for s in around if isinstance(s, (ast.For, ast.While)))


def _head(loop: ast.For | ast.While) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.test


def _cell_again(meeting: Meeting) -> list[ast.stmt]:
    run = meeting.run_of(meeting.later.place)
    tree = source.parse(run.source) if run is not None and meeting.same_cell_again else None
    return tree.body if tree is not None else []


class _Reading:
    """The order in which statements fill and read a container, through the functions that they call."""

    def __init__(self, texts: Collection[str], name: str) -> None:
        self.texts, self.name = texts, name

    def mentions(self, node: ast.AST) -> bool:
        """Whether a node names the container, as a variable or an attribute."""
        return any(self.name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in ast.walk(node))

    def first(self, body: Collection[ast.stmt]) -> str | None:
        """What comes first: ``fill`` or ``read``; None where neither is seen."""
        return next(self.events(body), None)

    def events(self, body: Collection[ast.stmt], depth: int = 0) -> Iterator[str]:
        for statement in body:
            for part in source.steps_of(statement):
                yield from self._of_step(part, depth)

    def _of_step(self, step: ast.stmt, depth: int) -> Iterator[str]:
        for called in source.calls_in(step) if depth < _DEPTH else ():
            for function in self._functions(called.rsplit(".", 1)[-1]):
                yield from self.events(function.body, depth + 1)
        if self.mentions(step):
            yield "fill" if self._fills(step) else "read"

    def _functions(self, name: str) -> list[ast.FunctionDef]:
        return [function for text in self.texts for function in source.functions_of(text, name)]

    def _fills(self, step: ast.stmt) -> bool:
        """Whether all that a step does to the container is to put something in."""
        named = [n for n in ast.walk(step) if self.name in (getattr(n, "id", None), getattr(n, "attr", None))]
        calls = [n.func for n in ast.walk(step) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        filled = [f.value for f in calls if f.attr in _FILLING]
        if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add):
            filled.append(step.target)
        return len(named) == 1 and named[0] in filled
