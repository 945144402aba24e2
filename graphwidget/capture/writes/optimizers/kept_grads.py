"""Gradients that nobody clears: the same `.grad` at each step, and something was added in between."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors, version_of
from graphwidget.model import KeptGradients, Place

__all__ = ["KeptGrads"]

MAX_OPTIMIZERS = 100  # optimizers, and lines that do their work, that are followed
MANY = 1_000_000


class _Followed:
    """One optimizer, or line: the first of its parameters that had a gradient, and that gradient.

    `version`: of the gradient, when a step or a call had last ended. `grown`: by how much calls have raised it since
    the step. `apart`: something else has written to it before a call did, and may have cleared it.
    """

    def __init__(
        self, optimizer: Any, parameter: Any, grad: Any, path: str, calls: int, by_hand: bool, place: Place | None
    ) -> None:
        self.first = (place, calls, (version_of(grad) or 0) + 1)  # an engine's first gradient is a new tensor
        self.by_hand = by_hand
        self.optimizer, self.parameter, self.path = weakref.ref(optimizer), weakref.ref(parameter), path
        self.grad, self.version = weakref.ref(grad), version_of(grad)
        self.grown, self.apart = 0, False
        self.steps, self.cleared = 1, 0
        self.place: Place | None = None
        self.calls_then, self.surplus = calls, 0

    def step(self, where: Callable[[], Place | None], calls: Callable[[], int]) -> None:
        grad, now = self._now()
        grown, apart, before = self.grown, self.apart, self.version
        self.version, self.grown, self.apart = now, 0, False
        if grad is not self.grad() or now is None or before is None or not grown or apart:
            self.cleared += 1
            if grad is not None and grad is not self.grad():
                self.grad = weakref.ref(grad)
            return
        self.surplus = max(self.surplus, now - before)
        self.steps += 1
        if not self.steps & (self.steps - 1) or self.place is None:
            self.place, self.calls_then = where(), calls()

    def is_gone_at_once(self) -> bool:
        """Whether the parameter is gone after one step: a line may make steps for other leaves, too."""
        return self.steps == 1 and not self.cleared and self.parameter() is None

    def call(self, ended: bool) -> None:
        """A backward call begins, or has ended. It adds to a gradient at most once."""
        grad, now = self._now()
        if grad is None or grad is not self.grad() or now is None or self.version is None:
            return
        written = now - self.version
        self.apart = self.apart or written > ended
        self.grown += written if ended else 0
        self.version = now

    def _now(self) -> tuple[Any, int | None]:
        parameter = self.parameter()
        grad = internals.grad(parameter) if parameter is not None else None
        return grad, version_of(grad) if grad is not None else None


class KeptGrads:
    """One parameter of each optimizer is looked at. `calls` returns the number of backward calls that have begun."""

    def __init__(self, watched: WatchedTensors, calls: Callable[[], int]) -> None:
        self.watched, self.calls = watched, calls
        self._followed: dict[int, _Followed] = {}

    def step(
        self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None], by_hand: bool = False
    ) -> None:
        """Note a step. `where` is asked only while the gradient has never been cleared.

        `by_hand`: it is one of a line that wrote to these parameters, perhaps to one after another.
        """
        known = self._followed.get(id(optimizer))
        if known is not None and known.optimizer() is optimizer and not known.is_gone_at_once():
            parameter = known.parameter()
            if not by_hand or any(one is parameter for one in parameters):
                known.step(where, self.calls)
            return
        if known is None and len(self._followed) >= MAX_OPTIMIZERS:
            return
        for parameter in parameters:
            grad = internals.grad(parameter)
            if grad is not None:
                at = self.watched.position(parameter)
                path = self.watched.paths[at] if at is not None else ""
                place = where() if version_of(grad) and not by_hand else None
                self._followed[id(optimizer)] = _Followed(
                    optimizer, parameter, grad, path, self.calls(), by_hand, place
                )
                return

    def call(self, ended: bool) -> None:
        """Note that a backward call begins, or has ended."""
        for one in tuple(self._followed.values()):
            one.call(ended)

    def changed(self, tensor: Any, unseen: bool) -> None:
        """Note a write that the version of a gradient does not show.

        `unseen`: no version shows it, as of ``w.grad.data.zero_()``. Else another tensor on its memory may have counted
        it for itself: ``g = w.grad.data; g.zero_()``.
        """
        storage = internals.storage_of(tensor) if self._followed else None
        for one in self._followed.values() if storage is not None else ():
            grad = one.grad()
            if grad is not None and internals.storage_of(grad) == storage:
                if unseen or version_of(grad) != version_of(tensor):
                    one.cleared += MANY

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor: its optimizer is followed anew."""
        for key, one in list(self._followed.items()):
            if one.parameter() is tensor or one.grad() is tensor:
                del self._followed[key]

    def found(self) -> tuple[KeptGradients, ...]:
        """Return the parameters by whose gradients several steps went that a step before had used already.

        One such step is enough where nothing has ever cleared them. Also those that the first step found with several
        gradients in them.
        """
        found = []
        for one in self._followed.values():
            place, calls, added = one.first
            if one.place is not None and one.steps > (2 if one.cleared else 1):
                seen = (one.path, one.steps, one.calls_then, one.surplus, one.by_hand, one.cleared, added)
                found.append(KeptGradients(one.place, *seen))
            elif place is not None:
                found.append(KeptGradients(place, one.path, 1, calls, added=added))
        return tuple(found)
