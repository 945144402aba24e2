"""Backward hooks that the program registers, and that no backward call ever runs.

Each hook that the user's own code registers on a module or a tensor is watched: whether it ran, and which calls began
while it was registered and its module had computed something for them. Of the module's last forward before such a call
it is noted what became of a graph there, so that it is known why the hook had nothing to wait for.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn.modules import module as module_hooks

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.operands import tensors_in
from graphwidget.capture.owners import reading
from graphwidget.model import MeasuredHook, PlainInput, TextLine

__all__ = ["UnrunHooks"]

_OF_MODULES = ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")
_OF_TENSORS = ("register_hook", "register_post_accumulate_grad_hook")
_MOST_HOOKS = 5000
_MOST_CALLS = 8  # that one hook remembers

Lines = Callable[[], tuple[TextLine, ...]]


@dataclass(eq=False)
class _Forward:
    """The last time that a module ran: how many calls had begun; the rest as in `MeasuredHook`."""

    calls: int
    why: str
    path: str = ""
    lines: tuple[TextLine, ...] = ()
    frozen: tuple[TextLine, ...] = ()
    plain: PlainInput | None = None


@dataclass(eq=False)
class _Registered:
    """A hook, and what is known of it so far."""

    by: str
    lines: tuple[TextLine, ...]
    hook: TextLine
    owner: Any  # a weak reference to the module; None: it is a tensor's
    handle: Any = None
    forward: _Forward | None = None
    ran: bool = False
    missed: list[int] = field(default_factory=list)
    why: _Forward | None = None  # the forward before the last call that missed it

    @property
    def registered(self) -> bool:
        """Whether it was not removed."""
        known = self.handle.hooks_dict_ref() if self.handle is not None else None
        return known is not None and self.handle.id in known


class UnrunHooks:
    """Told of calls; it sees by itself what modules do.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    line_of
        The first line of a function of the user's own; None: it is another's.
    frozen_at
        The lines at which a parameter was frozen.
    """

    def __init__(
        self,
        lines: Lines,
        line_of: Callable[[CodeType], TextLine | None],
        frozen_at: Callable[[Any], tuple[TextLine, ...]],
    ) -> None:
        self._lines, self._line_of, self._frozen_at = lines, line_of, frozen_at
        self._all: list[_Registered] = []
        self._by_module: weakref.WeakKeyDictionary[Any, list[_Registered]] = weakref.WeakKeyDictionary()
        self._last: weakref.WeakKeyDictionary[Any, _Forward] = weakref.WeakKeyDictionary()
        self._calls = 0
        self._running: list[tuple[Any, Sequence[Any]]] = []  # modules whose forward is running, outermost first
        self._new: list[tuple[Any, _Forward]] = []  # forwards within the outermost module that is running

    def begin(self) -> None:
        """Watch from now on, for the rest of the process."""
        for of, names in ((torch.nn.Module, _OF_MODULES), (torch.Tensor, _OF_TENSORS)):
            for name in names:
                setattr(of, name, self._watched(getattr(of, name), name))
        module_hooks.register_module_forward_pre_hook(self._before)
        module_hooks.register_module_forward_hook(self._after, with_kwargs=True, always_call=True)

    def _watched(self, register: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(register)
        def registering(owner: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._note(owner, hook, name)
            if known is None:
                return register(owner, hook, *args, **kwargs)
            known.handle = register(owner, _counting(hook, known), *args, **kwargs)
            return known.handle

        return registering

    def _note(self, owner: Any, hook: Any, name: str) -> _Registered | None:
        """Begin to watch a hook; None: it is none of the user's own."""
        try:
            code = reading.code_of(hook)
            line = self._line_of(code) if code is not None else None
            if line is None or len(self._all) >= _MOST_HOOKS or is_dynamo_compiling():
                return None
            of_module = isinstance(owner, torch.nn.Module)
            known = _Registered(name, self._lines(), line, weakref.ref(owner) if of_module else None)
        except Exception:  # what is not known is not told
            return None
        self._all.append(known)
        if of_module:
            self._by_module.setdefault(owner, []).append(known)
        return known

    # ------------------------------------------------------------------ what modules do

    def _before(self, module: Any, args: Any) -> None:
        if not is_dynamo_compiling():
            self._running.append((module, args))

    def _after(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if is_dynamo_compiling():
            return
        while self._running:  # an exception may have skipped the end of inner ones
            running, given = self._running.pop()
            if running is module:
                break
        else:
            return
        try:
            with internals.quiet():
                self._note_forward(module, (args, kwargs), output, (given, kwargs))
        except Exception:  # tensors of a kind of their own
            self._new.clear()

    def _note_forward(self, module: Any, inputs: Any, output: Any, given: tuple[Any, Any]) -> None:
        """A module has run. `given`: what its caller gave it, where it is the outermost that was running."""
        if output is None:  # it raised, or it returns nothing
            return
        forward = self._last[module] = _Forward(self._calls, _why(module, inputs, output))
        self._new.append((module, forward))
        for hook in self._by_module.get(module, ()):
            hook.forward = forward
        if not self._running:
            new, self._new = self._new, []
            lines = self._lines()
            for inner, one in new:
                one.lines = lines
                if inner in self._by_module:
                    self._describe(inner, one, module, given)

    def _describe(self, module: Any, forward: _Forward, outer: Any, given: tuple[Any, Any]) -> None:
        """Note what a module is called in the outermost one, and what is frozen there."""
        forward.path = next((path for path, one in outer.named_modules() if one is module), "")
        if forward.why == "frozen":
            lines = (self._frozen_at(one) for one in module.parameters())
            forward.frozen = next((found for found in lines if found), ())
            forward.plain = _plain(*given)

    # ------------------------------------------------------------------ what calls do

    def called(self, n: int) -> None:
        """The call n begins."""
        for one in self._all:
            if not one.ran and one.registered and (found := self._waits(one)) is not None:
                one.missed.append(n)
                del one.missed[:-_MOST_CALLS]
                one.why = found
        self._calls += 1

    def _waits(self, one: _Registered) -> _Forward | None:
        """The forward whose gradient a hook may expect from the call that begins; None: there is none."""
        if one.owner is None:
            return _Forward(self._calls, "tensor")
        if one.forward is not None:
            return one.forward if one.forward.calls == self._calls else None
        owner = one.owner()
        last = self._last.get(owner) if owner is not None else None
        if last is None:
            return _Forward(self._calls, "uncalled") if owner is not None else None
        return replace(last, why="late") if last.calls == self._calls and last.why == "" else None

    def found(self) -> tuple[MeasuredHook, ...]:
        """The hooks that never ran, the first of each line and function."""
        ran = {(one.lines[:1], one.hook) for one in self._all if one.ran}
        told: dict[Any, MeasuredHook] = {}
        for one in self._all:
            if one.ran or one.why is None:
                continue
            key, why = (one.lines[:1], one.hook), one.why
            what = why.why, why.path, why.lines, why.frozen, why.plain
            measured = MeasuredHook(one.by, one.lines, one.hook, tuple(one.missed), *what, elsewhere=key in ran)
            told.setdefault((key, why.why), measured)
        return tuple(told.values())


def _counting(hook: Any, known: _Registered) -> Any:
    """A hook that notes that it runs."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        known.ran = True
        return hook(*args, **kwargs)

    return functools.update_wrapper(counted, hook)


def _why(module: Any, given: Any, output: Any) -> str:
    """Why what a module returned has no graph that a hook of it may wait for; empty: it has one."""
    direct = output if isinstance(output, tuple) else (output,)
    if any(_requires(one) for one in direct):
        return ""
    if not torch.is_grad_enabled():
        return "grad_off"
    if any(_requires(one) for one in _deep(output)):
        return "packed"
    if any(_requires(one) for one in (*tensors_in(given), *module.parameters())):
        return "cut"
    return "frozen"


def _requires(one: Any) -> bool:
    return isinstance(one, torch.Tensor) and one.requires_grad


def _deep(output: Any) -> Iterator[Any]:
    """The tensors in an output, also in objects with attributes."""
    yield from tensors_in((output,))
    if not isinstance(output, (torch.Tensor, list, tuple, dict)):
        yield from tensors_in((dict(getattr(output, "__dict__", {})),))


def _plain(args: Sequence[Any], kwargs: Any) -> PlainInput | None:
    """The first input of a module that can require grad, and does not; None: there is none."""
    for key, one in (*enumerate(args), *kwargs.items()):
        if not isinstance(one, torch.Tensor) or one.requires_grad or one.is_inference():
            continue
        if one.is_floating_point() or one.is_complex():
            return PlainInput(key if isinstance(key, int) else None, key if isinstance(key, str) else "", len(args))
    return None
