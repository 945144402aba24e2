"""Leaves that backward calls reach and that no optimizer holds, seen at some of the steps.

What is found is plain data at once: a program's model may be gone when somebody asks.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.owners.unregistered import beside, classes_around, names_in_unheld, owners_around, unregistered
from graphwidget.capture.writes.optimizers.twins import Twins
from graphwidget.capture.writes.optimizers.zero_grads import is_zero
from graphwidget.capture.writes.watched import MAX_WATCHED, WatchedTensors, version_of
from graphwidget.model import Container, Place, UnheldLeaf

__all__ = ["Unheld"]

MAX_HELD = 100_000  # parameters that are remembered as held
MAX_LEAVES = 200
MAX_BEGINNINGS = 200  # how often the steps are counted anew
MOST_ASKED = 4  # frozen parameters that one step asks whether they still are, one after the other in turn
MAX_COMPARED = 10_000  # values of a leaf that are compared with each other

_OF_OPTIMIZER = re.compile(r"\.(param_groups|state)\b")  # what an optimizer keeps its parameters in


class _Seen:
    """A leaf with a gradient that no optimizer has held so far: its version, and how often it was seen like that.

    `grows`: its gradient has been one tensor, which was written to between any two looks.
    """

    def __init__(self, leaf: Any, path: str, grad: Any) -> None:
        self.leaf, self.path, self.version, self.times = weakref.ref(leaf), path, version_of(leaf), 1
        self.parameter = issubclass(type(leaf), torch.nn.Parameter)
        self.place: Place | None = None
        self.container: Container | None = None
        self.within: frozenset[str] = frozenset()
        self.beside_held = self.partly_held = False
        self.inside: tuple[str, ...] = ()
        self.copy_of = ""
        self.orphans: tuple[tuple[int, ...], ...] = ()
        self.waiting = False  # an optimizer that has made no step held it
        self.thawed = False
        self.grad, self.grad_version, self.grows = weakref.ref(grad), version_of(grad), True

    def again(self, grad: Any) -> None:
        """It was seen once more, with this gradient."""
        before, self.grad_version = self.grad_version, version_of(grad)
        self.times += 1
        self.grows = self.grows and grad is self.grad() and before != self.grad_version


def _nothing() -> None: ...


class _Ends:
    """The first and the last parameter of an optimizer that had a gradient at a step, and those gradients since.

    Attributes
    ----------
    left
        Whether one of them was not given a gradient before the last step, as far as that can be seen: it has none; it
        is the same and was not written to; or only as a line writes to it that makes it zero.
    """

    __slots__ = ("at", "grads", "left", "optimizer", "raised")

    def __init__(self, optimizer: Any, at: tuple[int, int]) -> None:
        self.optimizer, self.at, self.left = weakref.ref(optimizer), at, False
        self.grads: list[tuple[Callable[[], Any], int]] = []  # with their versions
        self.raised = [0, 0]  # how far the version of each was raised from step to step, at most

    def step(self, parameters: Sequence[Any]) -> bool:
        """Return `left` as it is at this step."""
        grads = [internals.grad(parameters[at]) if at < len(parameters) else None for at in self.at]
        left = any(grad is None for grad in grads)
        for i, (grad, (before, since)) in enumerate(zip(grads, self.grads)):
            if grad is not None and grad is before():
                raised = (version_of(grad) or 0) - since
                left = left or not raised or raised < self.raised[i]
                self.raised[i] = max(self.raised[i], raised)
        self.grads = [(weakref.ref(one), version_of(one) or 0) if one is not None else (_nothing, 0) for one in grads]
        return left

    def forget(self, tensor: Any) -> None:
        """Drop every reference to a tensor."""
        self.grads = [(_nothing, 0) if known[0]() is tensor else known for known in self.grads]


class Unheld:
    """Looks at the first steps of all optimizers, and then ever more rarely.

    It begins anew in each cell, when a parameter that was frozen requires grad, and after a look that found a leaf for
    the first time: a model may be made again while its optimizer stays. So it does when backward ceases to reach what
    an optimizer holds: then names are looked for, too, as the calls of a new model may look like those of the old one.

    Parameters
    ----------
    watched
        The watched tensors.
    search
        Looks for the names that tensors have now, and watches those.
    """

    def __init__(self, watched: WatchedTensors, search: Callable[[], None] = lambda: None) -> None:
        self.watched, self.search = watched, search
        self._ends: dict[int, _Ends] = {}  # by the `id` of the optimizer
        self._left: set[int] = set()  # the optimizers of which backward does not reach both ends any more
        self._held: dict[int, Callable[[], Any]] = {}  # id -> what an optimizer that made a step holds, or held
        self._groups: dict[int, tuple[int, ...]] = {}  # id of an optimizer -> what was seen of its parameters
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._seen: dict[int, _Seen] = {}
        self._frozen: set[tuple[int, str]] = set()  # ids and paths of parameters that required no grad at a look
        self._still_frozen: list[Callable[[], Any]] = []
        self._asked = 0  # how many of these have been asked
        self._steps = 0  # since the beginning
        self._beginnings = 0

    def step(self, optimizer: Any, parameters: Sequence[Any], where: Callable[[], Place | None]) -> None:
        """Note a step."""
        self._hold(optimizer, parameters)
        if self._ceases(optimizer, parameters) and self._beginnings < MAX_BEGINNINGS:
            self._steps = 0
            self._beginnings += 1
        self._count(where, self.search if self._left else None)

    def _ceases(self, optimizer: Any, parameters: Sequence[Any]) -> bool:
        """Whether backward has ceased to reach an end of what an optimizer holds, after it had reached it."""
        key = id(optimizer)
        known = self._ends.get(key)
        if known is None or known.optimizer() is not optimizer:
            with_grad = [at for at, one in enumerate(parameters) if internals.grad(one) is not None]
            if not with_grad or len(self._ends) > MAX_BEGINNINGS:
                return False
            known = self._ends[key] = _Ends(optimizer, (with_grad[0], with_grad[-1]))
        left, before = known.step(parameters), known.left
        known.left = left
        (self._left.add if left else self._left.discard)(key)
        return left and not before

    def end_cell(self) -> None:
        """Begin anew."""
        self._steps = 0

    def _count(self, where: Callable[[], Place | None], search: Callable[[], None] | None = None) -> None:
        """Count a step, and look if it is time, with `search` first.

        A line tracer, which tells of steps by hand, must not read local variables: in Python 3.11 they would be lost.
        """
        if self._still_frozen and self._has_thawed():
            self._steps = 0
        self._steps += 1
        if self._steps & (self._steps - 1):  # no power of two
            return
        if search is not None:
            search()
        if self._look(where) and self._beginnings < MAX_BEGINNINGS:
            self._steps = 0
            self._beginnings += 1

    def _has_thawed(self) -> bool:
        """Whether one of the next frozen parameters requires grad. It is asked no more."""
        for _ in range(min(MOST_ASKED, len(self._still_frozen))):
            self._asked = (self._asked + 1) % len(self._still_frozen)
            parameter = self._still_frozen[self._asked]()
            if parameter is None or internals.requires_grad(parameter):
                del self._still_frozen[self._asked]
                return parameter is not None
        return False

    def written(self, leaves: Sequence[Any], again: bool, where: Callable[[], Place | None]) -> None:
        """Note that a line has written to leaves with a gradient; `again`: it has begun with the first once more."""
        for one in leaves:
            if not self._is_held(one) and len(self._held) <= MAX_HELD:
                self._held[id(one)] = weakref.ref(one)
                self._seen.pop(id(one), None)
        if again:
            self._count(where)

    def _hold(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        ends = (parameters[0], parameters[-1]) if parameters else ()
        seen = (len(parameters), *map(id, ends))
        if self._groups.get(id(optimizer)) == seen or len(self._held) > MAX_HELD:
            return
        self._groups[id(optimizer)] = seen
        self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        for one in parameters:
            self._held[id(one)] = weakref.ref(one)
            self._seen.pop(id(one), None)

    def let_go(self, tensor: Any) -> Callable[[], None]:
        """Drop every reference to a tensor for a while. Returns a function that restores what an optimizer holds."""
        self._seen = {key: seen for key, seen in self._seen.items() if seen.leaf() is not tensor}
        for ends in self._ends.values():
            ends.forget(tensor)
        if not self._is_held(tensor):
            return lambda: None
        del self._held[id(tensor)]

        def hold() -> None:
            self._held[id(tensor)] = weakref.ref(tensor)

        return hold

    def _is_held(self, leaf: Any) -> bool:
        known = self._held.get(id(leaf))
        return known is not None and known() is leaf

    def _look(self, where: Callable[[], Place | None]) -> bool:
        """Look at all watched leaves. Returns whether one was seen for the first time."""
        place: Place | None = None
        new = False
        for at, ref in enumerate(self.watched.refs):
            leaf = ref()
            if leaf is not None and not internals.requires_grad(leaf) and issubclass(type(leaf), torch.nn.Parameter):
                if len(self._frozen) < MAX_HELD and (id(leaf), self.watched.paths[at]) not in self._frozen:
                    self._frozen.add((id(leaf), self.watched.paths[at]))
                    self._still_frozen.append(ref)
            if leaf is None or not internals.requires_grad(leaf) or internals.is_view(leaf) or self._is_held(leaf):
                continue
            is_leaf, grad = internals.leaf_and_grad(leaf)
            if not is_leaf or grad is None:
                continue
            seen = self._seen.get(id(leaf))
            if seen is None or seen.leaf() is not leaf:
                if len(self._seen) < MAX_LEAVES:
                    self._seen[id(leaf)] = _Seen(leaf, self.watched.paths[at], grad)
                    self._seen[id(leaf)].thawed = (id(leaf), self.watched.paths[at]) in self._frozen
                    new = True
                continue
            seen.again(grad)
            if place is None:
                place, orphans, held = where(), self._orphans(), _held_by_any_optimizer()
                modules = internals.instances_alive(torch.nn.Module)
                containers, around = unregistered(modules), classes_around(modules, self._seen)
                partly = beside(modules, self._is_held)
                inside = names_in_unheld(modules, self._seen, self._is_held, held)
                around_held = owners_around(modules, self._seen, self._held_by_each())
                twins = Twins([one for ref in self._held.values() if (one := ref()) is not None], self._name)
            seen.container, seen.within = containers.get(id(leaf)), around.get(id(leaf), frozenset())
            seen.beside_held, seen.inside = id(leaf) in partly, inside.get(id(leaf), ())
            seen.copy_of = twins.of(leaf, seen.path)
            seen.place, seen.waiting = place, id(leaf) in held
            owners = around_held.get(id(leaf))
            if owners is not None or not seen.partly_held:  # an optimizer of before may be gone, and its model not yet
                seen.partly_held = owners is not None
                of_it = [shapes for key, shapes in orphans.items() if owners is None or key in owners]
                seen.orphans = tuple(shape for shapes in of_it for shape in shapes)
        return new

    def _name(self, tensor: Any) -> str:
        """The name that the program has for a tensor; empty: only optimizers lead to it, or nothing does."""
        name = self.watched.name(tensor)
        return "" if _OF_OPTIMIZER.search(name) else name

    def _held_by_each(self) -> dict[int, frozenset[int]]:
        """The ids of the parameters of the optimizers that have made a step, by the `id` of each."""
        alive = {key: one for key, ref in self._optimizers.items() if (one := ref()) is not None}
        return {
            key: frozenset(id(each) for group in _groups_of(one) for each in group["params"])
            for key, one in alive.items()
        }

    def _orphans(self) -> dict[int, list[tuple[int, ...]]]:
        """Return the sizes of parameters without a gradient that only optimizers lead to, by the `id` of each."""
        if len(self.watched.refs) >= MAX_WATCHED:
            return {}  # what has no name here may have one
        found: dict[int, list[tuple[int, ...]]] = {}
        for key, ref in self._optimizers.items():
            groups = _groups_of(one) if (one := ref()) is not None else ()
            held = (each for group in groups for each in group["params"])
            for parameter in (one for one in held if issubclass(type(one), torch.nn.Parameter)):
                at = self.watched.position(parameter)
                nameless = at is None or _OF_OPTIMIZER.search(self.watched.paths[at])
                if nameless and internals.requires_grad(parameter) and internals.grad(parameter) is None:
                    found.setdefault(key, []).append(internals.shape_of(parameter))
        return found

    def found(self) -> tuple[UnheldLeaf, ...]:
        """Return what was seen at two steps or more, and was not written to in between.

        Beside steps by hand not what waits for an optimizer: it was made for that, and has not come to its first step.
        """
        found = []
        held = _held_by_any_optimizer() if self._seen else frozenset[int]()
        for seen in self._seen.values():
            leaf = seen.leaf()
            same = leaf is None or (version_of(leaf) == seen.version and not self._is_held(leaf))
            by_hand, waiting = not self._optimizers, seen.waiting or id(leaf) in held
            if seen.times > 1 and seen.place is not None and same and not (by_hand and waiting):
                uniform = leaf is not None and _is_uniform(leaf)
                grows = seen.grows and leaf is not None and is_zero(internals.leaf_and_grad(leaf)[1]) is False
                dims = len(internals.shape_of(leaf)) if leaf is not None else -1
                facts = (seen.orphans, seen.parameter, by_hand, uniform, grows, dims, waiting, seen.thawed)
                known = (seen.container, seen.within, seen.beside_held, seen.inside, seen.copy_of, seen.partly_held)
                found.append(UnheldLeaf(seen.path, seen.place, *facts, *known))
        return tuple(found)


def _held_by_any_optimizer() -> frozenset[int]:
    """The ids of the parameters of all optimizers that there are."""
    groups = (group for one in internals.instances_alive(torch.optim.Optimizer) for group in _groups_of(one))
    return frozenset(id(parameter) for group in groups for parameter in group["params"])


def _groups_of(optimizer: Any) -> Sequence[dict[str, Any]]:
    groups: Sequence[dict[str, Any]] = vars(optimizer).get("param_groups", ())  # one that is being made has none yet
    return groups


def _is_uniform(leaf: Any) -> bool:
    """Whether all values of a small leaf are equal, as in ``torch.zeros(2)``; a single one is a round number."""
    if not internals.has_plain_values(leaf) or not 0 < internals.count_of(leaf) <= MAX_COMPARED:
        return False
    with torch.no_grad(), internals.quiet():
        values = leaf.detach().flatten()
        first = complex(values[0].item())
        round_ = first.imag == 0 and f"{first.real:.4g}" == f"{first.real:.6g}"  # what was learned has more digits
        return bool((values == values[0]).all()) and (len(values) > 1 or round_)
