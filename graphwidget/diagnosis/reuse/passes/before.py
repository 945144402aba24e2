"""Which lines ran before the pass in which a call was made: an earlier one of a loop, or an earlier run of a cell."""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphwidget.diagnosis.wording import loops_of
from graphwidget.model import Place, Record

__all__ = ["in_earlier_pass"]


def in_earlier_pass(record: Record, earlier: Place, call: Place) -> Callable[[Place], bool]:
    """Whether a place was in an earlier pass of the loop around a call: in its body, and in no loop inside that.

    The head of the loop belongs to no pass: a generator there goes on while it gives the next value. Where a cell ran
    again, its run with the `earlier` call is the pass before.
    """
    if earlier.run != call.run:
        again = earlier.cell_id is not None and earlier.cell_id == call.cell_id
        return lambda place: again and place.run == earlier.run
    loop = _counted(record, call)

    def is_earlier(place: Place) -> bool:
        if call.iteration is None or place.iteration is None or place.run != call.run:
            return False
        return place.iteration < call.iteration and _counted(record, place) is loop

    return is_earlier if loop is not None else lambda place: False


def _counted(record: Record, place: Place) -> ast.For | ast.While | None:
    """The loop whose passes are counted: the innermost of the outermost function, or cell, that is in one."""
    return next((loops[-1] for loops in loops_of(record, place) if loops), None)
