"""Modules and tensors that an attribute says to require no grad, and that optimizers change all the same."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.owners.flags import false_flag
from graphwidget.capture.owners.paths import PathStep
from graphwidget.capture.owners.reading import module_tensors
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import FalseFlag, Place

__all__ = ["FalseFlags"]

MOST = 1000  # modules and tensors that are followed


class _Flagged:
    """One of them, with weak references to its parameters."""

    def __init__(self, owner: Any, path: str, name: str) -> None:
        self.owner, self.path, self.name = weakref.ref(owner), path, name
        self.is_tensor = internals.is_tensor(owner)
        self.class_name = "" if self.is_tensor else type(owner).__name__
        own = [owner] if self.is_tensor else [one for _, one in module_tensors(owner)]
        self.parameters = [weakref.ref(one) for one in own]
        self.steps, self.place = 0, Place(None, None)
        self.order = 0  # the index of its first parameter among those of the optimizer
        self.changed: dict[str, None] = {}

    def trained(self, ids: Container[int]) -> list[Any]:
        """Its parameters among those that a step has changed, while the attribute says that they require no grad."""
        owner = self.owner()
        if owner is None or false_flag(owner) != self.name:
            return []
        return [one for ref in self.parameters if (one := ref()) is not None and id(one) in ids]


class FalseFlags:
    """Follows what searches have found, from step to step. What is told is plain data: a model may be gone by then."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._flagged: dict[int, _Flagged] = {}

    def see(self, found: Iterable[tuple[Any, PathStep, str]]) -> None:
        """Follow the modules and tensors that a search has found with such an attribute."""
        for owner, step, name in found:
            known = self._flagged.get(id(owner))
            if (known is None or known.owner() is not owner or known.name != name) and len(self._flagged) < MOST:
                self._flagged[id(owner)] = _Flagged(owner, step.path(), name)

    def step(self, parameters: Sequence[Any], where: Callable[[], Place]) -> None:
        """Note a step."""
        if not self._flagged:
            return
        with_grad = (one for one in parameters if internals.requires_grad(one) and internals.grad(one) is not None)
        ids = {id(one): at for at, one in enumerate(with_grad)}
        for flagged in self._flagged.values():
            trained = flagged.trained(ids)
            if trained:
                flagged.steps += 1
                flagged.order = min(ids[id(one)] for one in trained)
                flagged.place = where()
                if not flagged.steps & (flagged.steps - 1):  # a power of two
                    flagged.changed |= dict.fromkeys(filter(None, map(self.watched.name, trained)))

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor."""
        self._flagged = {key: one for key, one in self._flagged.items() if one.owner() is not tensor}
        for one in self._flagged.values():
            one.parameters = [ref for ref in one.parameters if ref() is not tensor]

    def found(self) -> tuple[FalseFlag, ...]:
        """Those whose parameters steps have changed."""
        return tuple(
            FalseFlag(one.place, one.path, one.name, one.class_name, tuple(one.changed), one.steps)
            for one in sorted(self._flagged.values(), key=lambda one: one.order)
            if one.steps
        )
