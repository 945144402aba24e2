"""Leaves that take values computed with a graph: made of them, or written to by a line.

A backward gives such a leaf the gradient, and what its value was computed from none. What was made before any
optimizer only begins with that value; and what an optimizer holds is trained itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.cuts import Cut, as_measured, last_first
from graphwidget.capture.flow.operands import leaves_behind
from graphwidget.model import MeasuredLeaf, TextLine

__all__ = ["FreshLeaves", "is_fresh", "shares_memory"]

MOST_NOTED = 5000  # leaves of passes
MOST_CALLS = 500  # of which it is remembered that such a leaf is their only one


class _Alone(NamedTuple):
    """The only leaf behind the roots of the call n."""

    n: int
    by: str
    lines: tuple[TextLine, ...]
    cuts: tuple[Cut, ...]


class FreshLeaves:
    """The fresh leaves of the passes, and the cuts before each.

    Parameters
    ----------
    optimizers
        All that there are; others may be added later.
    """

    def __init__(self, optimizers: Iterable[Any]) -> None:
        self._optimizers = optimizers
        self._cuts = WeakTensorKeyDictionary()
        self._made = WeakTensorKeyDictionary()  # leaf -> the operation that made it, its lines, the cuts before it
        self._noted = 0
        self._alone: list[_Alone] = []

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

    def made(self, leaf: Any, by: str, lines: tuple[TextLine, ...], cuts: Iterable[Cut]) -> None:
        """An operation has made a leaf, of whatever values. `cuts`: those that returned what the values are made of."""
        if len(self._made) < MOST_NOTED and any(True for _ in self._optimizers):
            self._made[leaf] = (by, lines, tuple(cuts))

    def called(self, n: int, outputs: list[Any]) -> None:
        """The call n on these begins."""
        if not len(self._made) or len(self._alone) >= MOST_CALLS:
            return
        leaves = list({id(one): one for one in leaves_behind(outputs)}.values())
        if len(leaves) == 1 and leaves[0] in self._made and id(leaves[0]) not in self._held():
            self._alone.append(_Alone(n, *self._made[leaves[0]]))

    def reached(self, outputs: list[Any]) -> Iterator[Cut]:
        """The cuts before the leaves that a backward call on these, which begins, gives gradients."""
        if not len(self._cuts):
            return
        held = self._held()
        for leaf in leaves_behind(outputs):
            if id(leaf) not in held:
                yield from self._cuts.get(leaf, ())

    def measured(self, wanted: set[int]) -> tuple[MeasuredLeaf, ...]:
        """The leaves that were alone behind the roots of calls. `wanted`: ids of what should be trained."""
        return tuple(
            MeasuredLeaf(one.n, one.by, one.lines, tuple(as_measured(cut, wanted) for cut in last_first(one.cuts)))
            for one in self._alone
        )

    def is_held(self, leaf: Any) -> bool:
        """Whether an optimizer has it now: it is trained itself."""
        return id(leaf) in self._held()

    def _held(self) -> set[int]:
        return {
            id(one) for optimizer in self._optimizers for group in optimizer.param_groups for one in group["params"]
        }


def is_fresh(result: Any, given: Iterable[Any]) -> bool:
    """Whether a result is a leaf that requires grad, and none of what the operation was given."""
    return result.requires_grad and result.grad_fn is None and all(result is not one for one in given)


def shares_memory(one: Any, other: Any) -> bool:
    """Whether two tensors have the same memory: ``w.data`` and `w`."""
    return internals.storage_key(one) == internals.storage_key(other)
