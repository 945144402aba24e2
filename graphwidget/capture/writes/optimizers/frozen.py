"""Parameters that require no grad, and that steps of their optimizer go on changing: an old `.grad` is still there.

An optimizer skips a parameter whose `.grad` is None. It does not read `requires_grad`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import MovedWhileFrozen, Place

__all__ = ["Frozen"]

MAX_OPTIMIZERS = 100
FIRST, EACH = 64, 16  # the first steps of an optimizer that are looked at, and how often later
MOST_VALUES = 4096  # of a parameter that are compared
MOST_LOOKS = 8  # copies that are made for one optimizer


class _Followed:
    """An optimizer, its steps, and the copy of one frozen parameter after its last step."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.steps = self.looks = 0
        self.copied: tuple[weakref.ref[Any], torch.Tensor] | None = None
        self.moved, self.zero = 0, True
        self.still = 0  # looks in a row that met a frozen parameter without a gradient
        self.place = Place(None, None)
        self.paths: tuple[str, ...] = ()


class Frozen:
    """Compares what a parameter is after one step with what it is after the next."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._followed: dict[int, _Followed] = {}

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place]) -> None:
        """Note a step."""
        known = self._followed.get(id(optimizer))
        if known is None or known.optimizer() is not optimizer:
            if len(self._followed) >= MAX_OPTIMIZERS:
                return
            known = self._followed[id(optimizer)] = _Followed(optimizer)
        known.steps += 1
        if known.copied is None and (known.looks >= MOST_LOOKS or (known.steps > FIRST and known.steps % EACH)):
            return
        off = [one for one in parameters if not internals.requires_grad(one)]
        frozen = [one for one in off if internals.grad(one) is not None]
        known.still = known.still + 1 if len(frozen) < len(off) else 0
        self._compare(known, frozen, where)
        known.copied = None
        if frozen and known.looks < MOST_LOOKS and not internals.modes_would_see():
            known.looks += 1
            values = _values(frozen[0])
            known.copied = (weakref.ref(frozen[0]), values.clone()) if values is not None else None

    def _compare(self, known: _Followed, frozen: list[Any], where: Callable[[], Place]) -> None:
        before, copy = known.copied or (None, None)
        parameter = before() if before is not None else None
        if copy is None or all(one is not parameter for one in frozen):
            return
        values, grad = _values(parameter), _values(internals.grad(parameter))
        if values is not None and grad is not None and not torch.equal(values, copy):
            known.moved += 1
            known.place = where()
            known.zero = known.zero and not bool(grad.any())
            known.paths = tuple(filter(None, map(self.watched.name, frozen)))

    def forget(self, tensor: Any) -> None:
        """Drop the copy of a tensor."""
        for known in self._followed.values():
            if known.copied is not None and known.copied[0]() is tensor:
                known.copied = None

    def holds_some(self) -> bool:
        """Whether optimizers hold parameters that were frozen, and had no gradient, at their last steps."""
        return any(one.still > 1 for one in self._followed.values())

    def found(self) -> tuple[MovedWhileFrozen, ...]:
        """What steps have moved more than once: one look may have met a line that froze and wrote at the same time."""
        return tuple(
            MovedWhileFrozen(one.place, one.paths, one.zero) for one in self._followed.values() if one.moved > 1
        )


def _values(tensor: Any) -> torch.Tensor | None:
    """Some values of a tensor; None: it is of a kind of its own."""
    try:
        with internals.quiet(), torch.no_grad():
            if not internals.has_plain_values(tensor):
                return None
            values: torch.Tensor = tensor.detach()
            return values.reshape(-1)[:: max(1, values.numel() // MOST_VALUES)]
    except Exception:
        return None
