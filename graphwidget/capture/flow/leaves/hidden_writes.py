"""Writes that take only the values of what was computed, as no graph records them.

``w.data = x``, ``theta.data.add_(update)``, and ``theta.add_(update)`` without grad mode. What reads the tensor later
depends on the values, and no graph leads from there to what they were computed from.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.leaves.fresh_leaves import shares_memory
from graphwidget.capture.flow.operands import is_parameter, tensors_in, writes_in_place
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR

__all__ = ["HiddenWrites"]

_ALIASES = ("data", "detach")  # results that have the same memory, and nothing of the graph
_MOST_STEPS = 8  # of views and aliases, back to the tensor itself


class HiddenWrite(NamedTuple):
    """What is written to, by all its tensors, the whole one last; what it is, as `MeasuredCut.by`; and the values."""

    into: list[Any]
    by: str
    values: list[Any]


class HiddenWrites:
    """Which tensor the aliases of a program stand for: ``x.data`` for `x`."""

    def __init__(self) -> None:
        self._whole = WeakTensorKeyDictionary()

    def note(self, by: str, given: Sequence[Any], results: Sequence[Any]) -> None:
        """An operation has run; it may have made an alias."""
        if by in _ALIASES and len(given) == len(results) == 1 and given[0] is not results[0]:
            self._whole[results[0]] = weakref.ref(given[0])

    def written(self, by: str, args: Any, given: Sequence[Any]) -> Iterator[HiddenWrite]:
        """The writes of an operation that no graph records."""
        if not writes_in_place(by):
            return
        several = list(args[0]) if args and isinstance(args[0], (list, tuple)) else []  # ``torch._foreach_add_``
        if several and len(args) > 1 and isinstance(args[1], (list, tuple)) and len(args[1]) == len(several):
            pairs = [(into, [value]) for into, value in zip(several, args[1])]
        else:
            pairs = [(given[0], list(given[1:]))]
        for into, values in pairs:
            computed = [one for one in tensors_in(values) if one.grad_fn is not None]
            if computed and (known := self._known_as(into, by)):
                kind = INTO_A_LEAF if is_parameter(known[-1]) else INTO_A_TENSOR
                yield HiddenWrite(known, kind, computed)

    def _known_as(self, into: Any, by: str) -> list[Any]:
        """The tensors whose values change, and whose graph does not tell: views, and the whole. None: it tells."""
        whole, hidden, found = into, by == "data" or (into.requires_grad and not torch.is_grad_enabled()), []
        for _ in range(_MOST_STEPS):
            if hidden:
                found.append(whole)
            if (known := self._whole.get(whole, _gone)()) is not None:
                whole, hidden = known, True
            elif internals.is_view(whole):
                whole = internals.base(whole)
            else:
                break
        return [one for one in found if shares_memory(into, one)]


def _gone() -> None: ...
