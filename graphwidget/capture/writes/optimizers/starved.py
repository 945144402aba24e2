"""Parameters that optimizers hold and that had no gradient in any of their steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import Place, StarvedParameters

__all__ = ["Starved"]

MAX_OPTIMIZERS = 100  # optimizers that are followed


class _Followed:
    """One optimizer: weak references to what has had no gradient so far, and the number of its steps."""

    def __init__(self, number: int, optimizer: Any, parameters: Sequence[Any]) -> None:
        self.number, self.optimizer = number, weakref.ref(optimizer)
        self.without: list[Callable[[], Any]] = []
        self.positions: dict[int, int] = {}  # id of a reference -> which parameter of the optimizer it is to
        for at, one in enumerate(parameters):
            if internals.requires_grad(one) and internals.grad(one) is None:
                self.without.append(ref := weakref.ref(one))
                self.positions[id(ref)] = at
        self.all, self.steps = len(parameters), 1
        self.where: Place | None = None
        self.named: list[tuple[Callable[[], Any], str]] = []  # those that had a name at a step, and that name

    def step(self) -> None:
        """Forget what has a gradient now."""
        self.steps += 1
        if self.without:
            tensors = [(ref, ref()) for ref in self.without]
            self.without = [ref for ref, one in tensors if one is not None and internals.grad(one) is None]

    def name(self, watched: WatchedTensors) -> None:
        """Remember the names that they have now: the program's model may be gone when somebody asks."""
        tensors = [(ref, one) for ref in self.without if (one := ref()) is not None]
        found = [(ref, at) for ref, one in tensors if (at := watched.position(one)) is not None]
        self.named = [(ref, watched.paths[at]) for ref, at in found]


class Starved:
    """What the optimizers that made steps have left unchanged, because it never had a gradient."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._followed: dict[int, _Followed] = {}
        self._count = 0  # of optimizers

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None]) -> None:
        """Note a step. `where` is asked only while a parameter of it has had no gradient."""
        known = self._followed.get(id(optimizer))
        if known is not None and known.optimizer() is optimizer:
            known.step()
        elif len(self._followed) < MAX_OPTIMIZERS:
            known = self._followed[id(optimizer)] = _Followed(self._count, optimizer, parameters)
            self._count += 1
        if known is not None and known.without:
            known.where = where()
            if not known.steps & (known.steps - 1):  # a power of two
                known.name(self.watched)

    def number_of(self, optimizer: Any) -> int:
        """Which optimizer it is, in the order of their first steps; -1: unknown."""
        known = self._followed.get(id(optimizer))
        return known.number if known is not None and known.optimizer() is optimizer else -1

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor: nothing is reported of it."""
        for known in self._followed.values():
            known.without = [ref for ref in known.without if ref() is not tensor]
            known.named = [(ref, path) for ref, path in known.named if ref() is not tensor]

    def found(self) -> tuple[StarvedParameters, ...]:
        """Return what has had no gradient in two steps or more, by name; what has no name is left out."""
        found = []
        for known in self._followed.values():
            if known.steps < 2 or known.where is None:
                continue
            if known.optimizer() is not None:
                known.name(self.watched)
            left = set(map(id, known.without))
            named = [(ref, path) for ref, path in known.named if id(ref) in left and _has_none(ref())]
            if named:
                paths = tuple(path for _, path in named)
                positions = tuple((known.number, known.positions[id(ref)]) for ref, _ in named)
                found.append(StarvedParameters(known.where, paths, known.steps, known.all, positions))
        return tuple(found)


def _has_none(parameter: Any) -> bool:
    """Whether a parameter has no gradient, or is gone."""
    return parameter is None or internals.grad(parameter) is None
