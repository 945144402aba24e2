"""Measures where parameters stop to be finite, while a program runs once more, and from where that came.

Of each operation it is noted whether it made a value that is not finite out of finite ones. The nodes of a call are
hooked, and the first that passes on what is not finite, although what arrived there is, is noted with the leaves that
got it. The first step after which a parameter is not finite ends all this.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.nonfinite import values_there
from graphwidget.capture.flow.operands import tensors_in
from graphwidget.capture.writes.optimizers.nonfinite import first_not_finite
from graphwidget.model import MeasuredNonFinite, TextLine

__all__ = ["NonFiniteFlow"]

_MOST_NODES = 5000  # of a call that is watched
_MOST_CALLS = 16  # that are remembered
_ALL = 10**9  # values that are looked at

Lines = tuple[TextLine, ...]


@dataclass(frozen=True)
class _Made:
    """The operation that made a value that is not finite, out of finite ones, or a nan out of infinite ones.

    `written`: it was given such a number, as ``x[0] = nan``, or no tensor. No name: another tensor had such a value,
    and nobody saw what made that.
    """

    value: str
    by: str = ""
    lines: Lines = ()
    behind: _Made | None = None
    written: bool = False


@dataclass(eq=False)
class _Call:
    """What was seen of a call: of its root, of the first node that passed on what is not finite, and the leaves."""

    n: int
    root: _Made | None = None
    by: str = ""
    made: Lines = ()
    what: str = ""
    held: str = ""
    leaves: set[int] = field(default_factory=set)  # ids

    @property
    def stage(self) -> str:
        if self.root is not None:
            return "written" if self.root.written else "forward" if self.root.by else "given"
        return "backward" if self.by else ""


class NonFiniteFlow:
    """Told of operations, of each call before it begins, and of each step before it and after.

    Parameters
    ----------
    made_at
        The lines at which the node with a sequence number was made, the innermost first.
    """

    def __init__(self, made_at: Callable[[int], Lines]) -> None:
        self._made_at = made_at
        self._made = WeakTensorKeyDictionary()  # what is not finite -> `_Made`
        self._calls: list[_Call] = []  # in which something was not finite
        self._before: dict[int, tuple[weakref.ref[Any], bool]] = {}  # parameter by its id: whether it was finite
        self._steps: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._nodes: list[Any] = []  # of call `_n`, until a step
        self._n = -1
        self.found: MeasuredNonFinite | None = None

    def operation(self, by: str, given: Any, results: Iterable[Any], lines: Callable[[], Lines]) -> None:
        """An operation was given some tensors and numbers, and returned tensors or wrote to them."""
        if self.found is not None:
            return
        tensors, results = list(tensors_in(given, 8)), list(results)
        behind = [made for one in tensors if (made := self._made.get(one)) is not None]
        for one in results:
            value = first_not_finite(one, _ALL)
            if not value:
                self._made.pop(one, None)
                continue
            same = [made for made in behind if (made.value == "nan") == (value == "nan")]
            self._made[one] = same[0] if same else self._made_by(by, value, given, tensors, results, behind, lines())

    def _made_by(
        self, by: str, value: str, given: Any, tensors: list[Any], results: list[Any], behind: list[_Made], lines: Lines
    ) -> _Made:
        """The origin of a value that no known tensor explains."""
        written = not tensors or _has_such_a_number(given)
        unknown = (one for one in tensors if not any(one is each for each in results) and one not in self._made)
        if not behind and not written and any(first_not_finite(one, _ALL) for one in unknown):
            return _Made(value, "", lines)  # it came from elsewhere
        return _Made(value, by, lines, behind[0] if behind else None, written)

    def before_call(self, n: int, outputs: Any) -> None:
        """A call is about to run on these: look at its roots, and hook its nodes."""
        self._nodes, self._n = [], n
        if self.found is not None:
            return
        try:
            with internals.quiet():
                self._watch(_Call(n), outputs)
        except Exception:  # a node of a kind of its own: what is not known is not told
            return

    def _watch(self, call: _Call, outputs: Any) -> None:
        given = [one for one in tensors_in((outputs,)) if one.grad_fn is not None]
        for one in given:
            value = first_not_finite(one, _ALL)
            if value:
                call.root = self._made.get(one) or _Made(value)
        nodes = list(dict.fromkeys(one.grad_fn for one in given))
        seen = set(nodes)
        for node in nodes:  # grows while it is read
            for after, _ in node.next_functions:
                if after is not None and after not in seen:
                    seen.add(after)
                    nodes.append(after)
            if len(nodes) > _MOST_NODES:
                return
        self._nodes = nodes
        for at, node in enumerate(nodes):
            if internals.accumulated_variable(node) is None:
                leaves = (internals.accumulated_variable(after) for after, _ in node.next_functions)
                node.register_hook(self._hook(call, at, [None if one is None else id(one) for one in leaves]))

    def _hook(self, call: _Call, at: int, leaves: list[int | None]) -> Callable[[Any, Any], None]:
        """What is to be called with the gradients of a node. It refers to no node: a hook lives as long as its own."""

        def look(passed: Sequence[Any], arrived: Sequence[Any]) -> None:
            if self.found is not None:
                return
            bad = [(nr, one, value) for nr, one in enumerate(passed) if (value := _value(one))]
            if not bad:
                return
            call.leaves.update(leaf for nr, _, _ in bad if nr < len(leaves) and (leaf := leaves[nr]) is not None)
            if call not in self._calls:
                self._calls = [*self._calls[1 - _MOST_CALLS :], call]
            if not call.by and call.n == self._n and not any(map(_value, arrived)):
                node, (_, gradient, call.what) = self._nodes[at], bad[0]
                call.by, call.made = internals.name_of(node), self._made_at(internals.number_of(node))
                call.held = values_there(node, gradient)

        return look

    def before_step(self, parameters: Iterable[Any]) -> None:
        """An optimizer is about to make a step: note which of its parameters are finite, if they are seen first."""
        for one in parameters:
            known = self._before.get(id(one))
            if known is None or known[0]() is not one:
                self._before[id(one)] = weakref.ref(one), not first_not_finite(one, _ALL)

    def step(self, optimizer: Any, parameters: Sequence[Any], name: Callable[[Any], str], lines: Lines) -> None:
        """An optimizer has made a step."""
        self._nodes, self._n = [], -1
        if self.found is not None:
            return
        ref, steps = self._steps.get(id(optimizer), (None, 0))
        steps = steps + 1 if ref is not None and ref() is optimizer else 1
        self._steps[id(optimizer)] = weakref.ref(optimizer), steps
        bad = [(one, value) for one in parameters if self._was_finite(one) and (value := first_not_finite(one, _ALL))]
        if not bad:
            return
        value = next((value for _, value in bad if value == "nan"), bad[0][1])
        paths = tuple(filter(None, (name(one) for one, _ in bad)))
        grads = [internals.grad(one) for one, _ in bad]
        call = next(
            (call for call in reversed(self._calls) if not call.leaves.isdisjoint(id(one) for one, _ in bad)), None
        )
        if not any(map(_value, grads)) and all(one is not None for one in grads):
            self.found = MeasuredNonFinite(value, paths, steps, lines, "step")
        elif call is None:
            self.found = MeasuredNonFinite(value, paths, steps, lines)
        else:
            self.found = _of_call(call, value, paths, steps, lines)

    def _was_finite(self, parameter: Any) -> bool:
        known = self._before.get(id(parameter))
        return known is not None and known[0]() is parameter and known[1]


def _of_call(call: _Call, value: str, paths: tuple[str, ...], steps: int, lines: Lines) -> MeasuredNonFinite:
    root = call.root
    if root is None:
        seen = (call.stage, call.n, call.by, call.made, call.what)
        return MeasuredNonFinite(value, paths, steps, lines, *seen, held=call.held)
    behind = root.behind or _Made("")
    seen = (call.stage, call.n, root.by, root.lines, root.value, behind.by, behind.lines)
    return MeasuredNonFinite(value, paths, steps, lines, *seen)


def _has_such_a_number(given: Any) -> bool:
    numbers = [one for part in given for one in _parts(part) if isinstance(one, float)]
    return not all(map(math.isfinite, numbers))


def _parts(value: Any) -> Iterable[Any]:
    """The elements of a container, and those of the containers in it; else the value alone."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return [each for one in value for each in _parts(one)] if isinstance(value, (list, tuple)) else [value]


def _value(gradient: Any) -> str:
    return first_not_finite(gradient, _ALL) if isinstance(gradient, torch.Tensor) else ""
