"""Leaves that were told to require grad only after something had been computed from them.

What was computed before has no path to the leaf: `x.requires_grad_()` changes nothing of the past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget.capture.flow.operands import is_index, is_parameter
from graphwidget.model import MeasuredLate, TextLine

__all__ = ["LateLeaves"]

_MOST_USES = 64  # that one value remembers
_MOST_VALUES = 20_000
# Of these a tensor gets the values of another: what was computed from the one was not computed from the other.
_SAME_VALUES = frozenset("detach data clone contiguous to float double half bfloat16 type type_as cpu cuda".split())

Lines = Callable[[], tuple[TextLine, ...]]


@dataclass(eq=False)
class _Use:
    """An operation that was given a tensor which required no grad."""

    lines: tuple[TextLine, ...]


class LateLeaves:
    """Which uses of plain tensors each value was computed from, in a program that runs for this purpose.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._uses = WeakTensorKeyDictionary()  # tensor that was given to operations -> their uses
        self._from = WeakTensorKeyDictionary()  # value -> the uses that it was computed from
        self._told = WeakTensorKeyDictionary()  # tensor that was used before -> the lines that told it

    def operation(self, by: str, given: Sequence[Any], results: Sequence[Any]) -> None:
        """An operation has run, and returned values."""
        found = {use: None for one in given for use in self._from.get(one, ())}
        plain = [one for one in given if not (one.requires_grad or is_parameter(one) or is_index(one))]
        if plain and len(self._uses) < _MOST_VALUES:
            use = _Use(self._lines())
            for one in plain:
                self._uses[one] = (*self._uses.get(one, ()), use)[:_MOST_USES]
            found[use] = None
        if plain and by in _SAME_VALUES and len(results) == 1 and results[0] is not plain[0]:
            self._uses[results[0]] = self._uses.get(plain[0], ())
        for one in results if found else ():
            if not (is_parameter(one) or is_index(one)):
                self._from[one] = tuple(found)[-_MOST_USES:]

    def told(self, leaf: Any) -> None:
        """A tensor is told to require grad."""
        if leaf in self._uses and leaf not in self._told:
            self._told[leaf] = self._lines()

    def behind(self, outputs: Iterable[Any], inputs: Sequence[Any]) -> tuple[MeasuredLate, ...]:
        """The inputs of a call from which its roots were computed before these required grad."""
        reached = {use for one in outputs for use in self._from.get(one, ())}
        late = []
        for at, leaf in enumerate(inputs):
            used = [use for use in self._uses.get(leaf, ()) if use in reached]
            if used and leaf in self._told:
                late.append(MeasuredLate(at, used[0].lines, self._told[leaf]))
        return tuple(late)
