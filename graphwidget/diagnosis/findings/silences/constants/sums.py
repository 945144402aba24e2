"""The sums that make up the root of a backward, and which of them have a part without a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.wording import at
from graphwidget.model import BackwardCall, Kind, Place, Record, Snapshot

__all__ = ["Lacking", "Sum", "lacking", "sums"]

_ADDING = re.compile(r"(?:Add|Sub|Rsub)Backward\d+$")
# What a loss is put together by: through these a constant part stays one.
_SCALING = re.compile(r"(?:Add|Sub|Rsub|Mul|Div|Neg|Sum|Mean|View|Squeeze|Unsqueeze|Reshape|ToCopy)Backward\d+$")
_REDUCING = re.compile(r"(?:Sum|Mean)Backward\d+$")
_COMPARING = re.compile(r"(?:Pow|Abs|Sqrt|MseLoss|L1Loss|SmoothL1Loss|HuberLoss|LinalgVectorNorm)Backward\d+$")


class Sum(NamedTuple):
    """A sum behind the root of a call.

    `lacks`: one part has no graph, or is a number. `plainly`: it is a part of the loss itself, not of a square in it.
    `alone`: what it adds are losses, and not the values that a loss is the mean or the sum of.
    """

    node: int
    lacks: bool
    plainly: bool
    alone: bool


class Lacking(NamedTuple):
    """A line at which a part of the loss had no graph in any call, and the last such call. `alone` as in `Sum`."""

    call: BackwardCall
    place: Place
    alone: bool


def sums(call: BackwardCall, graph: Snapshot) -> Iterator[Sum]:
    """The sums that make up the root."""
    stack = [(root.node, True, root.numel == 1) for root in call.roots if root.node >= 0]
    seen = set[int]()
    while stack:
        node, plainly, alone = stack.pop()
        if node in seen or graph.kind[node] != Kind.FUNCTION:
            continue
        seen.add(node)
        name, below = graph.name_of(node), list(graph.next(node))
        adds = bool(_ADDING.match(name))
        if adds:
            yield Sum(node, len(below) == 1, plainly, alone)
        if _SCALING.match(name):
            alone = alone and not _REDUCING.match(name)
            stack += [(one, plainly and (len(below) == 1 or adds), alone) for one in below]
        elif _COMPARING.match(name):
            stack += [(one, False, False) for one in below]


def lacking(record: Record) -> Iterator[Lacking]:
    """The lines that add up a loss, where each call that went through them lacked a part."""
    found, whole = dict[tuple[int, int], Lacking](), set[tuple[int, int]]()
    for call in record.calls:
        if call.graph is None or call.api != "backward" or call.result != "ok":
            continue
        here = dict[tuple[int, int], Lacking | None]()
        for one in sums(call, call.graph):
            place = call.graph.place_of(one.node)
            spot = at(place) if one.plainly else None
            if spot is None or place is None:
                continue
            if one.lacks:
                here[spot] = Lacking(call, place, one.alone)
            else:
                here.setdefault(spot, None)
        found |= {spot: one for spot, one in here.items() if one is not None}
        whole |= {spot for spot, one in here.items() if one is None}
    yield from (one for spot, one in found.items() if spot not in whole)
