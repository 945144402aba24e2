"""Gradients that are gone before a step has used them: another call began with an empty `.grad`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors, version_of
from graphwidget.model import LostGradients, Place

__all__ = ["LostGrads"]

MAX_OPTIMIZERS = 100  # optimizers that are followed
ENOUGH = 2  # steps that show it


class _Followed:
    """One optimizer: the first of its parameters that had a gradient, and what calls gave it since the last step.

    `seen`, `version`: its gradient when a call last began or ended. `given`: the last call that added to it while no
    step has used that, and `often`: how many did. `lost`: the calls whose gradient was gone when the next call began.
    `whole`: the steps that lost nothing, or went by something else.
    """

    def __init__(self, optimizer: Any, parameter: Any, path: str) -> None:
        self.optimizer, self.parameter, self.path = weakref.ref(optimizer), weakref.ref(parameter), path
        self.seen: weakref.ref[Any] | None = None
        self.version: int | None = None
        self.given, self.often = -1, 0
        self.lost: list[int] = []
        self.steps = self.whole = 0
        self.found: LostGradients | None = None

    def begin(self) -> None:
        """A call begins."""
        if self._look() is None and self.often:
            self.lost.append(self.given)
            self.often = 0

    def end(self, call: int) -> None:
        """A call has ended."""
        before = self.seen() if self.seen is not None else None
        version = self.version
        grad = self._look()
        if grad is not None and (grad is not before or self.version != version):
            self.given, self.often = call, self.often + 1

    def step_of_another(self) -> None:
        """Another optimizer has made a step: what the calls before it gave to this one came along with that."""
        self.often, self.lost = 0, []

    def step(self, where: Callable[[], Place | None]) -> None:
        """Note a step: one that goes by one call is looked at, if the gradient of a call before that is gone."""
        before = self.seen() if self.seen is not None else None
        version, lost, often = self.version, self.lost, self.often
        grad = self._look()
        self.lost, self.often = [], 0
        written = (self.version or 0) - (version or 0)
        if not lost or often != 1 or grad is None or grad is not before or written > 1:  # once: by a clip
            self.whole += 1
            return
        self.steps += 1
        if self.steps == ENOUGH and (place := where()) is not None:
            self.found = LostGradients(place, self.path, lost[-1], self.given, len(lost))

    def _look(self) -> Any:
        parameter = self.parameter()
        grad = internals.grad(parameter) if parameter is not None else None
        self.seen = weakref.ref(grad) if grad is not None else None
        self.version = version_of(grad) if grad is not None else None
        return grad


class LostGrads:
    """One parameter of each optimizer is looked at. `calls` returns the number of backward calls that have begun."""

    def __init__(self, watched: WatchedTensors, calls: Callable[[], int]) -> None:
        self.watched, self.calls = watched, calls
        self._followed: dict[int, _Followed] = {}

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None]) -> None:
        """Note a step."""
        for key, one in self._followed.items():
            if key != id(optimizer):
                one.step_of_another()
        known = self._followed.get(id(optimizer))
        if known is not None and known.optimizer() is optimizer:
            known.step(where)
            return
        first = next((one for one in parameters if internals.grad(one) is not None), None)
        if first is not None and len(self._followed) < MAX_OPTIMIZERS:
            at = self.watched.position(first)
            path = self.watched.paths[at] if at is not None else ""
            self._followed[id(optimizer)] = _Followed(optimizer, first, path)

    def call(self, ended: bool) -> None:
        """Note that a backward call begins, or has ended."""
        for one in tuple(self._followed.values()):
            if ended:
                one.end(self.calls() - 1)
            else:
                one.begin()

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor: its optimizer is followed anew."""
        for key, one in list(self._followed.items()):
            if one.parameter() is tensor or (one.seen is not None and one.seen() is tensor):
                del self._followed[key]

    def found(self) -> tuple[LostGradients, ...]:
        """Return what each of several steps has lost, of optimizers all of whose steps but the first lost something."""
        return tuple(one.found for one in self._followed.values() if one.found is not None and not one.whole)
