"""Parameters that a line puts into a module of which an optimizer has taken everything that trains before.

The module had others, or fewer, then: `weight_norm`, an adapter, another head. What joins it later the optimizer does
not have. This measures which line put them there, whether steps found gradients for them, and whether any optimizer has
got them since.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.operands import held, is_parameter
from graphwidget.model import MeasuredJoined, TextLine

__all__ = ["JoinedParameters"]

ENOUGH = 2  # steps with a gradient that show it
_MOST = 5000  # parameters that are followed
_MOST_OPTIMIZERS = 50
_MOST_NAMES = 4


class _Joined:
    """One of them. It is plain data but for weak references: a program's model may be gone at the end."""

    def __init__(self, lines: tuple[TextLine, ...], made: tuple[TextLine, ...], optimizer: Any) -> None:
        self.lines, self.made, self.optimizer = lines, made, weakref.ref(optimizer)
        self.stepped: tuple[TextLine, ...] = ()
        self.paths: dict[str, None] = {}
        self.steps = 0  # that found a gradient
        self.held = False
        self.replacing = False  # something that the optimizer holds is in no module of these any more


class _Optimizer:
    """An optimizer, the lines that made it, and the modules of which it took everything, with all their parts."""

    def __init__(self, optimizer: Any, lines: tuple[TextLine, ...]) -> None:
        self.ref, self.lines = weakref.ref(optimizer), lines
        self.modules: weakref.WeakSet[Any] = weakref.WeakSet()
        self.add(_taken_whole({id(one) for one in held(optimizer)}))
        self._then = self._registered()

    def _registered(self) -> set[int]:
        """The ids of what it holds and its modules have."""
        own = {id(one) for one in held(optimizer)} if (optimizer := self.ref()) is not None else set[int]()
        return own & {id(one) for module in self.modules for one in module.parameters()}

    def has_lost_some(self) -> bool:
        """Whether its modules do not have any more all that they had."""
        return not self._then <= self._registered()

    def add(self, modules: Iterator[Any]) -> None:
        for module in modules:
            self.modules.update(module.modules())


class JoinedParameters:
    """Watches what modules are given, in a program that runs for this purpose.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    name
        The name of a leaf; empty: it has none.
    """

    def __init__(self, lines: Callable[[], tuple[TextLine, ...]], name: Callable[[Any], str]) -> None:
        self._lines, self._name = lines, name
        self._optimizers: list[_Optimizer] = []
        self._joined = WeakTensorKeyDictionary()
        self._all: list[_Joined] = []
        self._restores: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Watch from now on."""
        made = torch.optim.Optimizer.__init__

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            made(optimizer, *args, **kwargs)
            self._made(optimizer)

        self._put(torch.optim.Optimizer, "__init__", init)
        for method in ("__setattr__", "register_parameter", "add_module"):
            self._put(torch.nn.Module, method, self._watched(getattr(torch.nn.Module, method)))
        self._restores.append(register_optimizer_step_post_hook(self._step).remove)

    def end(self) -> None:
        """Watch no more."""
        for restore in reversed(self._restores):
            restore()
        self._restores.clear()

    def _put(self, owner: type, name: str, new: Callable[..., Any]) -> None:
        before = getattr(owner, name)
        setattr(owner, name, new)
        self._restores.append(lambda: setattr(owner, name, before))

    def _watched(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of modules that gives them a parameter or a part."""

        def put(module: Any, name: str, value: Any) -> None:
            method(module, name, value)
            if self._optimizers and (is_parameter(value) or isinstance(value, torch.nn.Module)):
                self._has_got(module, value)

        def called(module: Any, *args: Any, **kwargs: Any) -> None:
            if len(args) == 2 and not kwargs:
                return put(module, *args)
            return method(module, *args, **kwargs)  # type: ignore[no-any-return]

        return called

    def _made(self, optimizer: Any) -> None:
        for one in held(optimizer):
            known = self._joined.pop(one, None)
            if known is not None:
                known.held = True
        if len(self._optimizers) < _MOST_OPTIMIZERS:
            self._optimizers.append(_Optimizer(optimizer, self._lines()))

    def _has_got(self, module: Any, value: Any) -> None:
        """A module has got a parameter or a part."""
        found = next((one for one in self._alive() if module in one.modules), None)
        if found is None:
            return
        is_part = isinstance(value, torch.nn.Module)
        if is_part:
            found.add(iter((value,)))
        own = self._held_now()
        for parameter in value.parameters() if is_part else (value,):
            if id(parameter) not in own and parameter not in self._joined and len(self._all) < _MOST:
                self._joined[parameter] = one = _Joined(self._lines(), found.lines, found.ref())
                self._all.append(one)

    def _alive(self) -> Iterator[_Optimizer]:
        """The optimizers that there are, the newest first."""
        return (one for one in reversed(self._optimizers) if one.ref() is not None)

    def _held_now(self) -> set[int]:
        alive = (one.ref() for one in self._alive())
        return {id(parameter) for optimizer in alive if optimizer is not None for parameter in held(optimizer)}

    def _step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer has made a step."""
        if not any(one.steps < ENOUGH and one.optimizer() is optimizer for one in self._joined.values()):
            return
        own = self._held_now()
        lost = any(one.ref() is optimizer and one.has_lost_some() for one in self._optimizers)
        for parameter, one in list(self._joined.items()):
            one.held = one.held or id(parameter) in own
            if one.optimizer() is optimizer and parameter.grad is not None and not one.held:
                one.steps += 1
                one.replacing = one.replacing or lost
                one.stepped = one.stepped or self._lines()
                if (path := self._name(parameter)) and len(one.paths) < _MOST_NAMES:
                    one.paths[path] = None

    def found(self) -> tuple[MeasuredJoined, ...]:
        """What steps found with a gradient, and no optimizer has got, by the lines that put it there."""
        own = self._held_now()
        for parameter, one in self._joined.items():
            one.held = one.held or id(parameter) in own
        groups: dict[tuple[Any, ...], list[_Joined]] = {}
        for one in self._all:
            if one.steps >= ENOUGH and not one.held:
                groups.setdefault((one.lines, one.made, one.stepped, one.replacing), []).append(one)
        return tuple(
            MeasuredJoined(*lines, tuple(dict.fromkeys(path for one in several for path in one.paths)), replacing)
            for (*lines, replacing), several in groups.items()
        )


def _taken_whole(own: set[int]) -> Iterator[Any]:
    """The modules that have parameters which require grad, all of which an optimizer holds."""
    for module in internals.instances_alive(torch.nn.Module):
        trained = [id(one) for one in module.parameters() if one.requires_grad]
        if trained and own.issuperset(trained):
            yield module
