"""Calls that are like an earlier one, and are only counted: the earlier one is their model.

A call in a training loop costs a few microseconds if nothing but a `CountedCall` is stored. Its record and its event
are made from the model when somebody reads them.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

from graphwidget.model import BackwardCall, Event, Place

__all__ = ["CountedCall", "Model", "Models", "record_of"]

_NONE: array[int] = array("q")
_GUESSED = "not walked: as many nodes were made since the last call at this line as before call {n}"


@dataclass(frozen=True)
class Model:
    """A call that others are like.

    Attributes
    ----------
    call
        The record of such a call. Place, numbers and thread are still those of the first one.
    """

    call: BackwardCall

    @property
    def n(self) -> int:
        """The call that was read in full."""
        return self.call.n

    @property
    def distances(self) -> array[int]:
        """How far the numbers of its nodes are below the highest of them, ascending."""
        return self.call.distances


class CountedCall(NamedTuple):
    """A call that went well and is like its model.

    `place` is a place, or a key of `Provenance.place`. `newest` is the counter of sequence numbers before the call,
    `highest` the highest number in its graph. `walked` says whether its graph was compared node by node.
    """

    n: int
    place: Place | tuple[int, int, int]
    newest: int
    highest: int
    thread: int
    model: Model
    walked: bool


def record_of(counted: CountedCall, place: Place, event_id: int) -> tuple[BackwardCall, Event]:
    """The record of a counted call, and its event."""
    model = counted.model.call
    call = replace(
        model,
        n=counted.n,
        place=place,
        newest_seq=counted.newest,
        highest_seq=counted.highest,
        thread=counted.thread,
        assumes=model.assumes if counted.walked else (*model.assumes, _GUESSED.format(n=model.n)),
    )
    return call, event_of(call, event_id)


def event_of(call: BackwardCall, event_id: int) -> Event:
    """The event of a call that is over, without a snapshot."""
    place = call.place
    cell = place.outer_cell if place.outer_cell is not None else place.cell
    return Event(
        event_id,
        "call",
        cell,
        call=call.n,
        iteration=place.iteration,
        label=place.source,
        ok=call.result == "ok",
    )


class Models:
    """The models of the shapes of graphs seen last.

    A key is the hash of a shape and the number of its nodes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._models: OrderedDict[tuple[int, int], Model] = OrderedDict()

    def __len__(self) -> int:
        return len(self._models)

    def get(self, key: tuple[int, int]) -> Model | None:
        """The model of this shape."""
        return self._models.get(key)

    def remember(self, key: tuple[int, int], call: BackwardCall, distances: array[int]) -> None:
        """Calls of this shape need not be read in full from now on. Uids and the graph are this call's own."""
        like = replace(call, executed=_NONE, reached_uids=(), graph=None, same_as=call.n, distances=distances)
        self._models[key] = Model(like)
        self._models.move_to_end(key)
        if len(self._models) > self.limit:
            self._models.popitem(last=False)
