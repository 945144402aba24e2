"""Calls in a tight loop that are only counted, in a few microseconds each.

When the calls of a line have been looked at often enough, the next one is compared with them by what can be seen
without a walk: who calls, with which arguments, of what kind the root is, and how far the counter of sequence
numbers has moved. What a call is then worth is one `Row`; the record and the event are made when somebody reads.
"""

from __future__ import annotations

from array import array
from types import FrameType
from typing import Any, NamedTuple

import torch

from graphwidget import torch_internals as ti
from graphwidget.model import BackwardCall, Event, Place

__all__ = ["Line", "Model", "Row", "Tally", "record_of"]

MAX_DEPTH = 64  # frames between the engine and the cell


class Model:
    """A call that others are like. `distances`: of its nodes' numbers from the highest, ascending."""

    __slots__ = ("assumes", "distances", "fields", "n")

    def __init__(self, n: int, fields: dict[str, Any], distances: array[int], assumes: tuple[str, ...]) -> None:
        self.n, self.distances = n, distances
        self.fields = fields  # of its record, as they are in that of a call like it
        self.assumes = assumes  # of a call like it that was not walked


class Row(NamedTuple):
    """A counted call."""

    n: int
    spot: tuple[int, int, int]
    newest: int
    highest: int  # number of a node of its graph
    thread: int
    model: Model
    event: int  # id of its event


def record_of(row: Row, place: Place) -> tuple[BackwardCall, Event]:
    """The call and its event."""
    call: BackwardCall = object.__new__(BackwardCall)  # `dataclasses.replace` takes ten times as long
    fields = call.__dict__
    fields.update(row.model.fields)
    fields.update(n=row.n, place=place, newest_seq=row.newest, highest_seq=row.highest, thread=row.thread)
    fields["assumes"] = row.model.assumes
    cell = place.outer_cell if place.outer_cell is not None else place.cell
    event = Event(
        row.event,
        "call",
        cell,
        call=row.n,
        iteration=place.iteration,
        label=place.source,
    )
    return call, event


def frames_between(frame: FrameType | None, cell: FrameType) -> int | None:
    """How many frames `cell` is above `frame`."""
    for depth in range(MAX_DEPTH):
        if frame is cell:
            return depth
        if frame is None:
            return None
        frame = frame.f_back
    return None


class Tally:
    """How many calls a line has made in this cell, and where the counter of sequence numbers stood at the last."""

    __slots__ = ("newest", "seen")

    def __init__(self) -> None:
        self.seen, self.newest = 0, -1


class Line:
    """What the calls of one line have in common."""

    __slots__ = ("behind", "create", "depth", "inner", "keep", "kwargs", "model", "moved", "outer", "reader", "root",
                 "tally", "thread")  # fmt: skip

    def __init__(
        self,
        spot: tuple[int, int, int],
        thread: int,
        depth: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        root: type,
        moved: int,
        behind: int,
        model: Model,
        tally: Tally,
    ) -> None:
        self.inner, self.outer, _ = spot
        self.tally = tally
        self.thread, self.depth, self.model = thread, depth, model
        self.keep, self.create, self.kwargs = args[1], args[2], kwargs
        self.root, self.reader = root, ti.node_readers(root)[1]
        self.moved, self.behind = moved, behind  # of the counter, since the last call here and since the root was made

    @staticmethod
    def possible(outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether calls with such arguments can be compared at a glance."""
        if len(args) != 4 or type(args[3]) is not tuple or args[3]:
            return False
        flags = all(type(flag) is bool for flag in (*args[1:3], *kwargs.values()))
        return flags and len(outputs) == 1 and type(outputs[0]) is torch.Tensor

    def fits(self, top: Any, frame: FrameType, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call comes from here and is made in the same way. `frame`: the one that is `depth` above."""
        return (
            id(frame) == top.frame_id
            and frame.f_lineno == top.line
            and (top.outer if top.outer >= 0 else self.inner) == self.outer
            and len(outputs) == 1
            and type(outputs[0]) is torch.Tensor
            and len(args) == 4
            and args[1] is self.keep
            and args[2] is self.create
            and type(args[3]) is tuple
            and not args[3]
            and kwargs == self.kwargs
        )

    def root_of(self, output: Any, now: int) -> int:
        """Number of the root, -1 if it or the way to it is of another kind than before."""
        if now - self.tally.newest != self.moved:
            return -1
        node = ti.grad_fn(output)
        if type(node) is not self.root:
            return -1
        highest = self.reader(node)
        return highest if now - highest == self.behind else -1
