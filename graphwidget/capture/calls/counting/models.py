"""Models: a call that is like an earlier one is only counted, and the earlier one is its model.

A call in a training loop costs a few microseconds if only a `CountedCall` is stored. Its record and its event are built
from the model when somebody reads them.
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
    """A call that later calls are like.

    Attributes
    ----------
    call
        The template for their records. Place, numbers and thread are those of the first call.
    """

    call: BackwardCall

    @property
    def n(self) -> int:
        """Return n of the call that was read in full."""
        return self.call.n

    @property
    def distances(self) -> array[int]:
        """Return how far the sequence number of each node is below the highest one, ascending."""
        return self.call.distances


class CountedCall(NamedTuple):
    """A call that succeeded and is like its model.

    `place` is a place or a key of `Provenance.place`. `newest` is the counter of sequence numbers before the call,
    `highest` the highest sequence number in its graph. `walked`: its graph was compared node by node.
    """

    n: int
    place: Place | tuple[int, int, int]
    newest: int
    highest: int
    thread: int
    model: Model
    walked: bool


def record_of(counted: CountedCall, place: Place, event_id: int) -> tuple[BackwardCall, Event]:
    """Return the record and the event of a counted call."""
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
    """Return the event of a finished call, without a snapshot."""
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
    """The models for the most recent shapes of graphs.

    A key is the hash of a shape and the number of its nodes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._models: OrderedDict[tuple[int, int], Model] = OrderedDict()

    def __len__(self) -> int:
        return len(self._models)

    def forget(self) -> None:
        """Forget all models: what is on them, such as a hue, does not hold any more."""
        self._models.clear()

    def get(self, key: tuple[int, int]) -> Model | None:
        """Return the model for a shape, if there is one."""
        return self._models.get(key)

    def remember(self, key: tuple[int, int], call: BackwardCall, distances: array[int]) -> None:
        """Make a call the model for its shape, so that later ones need not be read in full.

        The template has no uids and no graph: they belong to this one call.
        """
        like = replace(call, executed=_NONE, reached_uids=(), graph=None, same_as=call.n, distances=distances)
        self._models[key] = Model(like)
        self._models.move_to_end(key)
        if len(self._models) > self.limit:
            self._models.popitem(last=False)
