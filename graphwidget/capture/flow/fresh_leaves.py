"""Leaves that take values computed with a graph: made of them, or written to by a line.

A backward gives such a leaf the gradient, and what its value was computed from none. What was made before any
optimizer only begins with that value; and what an optimizer holds is trained itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.operands import leaves_behind

__all__ = ["FreshLeaves", "is_fresh", "shares_memory"]

MOST_NOTED = 5000  # leaves of passes
Cut = TypeVar("Cut")


class FreshLeaves(Generic[Cut]):
    """The fresh leaves of the passes, and the cuts before each.

    Parameters
    ----------
    optimizers
        All that there are; others may be added later.
    """

    def __init__(self, optimizers: Iterable[Any]) -> None:
        self._optimizers = optimizers
        self._cuts = WeakTensorKeyDictionary()
        self._noted = 0

    @property
    def takes_notes(self) -> bool:
        """Whether leaves are noted: once there is an optimizer, and only some thousands."""
        return self._noted < MOST_NOTED and any(True for _ in self._optimizers)

    def note(self, leaf: Any, cuts: Iterable[Cut]) -> None:
        """A leaf has taken values that cuts returned, and no others."""
        found = tuple(cuts)
        if found and self.takes_notes:
            self._noted += 1
            self._cuts[leaf] = found

    def reached(self, outputs: list[Any]) -> Iterator[Cut]:
        """The cuts before the leaves that a backward call on these, which begins, gives gradients."""
        if not len(self._cuts):
            return
        held = {
            id(one) for optimizer in self._optimizers for group in optimizer.param_groups for one in group["params"]
        }
        for leaf in leaves_behind(outputs):
            if id(leaf) not in held:
                yield from self._cuts.get(leaf, ())


def is_fresh(result: Any, given: Iterable[Any]) -> bool:
    """Whether a result is a leaf that requires grad, and none of what the operation was given."""
    return result.requires_grad and result.grad_fn is None and all(result is not one for one in given)


def shares_memory(one: Any, other: Any) -> bool:
    """Whether two tensors have the same memory: ``w.data`` and `w`."""
    return internals.storage_key(one) == internals.storage_key(other)
