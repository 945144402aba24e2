"""Parameters that are not finite after the steps of their optimizer: the reason to run a program once more.

In a loop only a few elements are looked at, at ever fewer steps, and only where no device has to be waited for: an
optimizer that lives in a function is gone at the end. What is there at the end is looked at then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import NonFiniteParameters, Place

__all__ = ["NonFiniteSteps", "first_not_finite"]

MAX_OPTIMIZERS = 100
FIRST = 64  # steps that are all looked at, and then each of so many
MOST_PARAMETERS = 200  # about so many are looked at in the end: what is not finite spreads
MOST_VALUES = 10_000  # of each of them
FEW = 2  # values that are looked at in a loop


class _Followed:
    """One optimizer: its steps, and what was not finite when it was last looked at: the paths, and the value."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer, self.steps = weakref.ref(optimizer), 0
        self.place: Place | None = None
        self.paths: tuple[str, ...] = ()
        self.value = ""


class NonFiniteSteps:
    """Told of each step."""

    def __init__(self, watched: WatchedTensors) -> None:
        self.watched = watched
        self._followed: dict[int, _Followed] = {}

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None]) -> None:
        """Note a step. `where` is asked when a value is first seen not to be finite."""
        known = self._followed.get(id(optimizer))
        if known is None or known.optimizer() is not optimizer:
            if len(self._followed) >= MAX_OPTIMIZERS:
                return
            known = self._followed[id(optimizer)] = _Followed(optimizer)
        known.steps += 1
        if (known.steps <= FIRST or not known.steps % FIRST) and not internals.modes_would_see():
            ends = (parameters[0], parameters[-1]) if parameters else ()
            self._look(known, [one for one in ends if one.device.type == "cpu"], FEW, where)

    def _look(self, known: _Followed, parameters: Sequence[Any], most: int, where: Callable[[], Place | None]) -> None:
        found = [(one, value) for one in parameters if (value := first_not_finite(one, most))]
        if found and known.place is None:
            known.place = where()
        known.value = next((value for _, value in found if value == "nan"), found[0][1] if found else "")
        known.paths = tuple(filter(None, (self.watched.name(one) for one, _ in found)))

    def found(self) -> tuple[NonFiniteParameters, ...]:
        """What is not finite now; of an optimizer that is gone, when it was last looked at. Not for a loop."""
        for known in self._followed.values():
            optimizer = known.optimizer()
            if optimizer is not None and not internals.modes_would_see():
                groups = vars(optimizer).get("param_groups", ())
                held = [one for group in groups for one in group["params"]]
                self._look(known, held[:: 1 + len(held) // MOST_PARAMETERS], MOST_VALUES, lambda: None)
        return tuple(
            NonFiniteParameters(one.place, one.paths, one.value, one.steps)
            for one in self._followed.values()
            if one.value
        )


def first_not_finite(tensor: Any, most: int) -> str:
    """``"nan"``, ``"inf"`` or ``"-inf"``: one of at most so many values of a tensor; empty: all of these are finite."""
    try:
        with internals.quiet(), torch.no_grad():
            if not internals.has_plain_values(tensor):
                return ""
            values = tensor.detach()
            values = values.view(-1) if values.is_contiguous() else values.reshape(-1)
            values = values[:: max(1, len(values) // most)][:most]
            if bool(torch.isfinite(values).all()):
                return ""
            if bool(torch.isnan(values).any()):
                return "nan"
            return "-inf" if not values.is_complex() and bool((values == -float("inf")).any()) else "inf"
    except Exception:  # a tensor of a kind of its own
        return ""
