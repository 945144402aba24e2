"""Whether a call would work without some writes to saved tensors."""

from __future__ import annotations

from collections.abc import Callable

from graphwidget.diagnosis.fixes.second_backward.case import simulate
from graphwidget.diagnosis.reuse import blame
from graphwidget.diagnosis.wording import short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Place, Record, Snapshot, Write

__all__ = ["another_write", "works_without"]


def works_without(
    record: Record,
    call: BackwardCall,
    graph: Snapshot,
    left: Callable[[tuple[Write, ...], Place | None], list[Write]],
) -> tuple[bool, tuple[str | None, Write] | None]:
    """Whether a call works if only some of the writes to saved tensors are `left`.

    If it does not, also the first obstacle: a tensor and the write to it.
    """
    reached = reachable(graph, (root.node for root in call.roots))
    tried = blame.without(record, graph, call.n, lambda found, made: not left(found, made), reached)
    forecast = simulate(tried, call)
    if forecast.ok is not False or forecast.reason != "inplace" or forecast.fails_at is None:
        return forecast.ok is True, None
    index = forecast.fails_at.index
    tensor, found = blame.culprit(record, tried, index, call.n)
    return False, next(((tensor, write) for write in left(found, tried.place_of(index))), None)


def another_write(other: tuple[str | None, Write] | None) -> str:
    """What a fix says about another write that remains."""
    if not other:
        return ""
    return f" This is not enough: {short(other[1].by)} ({where(other[1].place)}) still modifies a saved tensor."
