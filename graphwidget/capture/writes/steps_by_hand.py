"""Lines that write to leaves with a gradient: the steps of programs that have no optimizer.

Only what such a line writes to shows whether it is a step: whether it goes by the gradient, its text has to say.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.optimizers.kept_grads import KeptGrads
from graphwidget.capture.writes.optimizers.unheld import Unheld
from graphwidget.capture.writes.statements import Statement
from graphwidget.model import Place

__all__ = ["StepsByHand"]

MAX_LINES = 100  # lines that are followed


class StepsByHand:
    """Tells those who follow the steps of optimizers of the lines that do the same.

    A line that writes to one parameter after another makes a step whenever it begins with the first of them again.
    """

    def __init__(self, kept_grads: KeptGrads, unheld: Unheld) -> None:
        self.kept_grads, self.unheld = kept_grads, unheld
        self._first: dict[int, tuple[weakref.ref[Statement], Callable[[], Any]]] = {}

    def wrote(self, statement: Statement, tensors: Iterable[Any], where: Callable[[], Place | None]) -> None:
        """Note what a line has written to."""
        leaves = [one for one in tensors if _is_stepped(one)]
        if not leaves:
            return
        known = self._first.get(id(statement))
        if known is None or known[0]() is not statement or known[1]() is None:
            if len(self._first) >= MAX_LINES:
                return
            self._first[id(statement)] = weakref.ref(statement), weakref.ref(leaves[0])
            again = False
        else:
            first = known[1]()
            again = any(one is first for one in leaves)
        self.unheld.written(leaves, again, where)
        self.kept_grads.step(statement, leaves, where, by_hand=True)

    def cleared(self, tensor: Any, unseen: bool) -> None:
        """Note a write that may have cleared a gradient, as `KeptGrads.changed`."""
        self.kept_grads.changed(tensor, unseen)

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor."""
        self._first = {key: one for key, one in self._first.items() if one[1]() is not tensor}


def _is_stepped(tensor: Any) -> bool:
    if not internals.requires_grad(tensor):
        return False
    is_leaf, grad = internals.leaf_and_grad(tensor)
    return is_leaf and grad is not None
