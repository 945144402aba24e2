"""Pictures of other moments than the present: an earlier one of the timeline, and the one before a recorded call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphwidget.model import BackwardCall, Drawing, Event, Snapshot
from graphwidget.render.wire import OfferedRoot, encode, offer

__all__ = ["before", "moment"]


def moment(drawing: Drawing, event: Event, roots: Sequence[OfferedRoot] | None = None) -> str:
    """The wire message of an earlier moment of `drawing`, whose event has a snapshot.

    Parameters
    ----------
    roots
        Its roots as the page may name them. Default: as `offer` numbers them.
    """
    assert event.snapshot is not None, event.id
    events = tuple(each for each in drawing.events if each.id <= event.id)
    numbers = {each.call for each in events}
    calls = tuple(call for call in drawing.calls if call.n in numbers)
    past = Drawing(event.snapshot, calls, events, (), event.id, drawing.torch)
    return encode(past, event.id, offer(past) if roots is None else roots)


def before(call: BackwardCall, graph: Snapshot, events: Sequence[Event], calls: Sequence[BackwardCall]) -> Drawing:
    """The picture just before a recorded call: it is about to run."""
    at = next((i for i, event in enumerate(events) if event.call == call.n), len(events))
    earlier = tuple(events[:at])
    numbers = {event.call for event in earlier}
    known = (*(each for each in calls if each.n in numbers), replace(call, result="running", failed_uid=None))
    return Drawing(graph, known, earlier, (), earlier[-1].id if earlier else -1)
