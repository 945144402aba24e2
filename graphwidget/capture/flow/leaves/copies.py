"""Which leaf a tensor has the values of, and into which leaf they were copied."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

__all__ = ["SAME", "Copies"]

SAME = ("detach", "data", "clone", "__deepcopy__")  # the result has the values of a leaf


class Copies:
    """The copies of leaves that a program makes."""

    def __init__(self) -> None:
        self._same = WeakTensorKeyDictionary()  # `w.detach()`, `w.data` -> the leaf
        self._copied = WeakTensorKeyDictionary()  # leaf -> a leaf whose values were copied into it

    def note(self, by: str, args: Sequence[Any], results: Sequence[Any]) -> None:
        """A leaf got the values of another: by ``load_state_dict``, ``copy_`` or ``deepcopy``."""
        source = self._leaf_of(args[1] if by == "copy_" else args[0])
        if source is None or len(results) != 1:
            return
        if by in SAME and not results[0].requires_grad:
            self._same[results[0]] = weakref.ref(source)
        elif (leaf := self._leaf_of(results[0])) is not None and leaf is not source:
            self._copied[leaf] = weakref.ref(source)

    def source_of(self, leaf: Any) -> Any:
        """The leaf whose values were copied into one; None: none were, or it is gone."""
        return self._copied.get(leaf, _gone)()

    def _leaf_of(self, value: Any) -> Any:
        """The leaf that a tensor is, or whose plain values it has; None: it is something else."""
        if isinstance(value, torch.Tensor) and value.requires_grad:
            return value if value.is_leaf else None
        return self._same.get(value, _gone)()


def _gone() -> None: ...
