"""Gradients that are gone, or zeros, before any step has used them; and the lines that emptied them.

Whatever empties a gradient is an operation that a mode is told of: ``zero_grad`` of an optimizer or of a module,
``p.grad = None``, ``p.grad.zero_()``. An optimizer is followed until a step of it finds a gradient, or until the
program itself writes to one of its parameters.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.operands import held
from graphwidget.capture.writes.optimizers.zero_grads import is_zero
from graphwidget.model import MeasuredEmptied, TextLine

__all__ = ["EmptiedGradients"]

_MOST_STORAGES = 100_000
_MOST_NAMED = 8


class _Note(NamedTuple):
    """The lines that emptied a gradient, the n of the last call before that, and how many there had been."""

    lines: tuple[TextLine, ...]
    call: int
    calls: int


class _About(NamedTuple):
    """What an operation may change: the gradient of a parameter, or values that it writes to in place."""

    parameter: Any
    values: Any
    version: int


@dataclass(eq=False)
class _Followed:
    """An optimizer all of whose steps found nothing: it may be gone when somebody asks.

    `notes`: of what the step that is running would have used. `trained`: the optimizer is not followed any more.
    """

    notes: list[tuple[Any, _Note]] = field(default_factory=list)
    calls: int = 0
    steps: int = 0
    zeros: bool = False
    found: MeasuredEmptied | None = None
    trained: bool = False


class EmptiedGradients:
    """Told of calls, of operations, and of the steps of optimizers.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    name
        The name of a leaf; empty: none is known.
    optimizers
        Those that were made so far.
    """

    def __init__(
        self,
        lines: Callable[[], tuple[TextLine, ...]],
        name: Callable[[Any], str],
        optimizers: Iterable[Any],
    ) -> None:
        self._lines, self._name, self._optimizers = lines, name, optimizers
        self._call, self._calls = -1, 0
        self._stepping = 0
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that are not followed any more
        self._followed: weakref.WeakKeyDictionary[Any, _Followed] = weakref.WeakKeyDictionary()
        self._all: list[_Followed] = []
        self._gone = WeakTensorKeyDictionary()  # parameter -> the note of its gradient
        self._used = WeakTensorKeyDictionary()  # parameter -> how many calls there were when a step used its gradient
        self._zeroed: dict[Any, _Note] = {}  # the same of what was written to, by its storage

    def called(self, n: int) -> None:
        """The call n begins."""
        self._call, self._calls = n, self._calls + 1

    def before(self, func: Any, args: tuple[Any, ...]) -> list[_About]:
        """An operation is about to run. Returns what is to be looked at behind it."""
        name = getattr(func, "__name__", "")
        of = getattr(getattr(func, "__self__", None), "__name__", "") if name in ("__set__", "__delete__") else ""
        writes = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__" or of == "data"
        if not args or not (writes or of in ("grad", "_grad")) or self._stepping or not self._calls:
            return []
        if all(one in self._trained for one in self._optimizers):
            return []
        try:
            if not writes:
                grad = internals.grad(args[0])
                return [_About(args[0], grad, 0)] if grad is not None and is_zero(grad) is False else []
            several = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
            every = [one for one in several if isinstance(one, torch.Tensor) and one.grad_fn is None]
            return [_About(None, one, internals.version(one)) for one in every if is_zero(one) is False]
        except Exception:  # tensors of a kind of their own
            return []

    def after(self, about: list[_About]) -> None:
        """It has run."""
        if not about:
            return
        try:
            own = self._storages() if any(one.parameter is None for one in about) else {}
            note = _Note(self._lines(), self._call, self._calls)
            for parameter, values, version in about:
                if parameter is not None:
                    if _is_empty(internals.grad(parameter)):
                        self._gone[parameter] = note
                    continue
                key = internals.storage_of(values)
                if key in own and internals.version(values) != version:
                    self._drop(own[key])  # a step by hand, or what looks like one
                elif is_zero(values) and key is not None and len(self._zeroed) < _MOST_STORAGES:
                    self._zeroed[key] = note
        except Exception:
            pass

    def _storages(self) -> dict[Any, Any]:
        """The storages of parameters, each with its optimizer."""
        followed = [one for one in self._optimizers if one not in self._trained]
        return {internals.storage_of(parameter): one for one in followed for parameter in held(one)}

    def before_step(self, optimizer: Any) -> None:
        """A step begins."""
        self._stepping += 1
        if all(one in self._trained for one in self._optimizers):
            return
        own = held(optimizer)
        if any(not _is_empty(internals.grad(one)) for one in own):
            self._drop(optimizer)
            self._used.update(dict.fromkeys(own, self._calls))
        elif optimizer not in self._trained:
            followed = self._followed.get(optimizer)
            if followed is None:
                followed = self._followed[optimizer] = _Followed()
                self._all.append(followed)
            followed.calls = self._calls
            followed.zeros = any(internals.grad(one) is not None for one in own)
            followed.notes = [(one, note) for one in own if (note := self._note_of(one)) is not None]
            if not followed.notes and self._calls:
                self._drop(optimizer)  # no gradient came, and something else is to be said

    def _drop(self, optimizer: Any) -> None:
        """Follow an optimizer no more."""
        self._trained.add(optimizer)
        if (followed := self._followed.get(optimizer)) is not None:
            followed.trained = True

    def step(self, optimizer: Any) -> None:
        """A step has ended."""
        self._stepping = max(0, self._stepping - 1)
        followed = self._followed.get(optimizer)
        if followed is None or optimizer in self._trained or not followed.notes:
            return
        if followed.calls != self._calls:  # its closure has computed gradients
            self._drop(optimizer)
            return
        followed.steps += 1
        names = tuple(filter(None, (self._name(one) for one, _ in followed.notes[:_MOST_NAMED])))
        first = followed.notes[0][1]
        followed.found = MeasuredEmptied(
            first.call, first.lines, self._lines(), followed.steps, followed.zeros, names or _names(followed)
        )

    def _note_of(self, parameter: Any) -> _Note | None:
        grad = internals.grad(parameter)
        zeroed = self._zeroed.get(internals.storage_of(grad)) if grad is not None else None
        note: _Note | None = zeroed or self._gone.get(parameter)
        return note if note is not None and note.calls != self._used.get(parameter) else None

    def found(self) -> tuple[MeasuredEmptied, ...]:
        """What all steps of optimizers have missed."""
        return tuple(one.found for one in self._all if one.found is not None and not one.trained)


def _names(followed: _Followed) -> tuple[str, ...]:
    return followed.found.paths if followed.found is not None else ()


def _is_empty(grad: Any) -> bool:
    """Whether a gradient is None, or known to be zeros."""
    return grad is None or is_zero(grad) is True
