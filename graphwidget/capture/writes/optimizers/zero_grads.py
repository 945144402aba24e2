"""Whether optimizers made steps by gradients that were exactly zero: the reason to run a program once more.

In the loop only the second step of each optimizer is looked at, and there only what needs no wait for a device. At the
first step a layer that begins with zeros rightly keeps the gradients of all others at zero.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from graphwidget import torch_internals as internals

__all__ = ["ZeroGrads", "is_zero"]

MAX_OPTIMIZERS = 100
_SAMPLE = 8  # elements that are looked at before all are


class ZeroGrads:
    """Counts steps, and looks at the gradients of one of them."""

    def __init__(self) -> None:
        self._followed: dict[int, tuple[weakref.ref[Any], int]] = {}  # by `id`: an optimizer, and its steps
        self._seen = False

    def step(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        """Note a step."""
        ref, steps = self._followed.get(id(optimizer), (None, 0))
        if ref is None or ref() is not optimizer:
            if len(self._followed) >= MAX_OPTIMIZERS:
                return
            ref, steps = weakref.ref(optimizer), 0
        if steps >= 2:
            return
        self._followed[id(optimizer)] = ref, steps + 1
        if steps == 1 and not self._seen and not internals.modes_would_see():
            self._seen = _any_zero(parameters, elsewhere=False)

    def seen(self) -> bool:
        """Whether a parameter had a gradient of zeros then, or has one now. Only for the end of a program."""
        for ref, steps in self._followed.values():
            optimizer = ref() if steps > 1 and not self._seen else None
            groups = vars(optimizer).get("param_groups", ()) if optimizer is not None else ()
            self._seen = self._seen or _any_zero([one for group in groups for one in group["params"]], elsewhere=True)
        return self._seen


def _any_zero(parameters: Iterable[Any], *, elsewhere: bool) -> bool:
    """Whether one of some parameters has a gradient of zeros. `elsewhere`: also of those that are not on the CPU."""
    grads = (internals.grad(one) for one in parameters if internals.requires_grad(one))
    return any(grad is not None and (elsewhere or grad.device.type == "cpu") and is_zero(grad) for grad in grads)


def is_zero(tensor: torch.Tensor) -> bool | None:
    """Whether all elements are exactly zero; None: that is not known, or it has no element."""
    try:
        with internals.quiet(), torch.no_grad():
            if tensor.layout != torch.strided or not tensor.numel():
                return None
            flat = tensor.detach()
            if flat.is_contiguous() and bool(flat.view(-1)[:_SAMPLE].any()):
                return False
            return not bool(flat.any())
    except Exception:  # a tensor of a kind of its own
        return None
