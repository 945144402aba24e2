"""Parameters that required grad when their optimizer was made of them, and that a line has frozen since.

An optimizer that was made of what required grad, beside frozen parameters that it was not given, says what is to train.
A program may freeze some of it later, which is meant where a line says so. This measures which line it was, whether it
was put back, and whether the parameters still took part in what was computed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.leaves.copies import SAME
from graphwidget.capture.flow.operands import held, is_parameter
from graphwidget.model import MeasuredFrozen, TextLine

__all__ = ["HeldFrozen"]

ENOUGH = 2  # steps in a row that show it
_MOST = 10_000  # parameters that are followed
_MOST_LINES = 20  # that let a parameter require grad
_NO_USE = (*SAME, "copy_", "to", "cpu", "cuda", "requires_grad_")  # for saving, or from one network to another


class _Held:
    """A parameter: at how many of the last steps it was frozen and used, and at how many it had a gradient before.

    It is plain data but for weak references: a program's model may be gone at the end.

    Attributes
    ----------
    number
        Which optimizer it is.
    thawed
        Whether it was frozen at steps, and has required grad at one since.
    let
        Lines that have let it require grad.
    """

    def __init__(self, parameter: Any, optimizer: Any, number: int) -> None:
        self.parameter, self.optimizer, self.number = weakref.ref(parameter), weakref.ref(optimizer), number
        self.used = self.thawed = self.chosen = False
        self.frozen = self.trained = 0
        self.path = ""
        self.froze: tuple[TextLine, ...] = ()
        self.stepped: tuple[TextLine, ...] = ()
        self.let: set[tuple[TextLine, ...]] = set()

    def is_off(self) -> bool:
        """Whether it is frozen, or was when it was last there."""
        parameter = self.parameter()
        return self.frozen > 0 if parameter is None else not parameter.requires_grad

    def is_told(self) -> bool:
        for_good = self.frozen >= ENOUGH and not self.thawed and self.froze not in self.let
        return for_good and self.chosen and bool(self.froze)


class HeldFrozen:
    """Follows them from step to step.

    Parameters
    ----------
    name
        The name of a leaf; empty: it has none.
    lines
        The lines of the user's own code that are running, the innermost first.
    frozen_at
        The lines that switched a parameter off.
    """

    def __init__(
        self,
        name: Callable[[Any], str],
        lines: Callable[[], tuple[TextLine, ...]],
        frozen_at: Callable[[Any], tuple[TextLine, ...]],
    ) -> None:
        self._name, self._lines, self._frozen_at = name, lines, frozen_at
        self._held = WeakTensorKeyDictionary()
        self._all: list[_Held] = []
        self._made = 0

    def made(self, optimizer: Any) -> None:
        """An optimizer was made."""
        self._made += 1
        for one in held(optimizer):
            if one.requires_grad and len(self._all) < _MOST:
                self._held[one] = _Held(one, optimizer, self._made)
                self._all.append(self._held[one])

    def told(self, parameter: Any, flag: bool) -> None:
        """A line says whether a parameter requires grad."""
        known = self._held.get(parameter)
        if known is not None and flag and len(known.let) < _MOST_LINES:
            known.let.add(self._lines())

    def operation(self, by: str, given: Iterable[Any], results: Sequence[Any]) -> None:
        """An operation has run."""
        if results and by not in _NO_USE and torch.is_grad_enabled():
            for one in given:
                if is_parameter(one) and not one.requires_grad and (known := self._held.get(one)) is not None:
                    known.used = True

    def step(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        """An optimizer has made a step."""
        shown: list[_Held] = []
        for one in parameters:
            known = self._held.get(one)
            if known is None or known.optimizer() is not optimizer:
                continue
            if one.requires_grad:
                known.trained += one.grad is not None
                known.thawed = known.thawed or known.frozen > 0
                known.frozen = 0
            elif known.used and one.grad is None:
                known.frozen += 1
                known.path, known.froze = self._name(one) or known.path, self._frozen_at(one)
                known.stepped = known.stepped or self._lines()
                shown += [known] if known.frozen == ENOUGH else []
            known.used = False
        if shown:
            chosen = _is_chosen(parameters)
            for known in shown:
                known.chosen = chosen

    def found(self) -> tuple[MeasuredFrozen, ...]:
        """What is frozen now, of each optimizer by the lines that froze it."""
        groups: dict[tuple[int, tuple[TextLine, ...]], list[_Held]] = {}
        off = [one for one in self._all if one.is_off()]
        for one in off:
            if one.is_told():
                groups.setdefault((one.number, one.froze), []).append(one)
        return tuple(
            MeasuredFrozen(
                lines,
                several[0].stepped,
                tuple(filter(None, (one.path for one in several))),
                min(one.frozen for one in several),
                max(one.trained for one in several),
                len(several) == sum(one.number == number for one in off),
            )
            for (number, lines), several in groups.items()
        )


def _is_chosen(parameters: Sequence[Any]) -> bool:
    """Whether the smallest module that has all parameters of an optimizer has frozen ones that no optimizer holds."""
    own = {id(one) for one in parameters}
    optimizers = internals.instances_alive(torch.optim.Optimizer)
    every = {id(one) for optimizer in optimizers if hasattr(optimizer, "param_groups") for one in held(optimizer)}
    modules = (list(module.parameters()) for module in internals.instances_alive(torch.nn.Module))
    around = [one for one in modules if own <= {id(each) for each in one}]
    smallest = min(around, key=len, default=[])
    return any(not one.requires_grad and id(one) not in every for one in smallest)
