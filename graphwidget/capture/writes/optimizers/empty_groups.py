"""Groups of an optimizer that have no parameters, where those of an earlier optimizer had some.

A filter, or another generator, that is given to two optimizers gives its values to the first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import EmptyGroup, Place

__all__ = ["EmptyGroups"]

MOST = 100  # optimizers that are known
MOST_PARAMETERS = 20  # of a group that are known


class _Seen:
    """An optimizer, how many parameters its groups had at its first step, and the ids of some of them.

    No references, not even weak ones: a tensor that has some cannot be swapped by ``module.to``.
    """

    def __init__(self, optimizer: Any, groups: Sequence[Any]) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.sizes = [len(group["params"]) for group in groups]
        self.some = [list(map(id, group["params"][:MOST_PARAMETERS])) for group in groups]

    def shares(self, other: _Seen) -> bool:
        """Whether both have a parameter in common: two models may well have other groups."""
        own = {one for group in self.some for one in group}
        return any(one in own for group in other.some for one in group)


class EmptyGroups:
    """Looks at the groups of each optimizer when it makes its first step."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._seen: list[_Seen] = []
        self._known: dict[int, weakref.ref[Any]] = {}
        self._found: dict[int, EmptyGroup] = {}

    def step(self, optimizer: Any, groups: Sequence[Any], where: Callable[[], Place]) -> None:
        """Note a step."""
        known = self._known.get(id(optimizer))
        if (known is not None and known() is optimizer) or len(self._seen) >= MOST:
            return
        new = _Seen(optimizer, groups)
        for at, size in enumerate(new.sizes):
            like = [one for one in self._seen if len(one.sizes) == len(new.sizes) and one.sizes[at]]
            paths = self._alive(like[-1].some[at]) if size == 0 and like and new.shares(like[-1]) else ()
            if paths and at not in self._found:
                self._found[at] = EmptyGroup(where(), at, like[-1].sizes[at], paths)
        self._known[id(optimizer)] = new.optimizer
        self._seen.append(new)

    def _alive(self, ids: Collection[int]) -> tuple[str, ...]:
        """The names of those parameters that are still there."""
        pairs = zip(self.watched.refs, self.watched.paths)
        return tuple(path for ref, path in pairs if (one := ref()) is not None and id(one) in ids)

    def found(self) -> tuple[EmptyGroup, ...]:
        """The first such group of each position."""
        return tuple(self._found.values())
