"""One backward call between its two ends, and the record that is made of it."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.counted import Model
from graphwidget.capture.calls.outcome import HOLDING, bytes_behind, failed_node, only_one
from graphwidget.capture.graph.freed import Freed
from graphwidget.model import BackwardCall, Forecast, Kind, Place, Snapshot, torch_messages

__all__ = ["Pending", "record_of_pending"]


@dataclass(slots=True)
class Pending:
    """A call between its two ends: plain data."""

    n: int
    spot: tuple[int, int, int] | None
    place: Place
    api: Any
    keep: bool
    create: bool
    allow_unused: bool
    has_inputs: bool
    newest: int
    alone: bool = True
    shape: int = 0
    size: int = -1  # nodes below the roots, if they were walked
    model: Model | None = None  # the call of the same shape, for one that is only counted
    highest: int = -1
    distances: array[int] = field(default_factory=lambda: array("q"))
    glance: tuple[int, Any, int] | None = None
    walked: bool = True
    since: int = 0  # the lowest number of the nodes below the roots; 0: numbers tell nothing
    like: Model | None = None  # the same, for one that is looked at to see whether it still is like that call
    graph: Snapshot | None = None
    forecast: Forecast | None = None
    held: dict[str, int] | None = None
    inside: Any = field(default_factory=ti.nested)  # entered while the engine runs


def record_of_pending(
    pending: Pending,
    before: Snapshot,
    forecast: Forecast | None,
    error: BaseException | None,
    text: str | None,
    agreed: bool,
    executed: Sequence[int],
    freed: Freed,
) -> BackwardCall:
    """The record of a call that is over.

    Parameters
    ----------
    before
        The graph before it.
    text
        The error's message.
    agreed
        Whether it came out as the forecast said.
    executed
        Indices of the nodes that ran.
    freed
        Which call freed a node.
    """
    failed = failed_node(before, forecast if agreed else None, text)
    freed_by = None
    if text is not None and torch_messages.says(text, torch_messages.FREED):
        freed_by = freed.of(before.uid[failed], before.seq[failed]) if failed is not None else only_one(before, freed)
    slots = [s for i in executed for s in before.slots_of(i) if before.slot_state[s] in HOLDING]
    leaves = [i for i in executed if before.kind[i] == Kind.ACCUMULATE]
    slot = forecast.fails_slot if agreed and forecast is not None and error is not None else None
    return BackwardCall(
        n=pending.n,
        place=pending.place,
        api=pending.api,
        retain_graph=pending.keep,
        create_graph=pending.create,
        roots=before.roots,
        root_names=tuple(before.name_of(r.node) if r.node >= 0 else "" for r in before.roots),
        inputs=before.inputs if pending.has_inputs else None,
        result="ok" if error is None else "raised",
        error_type=None if error is None else type(error).__name__,
        error=text,
        forecast=pending.forecast.word if pending.forecast is not None else "unknown",
        assumes=pending.forecast.assumes if pending.forecast is not None else (),
        failed_node=before.name_of(failed) if failed is not None else None,
        failed_uid=before.uid[failed] if failed is not None else None,
        failed_slot=slot.name if slot is not None else None,
        failed_place=before.place_of(failed) if failed is not None else None,
        freed_by=freed_by,
        executed=array("q", (before.uid[i] for i in executed)),
        executed_count=len(executed),
        freed_slots=0 if pending.keep else len(slots),
        freed_bytes=0 if pending.keep else bytes_behind(before, slots),
        reached=tuple(leaf.paths[0] for i in leaves if (leaf := before.leaves.get(i)) is not None and leaf.paths),
        reached_uids=tuple(before.uid[i] for i in leaves),
        newest_seq=pending.newest,
        thread=threading.get_ident(),
        graph=before,
    )
