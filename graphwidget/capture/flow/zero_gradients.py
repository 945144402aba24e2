"""Measures where gradients become exactly zero, while a program runs once more.

Each node of a call is hooked, and what arrives at it and what it passes on are looked at. From a parameter whose
gradient was zero in all steps of its optimizer the ways lead back, over nodes at which only zeros arrived, to those at
which something else did. Where the nodes of this border are the same in each call, they are what keeps the gradient
away.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.optimizers.zero_grads import is_zero
from graphwidget.model import MeasuredZeros

__all__ = ["ZeroFlow"]

_MOST_NODES = 5000  # of a call that is watched
_MOST_CALLS = 100  # that are watched
_LEAST = 2  # steps, and calls, that must show the same

_BOUNDED = ("Clamp", "ClampMin", "ClampMax", "Relu", "Hardtanh", "Threshold", "Hardsigmoid", "Hardswish", "Elu")
_CHOOSING = ("Where", "MaskedFill", "MaskedScatter")
_SOFTMAX = ("Softmax", "LogSoftmax")
_FAULTS = ("one", "masked", "above")  # also where the result is a term of the loss
_MEANT = ("weight", "padding")
# Through these a term of a loss stays what it is. A term at its lowest value rightly has no gradient.
_SCALING = frozenset(
    "Add Sub Rsub Mul Div Neg Sum Mean View UnsafeView Squeeze Unsqueeze Reshape ToCopy Stack Cat Unbind Select Expand "
    "NllLoss NllLoss2D".split()
)


class _Why(NamedTuple):
    """As in `MeasuredZeros`; besides, what is no fault: a ``"weight"`` of zero, a ``"padding"`` index."""

    why: str = ""
    dim: int = -1


class _Border(NamedTuple):
    """A node at which a gradient arrives and that passes zeros on."""

    node: int
    name: str
    why: _Why


@dataclass(eq=False)
class _Call:
    """The nodes of a call, by their positions breadth first, and what was seen at them.

    `edges`: where they lead; -1: nowhere. `leaves`: position -> the id of a leaf. `why`: why a node would pass zeros.
    `arrived` and `passed` have the nodes that ran: whether something else than zero did, by each edge; None: unknown.
    """

    n: int
    names: list[str]
    edges: list[list[int]]
    leaves: dict[int, int]
    why: list[_Why]
    arrived: dict[int, bool | None]
    passed: dict[int, list[bool | None]]

    def note(self, at: int) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """What is to be called with the gradients of a node. It refers to no node: a hook lives as long as its own."""

        def hook(passed: Sequence[Any], arrived: Sequence[Any]) -> None:
            came = [_is_other(one) for one in arrived]
            self.arrived[at] = True if True in came else None if None in came else False
            self.passed[at] = [_is_other(one) for one in passed]

        return hook


@dataclass(eq=False)
class _Trained:
    """A parameter of an optimizer that had nothing but gradients of zeros.

    `n`, `at`, `borders`: the first call that shows why, and where the parameter is in it. `calls` have shown the same.
    `known`: none has shown something else.
    """

    ref: weakref.ref[Any]
    steps: int = 0
    n: int = -1
    at: int = -1
    borders: tuple[_Border, ...] = ()
    calls: int = 0
    known: bool = True


class ZeroFlow:
    """Told of each call before it begins, and of each step of an optimizer."""

    def __init__(self) -> None:
        self._zero: dict[int, _Trained] = {}  # by the id of the parameter
        self._other: set[int] = set()  # ids of parameters that had another gradient
        self._call: _Call | None = None  # the last one, not yet looked at
        self._watched = 0

    def before_call(self, n: int, outputs: Any) -> None:
        """A call is about to run on these: hook its nodes."""
        self._settle()
        if self._watched >= _MOST_CALLS or (self._other and not self._zero):
            return
        try:
            with internals.quiet():
                self._watch(n, outputs)
        except Exception:  # a node of a kind of its own: what is not known is not told
            self._call = None

    def _watch(self, n: int, outputs: Any) -> None:
        nodes, edges = _walk(outputs)
        variables = ((at, internals.accumulated_variable(node)) for at, node in enumerate(nodes))
        leaves = {at: id(one) for at, one in variables if one is not None}
        if len(nodes) > _MOST_NODES or (self._other and self._zero.keys().isdisjoint(leaves.values())):
            return
        self._watched += 1
        names = [internals.name_of(node) for node in nodes]
        whys = [_why(node, _operation(name)) for node, name in zip(nodes, names, strict=True)]
        self._call = call = _Call(n, names, edges, leaves, whys, {}, {})
        for at, node in enumerate(nodes):
            if at not in leaves:
                node.register_hook(call.note(at))

    def step(self, parameters: Iterable[Any]) -> None:
        """An optimizer has made a step."""
        for one in parameters:
            grad = internals.grad(one)
            if grad is None or id(one) in self._other:
                continue
            if is_zero(grad):
                self._zero.setdefault(id(one), _Trained(weakref.ref(one))).steps += 1
            else:
                self._other.add(id(one))
                self._zero.pop(id(one), None)
        self._settle()

    def _settle(self) -> None:
        """Look at what was seen of the last call, for the parameters whose gradients are known to be zero by now."""
        call = self._call
        if call is None or not self._zero:
            return
        self._call = None
        above: list[list[tuple[int, int]]] = [[] for _ in call.names]
        for at, own in enumerate(call.edges):
            for nr, to in enumerate(own):
                if to >= 0 and at in call.arrived:
                    above[to].append((at, nr))
        for leaf, key in call.leaves.items():
            trained = self._zero.get(key)
            if trained is not None and trained.known:
                borders = _borders(call, above, leaf)
                if borders:
                    trained.calls += 1
                    if not trained.borders:
                        trained.n, trained.at, trained.borders = call.n, leaf, borders
                trained.known = borders is not None and (not borders or _kinds(borders) == _kinds(trained.borders))

    def found(self) -> tuple[MeasuredZeros, ...]:
        """What is known now."""
        self._settle()
        leaves: dict[tuple[int, _Border], list[_Trained]] = {}
        for one in self._zero.values():
            if one.known and min(one.steps, one.calls) >= _LEAST:
                for border in one.borders:
                    leaves.setdefault((one.n, border), []).append(one)
        return tuple(
            MeasuredZeros(n, node, name, tuple(one.at for one in own), min(one.steps for one in own), *why)
            for (n, (node, name, why)), own in leaves.items()
        )


# ------------------------------------------------------------ what was seen


def _kinds(borders: tuple[_Border, ...]) -> set[tuple[str, str]]:
    return {(one.name, one.why.why) for one in borders}


def _borders(call: _Call, above: list[list[tuple[int, int]]], leaf: int) -> tuple[_Border, ...] | None:
    """The nodes that keep the gradient from a leaf; empty: the call did not reach it; None: that is not known."""
    found: dict[int, _Why] = {}
    seen, stack = {leaf}, [leaf]
    while stack:
        node = stack.pop()
        passed = [(at, call.passed[at][nr]) for at, nr in above[node]]
        through = [at for at, other in passed if other]
        if len(through) > 1:
            if node == leaf and not _leads_to(call, min(through), set(through)):
                return None  # a parameter that is used twice: its gradients may cancel by chance, as those of a bias do
            found[min(through)] = _Why("cancel")
            continue
        if through or any(other is None or call.arrived[at] is None for at, other in passed):
            return None  # a hook or the program made the gradient zero that was passed on, or it is not known
        for at, _ in passed:
            if call.arrived[at]:
                found[at] = call.why[at]
            elif at not in seen:
                if not above[at]:
                    return None  # the call was given zeros
                seen.add(at)
                stack.append(at)
    borders = tuple(_Border(at, call.names[at], why) for at, why in sorted(found.items()))
    return borders if all(_is_fault(call, above, one) for one in borders) else None


def _leads_to(call: _Call, node: int, others: set[int]) -> bool:
    """Whether a way leads from a node to one of some others."""
    seen, stack = {-1, node}, [node]
    while stack:
        for to in call.edges[stack.pop()]:
            if to in others and to != node:
                return True
            if to not in seen:
                seen.add(to)
                stack.append(to)
    return False


def _is_fault(call: _Call, above: list[list[tuple[int, int]]], border: _Border) -> bool:
    """Whether a node keeps a gradient away for good, and nobody can have meant that."""
    why = border.why.why
    if why in _MEANT:
        return False
    if why != "cancel" and _trains_another(call, border.node):
        return False  # another input is trained by it: when that has changed, this one may get a gradient
    return why in _FAULTS or not _is_term(call, above, border.node)


def _trains_another(call: _Call, node: int) -> bool:
    """Whether something else than zero goes on from a node to a leaf: a factor that is zero may be trained by that."""
    seen, stack = {node}, [node]
    while stack:
        at = stack.pop()
        for to, other in zip(call.edges[at], call.passed.get(at, ())):
            if other is False or to < 0:
                continue
            if to in call.leaves:
                return True
            if to not in seen:
                seen.add(to)
                stack.append(to)
    return False


def _is_term(call: _Call, above: list[list[tuple[int, int]]], node: int) -> bool:
    """Whether the loss is a sum in which the result of a node is a part."""
    seen, stack = {node}, [node]
    while stack:
        for at, _ in above[stack.pop()]:
            if _operation(call.names[at]) not in _SCALING:
                return False
            if at not in seen:
                seen.add(at)
                stack.append(at)
    return True


def _is_other(gradient: Any) -> bool | None:
    """Whether a gradient is something else than zero; None: unknown."""
    zero = True if gradient is None else is_zero(gradient)
    return None if zero is None else not zero


# ------------------------------------------------------------ nodes


def _walk(outputs: Any) -> tuple[list[Any], list[list[int]]]:
    """The nodes behind some roots, breadth first, and where their edges lead."""
    given = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    roots = (one.grad_fn for one in given if isinstance(one, torch.Tensor))
    nodes = list(dict.fromkeys(one for one in roots if one is not None))
    index = {node: at for at, node in enumerate(nodes)}
    edges: list[list[int]] = []
    for node in nodes:
        own = []
        for after, _ in node.next_functions:
            if after is not None and after not in index:
                index[after] = len(nodes)
                nodes.append(after)
            own.append(-1 if after is None else index[after])
        edges.append(own)
        if len(nodes) > _MOST_NODES:
            break
    return nodes, edges


def _operation(name: str) -> str:
    """``Softmax`` of ``SoftmaxBackward0``."""
    return name.rstrip("0123456789").removesuffix("Backward")


def _why(node: Any, operation: str) -> _Why:
    """Why a node would pass nothing but zeros on."""
    try:
        if operation in _SOFTMAX:
            return _of_softmax(node)
        if operation.startswith("Embedding"):
            return _Why("padding")
        if operation in _CHOOSING:
            return _Why("masked")
        if operation in _BOUNDED:
            return _Why("above" if _is_at_its_most(node, operation) else "outside")
        if operation == "Mul":
            return _of_product(node)
    except RuntimeError:  # what it saved was modified
        pass
    return _Why()


def _of_softmax(node: Any) -> _Why:
    result, dim = internals.saved_value(node, "result"), internals.saved_value(node, "dim")
    if result is None or not result.dim():
        return _Why()
    dim = (dim - 2**64 if dim >= 2**63 else dim) % result.dim()
    return _Why("one", dim) if result.shape[dim] == 1 else _Why()


def _of_product(node: Any) -> _Why:
    factors = [internals.saved_value(node, name) for name in ("self", "other")]
    zeros = [one for one in factors if one is not None and is_zero(one)]
    if len(zeros) == 1:
        return _Why("weight" if zeros[0].numel() == 1 else "masked")
    return _Why("zeros" if zeros else "")


def _is_at_its_most(node: Any, operation: str) -> bool:
    """Whether a clamp has kept values from growing. One that keeps them from falling may be a margin that is met."""
    value, most = internals.saved_value(node, "self"), internals.saved_value(node, "max")
    if not operation.startswith("Clamp") or value is None or most is None:
        return False
    with internals.quiet(), torch.no_grad():
        return bool((value.detach() >= most).any())
