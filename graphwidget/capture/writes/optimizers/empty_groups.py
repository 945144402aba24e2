"""Groups of an optimizer that have no parameters, where those of an earlier optimizer had some.

A filter, or another generator, that is given to two optimizers gives its values to the first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import EmptyGroup, Place

__all__ = ["EmptyGroups"]

MOST = 100  # optimizers that are known
MOST_PARAMETERS = 20  # of a group that are known


class _Seen:
    """An optimizer, how many parameters its groups had at its first step, and some of them."""

    def __init__(self, optimizer: Any, groups: Sequence[Any]) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.sizes = [len(group["params"]) for group in groups]
        self.some = [[weakref.ref(one) for one in group["params"][:MOST_PARAMETERS]] for group in groups]

    def shares(self, other: _Seen) -> bool:
        """Whether both have a parameter in common: two models may well have other groups."""
        own = {id(one) for group in self.some for ref in group if (one := ref()) is not None}
        return any(id(ref()) in own for group in other.some for ref in group)


class EmptyGroups:
    """Looks at the groups of each optimizer when it makes its first step."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._seen: dict[int, _Seen] = {}
        self._found: list[tuple[Place, int, _Seen]] = []

    def step(self, optimizer: Any, groups: Sequence[Any], where: Callable[[], Place]) -> None:
        """Note a step."""
        known = self._seen.get(id(optimizer))
        if (known is not None and known.optimizer() is optimizer) or len(self._seen) >= MOST:
            return
        new = _Seen(optimizer, groups)
        for at, size in enumerate(new.sizes):
            like = [one for one in self._seen.values() if len(one.sizes) == len(new.sizes) and one.sizes[at]]
            if size == 0 and like and new.shares(like[-1]):
                self._found.append((where(), at, like[-1]))
        if known is not None:  # it is gone, and its `id` is another's
            self._seen[-len(self._seen)] = known
        self._seen[id(optimizer)] = new

    def found(self) -> tuple[EmptyGroup, ...]:
        """The first optimizer with such a group, for each group."""
        first: dict[int, EmptyGroup] = {}
        for place, at, before in self._found:
            alive = [one for ref in before.some[at] if (one := ref()) is not None]
            paths = tuple(filter(None, map(self.watched.name, alive)))
            if alive:
                first.setdefault(at, EmptyGroup(place, at, before.sizes[at], paths))
        return tuple(first.values())
