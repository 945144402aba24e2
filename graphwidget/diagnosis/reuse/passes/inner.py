"""The loop in which two calls of one line differ, where the recorded pass is the same: a loop in a function.

Of each line the pass of one loop is recorded: that of the outermost function, or cell, that is in one. Two calls of
``for batch`` in a function that a cell's ``for epoch`` calls have the same recorded pass.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import at, loops_of, short
from graphwidget.model import BackwardCall, Place

__all__ = ["Passes", "inner_passes"]


@dataclass(frozen=True)
class Passes:
    """Two passes of a loop: those of an earlier and a later call.

    Attributes
    ----------
    loop
        Its head, as a sentence quotes it; empty: which loop it is, is not known.
    earlier, later
        The numbers of the passes from 0; None: unknown.
    made
        Whether what the earlier call freed was made in the pass of that call.
    """

    loop: str = ""
    earlier: int | None = None
    later: int | None = None
    made: bool = False

    @property
    def of_earlier(self) -> str:
        """``, iteration 0 of `for batch```; empty if it is unknown."""
        return f", iteration {self.earlier} of {self.loop}" if self.loop and self.earlier is not None else ""

    @property
    def of_made(self) -> str:
        """The same of what the earlier call freed."""
        return self.of_earlier if self.made else ""

    @property
    def of_later(self) -> str:
        """The later pass as the subject of a sentence; empty if the loop is unknown."""
        if not self.loop:
            return ""
        known = self.later is not None
        return f"Iteration {self.later} of {self.loop}" if known else f"A later pass of {self.loop}"


def inner_passes(setting: Setting) -> Passes | None:
    """The passes of the loop in which the two calls of a reuse differ; None: what is recorded tells them apart."""
    record, a, b = setting.reuse.record, setting.reuse.earlier.place, setting.reuse.later.place
    if not setting.in_loop or a.iteration is None or not _is_alike(a, b):
        return None
    loops = loops_of(record, b)
    depth = next((i for i, own in enumerate(loops) if own), None)
    if depth is None:
        return None
    others = [(i, loop) for i, own in enumerate(loops) for loop in (own[:-1] if i == depth else own)]
    if len(others) != 1:
        return Passes() if others else None
    frame, loop = others[0]
    frames = (*b.stack, b)
    known = (frame > depth or a.iteration == 0) and _is_made_in_each(setting, frames[frame:], loop)
    numbers = [_calls_before(setting, one) if known else None for one in (setting.reuse.earlier, setting.reuse.later)]
    inside = _was_made_in(setting, frames[frame], loop)
    return Passes(short(source.head(loop)), numbers[0], numbers[1], inside)


def _is_alike(a: Place, b: Place) -> bool:
    """Whether two places are one line in the same recorded pass, also by what called it."""
    ways = [(one.run, one.iteration, *map(at, (*one.stack, one))) for one in (a, b)]
    return ways[0] == ways[1]


def _calls_before(setting: Setting, call: BackwardCall) -> int | None:
    """How many calls the same line had made in the same recorded pass; None: not all calls are remembered."""
    calls = [one for one in setting.reuse.record.calls if one.n <= call.n]
    same = [one for one in calls if one is not call and one.n != call.n and _is_alike(one.place, call.place)]
    first = calls[0] if calls else call
    from_the_start = first.n == 0 or (first.place.run is not None and first.place.run != call.place.run)
    return len(same) if from_the_start and len(calls) == call.n - first.n + 1 else None


def _is_made_in_each(setting: Setting, frames: Iterable[Place], loop: ast.For | ast.While) -> bool:
    """Whether each pass of a loop makes the call: no condition, and no way on or out, is before it."""
    for frame in frames:
        text, line = setting.text_of_cell(frame.cell), frame.line or 0
        around = source.statements_at(text, line)
        function = source.function_at(text, line)
        begin = loop if loop in around else function[1] if function is not None else None
        if begin not in around:
            return False
        inside = around[around.index(begin) + 1 :]
        plain = all(isinstance(one, (ast.With, *source.LOOPS)) or not hasattr(one, "body") for one in inside)
        ways = (ast.Continue, ast.Return, ast.Raise)
        body = begin.body if isinstance(begin, (ast.For, ast.While, ast.FunctionDef)) else []
        if not plain or any(isinstance(one, ways) and one.lineno < line for one in source.own_statements(body)):
            return False
        if inside and source.is_comprehension(inside[-1]):
            return False
    return True


def _was_made_in(setting: Setting, frame: Place, loop: ast.For | ast.While) -> bool:
    """Whether what the earlier call freed was made in its pass: in the loop, after the call before, above this one."""
    reuse, made, last = setting.reuse, setting.reuse.carrier_place, loop.end_lineno or 0
    before = max((one.newest_seq for one in reuse.record.calls if one.n < reuse.earlier.n), default=-1)
    lines = [one.line or 0 for one in (*made.stack, made) if one.cell == frame.cell] if made is not None else []
    inside = [line for line in lines if loop.lineno < line <= last]
    since = (reuse.graph.seq[i] >= before for i in reuse.boundary if reuse.graph.place_of(i) == made)
    return bool(inside) and inside[0] < (frame.line or 0) and all(since)
