"""The events in a message, oldest first.

A loop of a hundred thousand iterations makes as many events, which differ in their numbers only. So the rows of one
pass are sent once, and the last of them says ``"again": [rows, times]``: the page counts id, call and iteration on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphwidget.model import BackwardCall, Drawing, Event, Write
from graphwidget.render.wire.columns import Strings
from graphwidget.render.words import function_text

__all__ = ["MAX_EVENTS", "moments"]

# Rows. The page gets the newest events; that there were older ones it sees from the ids.
MAX_EVENTS = 400
# Longest pass of a loop, in events, that is found to repeat.
_MAX_PASS = 8


def moments(drawing: Drawing, strings: Strings) -> list[dict[str, Any]]:
    """The rows of the newest events."""
    calls = {call.n: call for call in drawing.calls}
    steps = _steps(drawing.events, drawing.steps)
    found = [_Moment(event, calls.get(-1 if event.call is None else event.call), steps) for event in drawing.events]
    rows: list[dict[str, Any]] = []
    for group, times in _newest(list(_passes(found))):
        rows += [moment.row(strings) for moment in group]
        if times:
            rows[-1]["again"] = [len(group), times]
    return rows


class _Moment:
    """An event with what the page shows of its call and of the optimizers."""

    __slots__ = ("alike", "event", "freed", "order", "steps", "where")

    def __init__(self, event: Event, call: BackwardCall | None, steps: Mapping[int, tuple[str, ...]]) -> None:
        self.event = event
        # Bytes that the call freed: with those held after it they give what was held before it, which nobody measured.
        self.freed = call.freed_bytes if call is not None else 0
        # Hue and style of the call, which the message need not contain.
        self.order = call.order if call is not None else -1
        self.steps = steps.get(event.id, ())
        # The line of the call where it is in a file; the lines of cells are known by the cell and the label.
        self.where = function_text(call.place) if call is not None and call.place.file is not None else ""
        place = (self.where, event.kind, event.cell, event.label, event.ok, event.iteration is None)
        self.alike = (*place, event.held_bytes, event.nodes, event.snapshot is None, self.freed, self.order, self.steps)

    def row(self, strings: Strings) -> dict[str, Any]:
        event = self.event
        return {
            "id": event.id,
            "kind": event.kind,
            "cell": event.cell,
            "call": event.call,
            "iteration": event.iteration,
            "label": strings(event.label),
            "where": strings(self.where),
            "ok": event.ok,
            "held": event.held_bytes,
            "nodes": event.nodes,
            "freed": self.freed,
            "order": self.order,
            "steps": strings.many(self.steps),
            "kept": event.snapshot is not None,
        }

    def follows(self, before: _Moment, events: int, calls: int) -> bool:
        """Whether it is the same as `before`, one pass of so many events and calls later."""
        now, then = self.event, before.event
        return (
            self.alike == before.alike
            and now.id - then.id == events
            and (now.call is None or then.call is None or now.call - then.call == calls)
            and (now.iteration is None or then.iteration is None or now.iteration - then.iteration == 1)
        )


def _passes(moments: Sequence[_Moment]) -> Iterator[tuple[Sequence[_Moment], int]]:
    """The moments in groups, and how many more times each group happens."""
    at = 0
    while at < len(moments):
        size, times = 1, 0
        for events in range(1, _MAX_PASS + 1):
            more = _repeats(moments, at, events)
            if more * events > size * times:
                size, times = events, more
        yield moments[at : at + size], times
        at += size * (times + 1)


def _repeats(moments: Sequence[_Moment], at: int, size: int) -> int:
    """How many more times the `size` moments from `at` on happen."""
    calls = sum(moment.event.call is not None for moment in moments[at : at + size])
    end = at + size
    while end < len(moments) and moments[end].follows(moments[end - size], size, calls):
        end += 1
    return (end - at) // size - 1


def _newest(passes: list[tuple[Sequence[_Moment], int]]) -> list[tuple[Sequence[_Moment], int]]:
    """The newest passes, with no more than `MAX_EVENTS` rows."""
    rows = 0
    for first in range(len(passes), 0, -1):
        rows += len(passes[first - 1][0])
        if rows > MAX_EVENTS:
            return passes[first:]
    return passes


def _steps(events: Sequence[Event], steps: Sequence[Write]) -> dict[int, tuple[str, ...]]:
    """Id of an event -> the steps of optimizers between the event before it and this one, as written."""
    found: dict[int, tuple[str, ...]] = {}
    after = 0  # behind the last event of a call that had begun before the step
    for step in steps:
        while after < len(events) and _is_call_before(events, after, step.after_calls):
            after += 1
        at = after
        while at < len(events) and not _ends(events[at], step):
            at += 1
        if at < len(events):
            found[events[at].id] = (*found.get(events[at].id, ()), _as_written(step.by))
    return found


def _as_written(by: str) -> str:
    """``opt.step()`` of a line with other statements, too; the line itself if it has several steps or none."""
    steps = _STEP.findall(by)
    return steps[0] if len(steps) == 1 else by.strip()


_STEP = re.compile(r"[\w.\[\]]+\.step\([^()]*\)")


def _is_call_before(events: Sequence[Event], at: int, calls: int) -> bool:
    """Whether the event at this position, or the next call behind it, is a call that began before `calls` others."""
    while at < len(events):
        n = events[at].call
        if n is not None:
            return n < calls
        at += 1
    return False


def _ends(event: Event, step: Write) -> bool:
    """Whether the event is the first one after a step: the next call, or the end of the cell that made it."""
    cell = step.place.outer_cell if step.place.outer_cell is not None else step.place.cell
    return event.call is not None or event.cell == cell
