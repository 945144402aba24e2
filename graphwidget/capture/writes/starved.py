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

    def __init__(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.without: list[Callable[[], Any]] = [
            weakref.ref(one) for one in parameters if internals.requires_grad(one) and internals.grad(one) is None
        ]
        self.all, self.steps = len(parameters), 1
        self.where: Place | None = None

    def step(self) -> None:
        """Forget what has a gradient now."""
        self.steps += 1
        if self.without:
            tensors = [(ref, ref()) for ref in self.without]
            self.without = [ref for ref, one in tensors if one is not None and internals.grad(one) is None]


class Starved:
    """What the optimizers that made steps have left unchanged, because it never had a gradient."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._followed: dict[int, _Followed] = {}

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None]) -> int:
        """Note a step, and return how many there were. `where` is asked only while a parameter had no gradient."""
        known = self._followed.get(id(optimizer))
        if known is not None and known.optimizer() is optimizer:
            known.step()
        elif len(self._followed) < MAX_OPTIMIZERS:
            known = self._followed[id(optimizer)] = _Followed(optimizer, parameters)
        if known is not None and known.without:
            known.where = where()
        return known.steps if known is not None else 0

    def held_by_others(self, optimizer: Any) -> set[int]:
        """Return the `id`s of the parameters of the other optimizers that have made a step."""
        others = (one for known in self._followed.values() if (one := known.optimizer()) is not None and one is not optimizer)
        groups = (group for one in others for group in getattr(one, "param_groups", ()))
        return {id(parameter) for group in groups for parameter in group["params"]}

    def found(self) -> tuple[StarvedParameters, ...]:
        """Return what has had no gradient in two steps or more, by name; what has no name is left out."""
        found = []
        for known in self._followed.values():
            if known.steps < 2 or known.where is None:
                continue
            tensors = [one for ref in known.without if (one := ref()) is not None and internals.grad(one) is None]
            at = [self.watched.index.get(id(one), -1) for one in tensors]
            paths = [self.watched.paths[i] for i, one in zip(at, tensors) if i >= 0 and self.watched.refs[i]() is one]
            if paths:
                found.append(StarvedParameters(known.where, tuple(paths), known.steps, known.all))
        return tuple(found)
