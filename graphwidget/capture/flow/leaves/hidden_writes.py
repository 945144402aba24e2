"""Writes that take only the values of what was computed, as no graph records them.

``w.data = x``, ``theta.data.add_(update)``, and ``theta.add_(update)`` without grad mode. What reads the tensor later
depends on the values, and no graph leads from there to what they were computed from. A parameter that is trained is
such a value itself, where it is written into a part of another tensor: ``embedding.weight.data[new] = learned``. All of
one it is written into where a network is copied, which is meant.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.leaves.fresh_leaves import shares_memory
from graphwidget.capture.flow.operands import is_parameter, leaves_behind, tensors_in, writes_in_place
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR

__all__ = ["HiddenWrites"]

_ALIASES = ("data", "detach")  # results that have the same memory, and nothing of the graph
_REPLACING = ("data", "__setitem__", "copy_")  # others, as `add_` and `lerp_`, go on from the values that were there
_MOST_STEPS = 8  # of views and aliases, back to the tensor itself


class HiddenWrite(NamedTuple):
    """What is written to, by all its tensors, the whole one last; what it is, as `MeasuredCut.by`; and the values.

    `carries`: what reads a parameter later was meant to depend on the values: they took the place of others there, and
    are no copy of a whole parameter.
    """

    into: list[Any]
    by: str
    values: list[Any]
    carries: bool


class HiddenWrites:
    """Which tensor the aliases of a program stand for: ``x.data`` for `x`.

    Parameters
    ----------
    is_held
        Whether an optimizer has a leaf.
    """

    def __init__(self, is_held: Callable[[Any], bool]) -> None:
        self._is_held = is_held
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
            trained = [one for one in tensors_in(values) if one.requires_grad]
            if trained and (known := self._known_as(into, by)):
                whole = known[-1]
                computed = [one for one in trained if one.grad_fn is not None or self._is_put_in(one, whole)]
                if computed:
                    kind = INTO_A_LEAF if is_parameter(whole) else INTO_A_TENSOR
                    yield HiddenWrite(known, kind, computed, by in _REPLACING and not _is_copy(whole, computed))

    def _is_put_in(self, leaf: Any, whole: Any) -> bool:
        """Whether a leaf that is trained becomes a part of a parameter that is not."""
        smaller = internals.count_of(leaf) < internals.count_of(whole)
        return smaller and is_parameter(whole) and not whole.requires_grad and self._is_held(leaf)

    def _known_as(self, into: Any, by: str) -> list[Any]:
        """The tensors whose values change, and whose graph does not tell: views, and the whole. None: it tells."""
        off = not torch.is_grad_enabled()
        whole, hidden, found = into, by == "data" or (off and (into.requires_grad or _is_of_parameter(into))), []
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


def _is_of_parameter(tensor: Any) -> bool:
    """Whether it is a parameter, or a view of one."""
    return is_parameter(internals.base(tensor) if internals.is_view(tensor) else tensor)


def _is_copy(whole: Any, values: Sequence[Any]) -> bool:
    """Whether a parameter takes what was made of one other like it: a copy, or an average that follows it."""
    leaves = list({id(one): one for one in leaves_behind(values)}.values())
    return len(leaves) == 1 and internals.shape_of(leaves[0]) == internals.shape_of(whole)


def _gone() -> None: ...
