"""Parameters of optimizers that no operation was given, while the root of a call was computed from others.

A new head that `forward` does not read under its name, an optimizer of another model, a perturbation that is not
added: what trains takes no part. Values with a graph are lost nowhere then, so no cut is there to be found.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget.capture.flow.leaves.copies import SAME
from graphwidget.capture.flow.operands import held, is_parameter
from graphwidget.model import IdleModule, MeasuredIdle, TextLine

__all__ = ["IdleHeld"]

_NO_USE = (*SAME, "grad", "copy_", "to", "cpu", "cuda", "requires_grad_")
_MOST_NAMED = 100


class IdleHeld:
    """Notes which parameters were given to operations, and which modules were called."""

    def __init__(self) -> None:
        self._used = WeakTensorKeyDictionary()
        self._held = WeakTensorKeyDictionary()
        self._called: weakref.WeakSet[Any] = weakref.WeakSet()

    def begin(self) -> Any:
        """Watch the calls of modules. Returns the handle that ends it."""
        return register_module_forward_pre_hook(lambda module, _: self._called.add(module))

    def made(self, optimizer: Any) -> None:
        """An optimizer was made."""
        for one in held(optimizer):
            self._held[one] = True

    def operation(self, by: str, given: Iterable[Any], results: Iterable[Any]) -> None:
        """An operation has run. Without grad mode it counts only behind the optimizer: before, it set first values."""
        if by in _NO_USE or all(map(is_parameter, results)):
            return
        for one in given:
            if one.is_leaf and (torch.is_grad_enabled() or one in self._held):
                self._used[one] = True

    def measured(
        self,
        optimizers: Iterable[Any],
        frozen: Sequence[tuple[Any, tuple[TextLine, ...]]],
        frames: Iterable[FrameType],
    ) -> MeasuredIdle | None:
        """What optimizers hold, if it requires grad and none of it was used; None: some was, or none requires grad.

        Parameters
        ----------
        frozen
            The parameters that were used and do not require grad, the last used one last, with the lines that froze
            them.
        """
        wanted = {id(one): one for optimizer in optimizers for one in held(optimizer) if one.requires_grad}
        if not wanted or any(one in self._used for one in wanted.values()):
            return None
        named, modules = dict[int, str](), dict[str, Any]()
        for name, value in _variables(frames):
            if isinstance(value, torch.nn.Module):
                for path, module in value.named_modules():
                    modules.setdefault(".".join(filter(None, (name, path))), module)
                for path, parameter in value.named_parameters():
                    named.setdefault(id(parameter), f"{name}.{path}")
            elif isinstance(value, torch.Tensor):
                named.setdefault(id(value), name)
        paths = tuple(named[one] for one in wanted if one in named)[:_MOST_NAMED]
        lines = next((lines for _, lines in reversed(frozen) if lines), ())
        froze = tuple(named[id(one)] for one, _ in frozen if id(one) in named)[:_MOST_NAMED]
        last = frozen[-1][0] if frozen else None
        return MeasuredIdle(paths, len(wanted), self._idle(modules, set(wanted), last), froze, lines)

    def _idle(self, modules: dict[str, Any], wanted: set[int], last: Any) -> tuple[IdleModule, ...]:
        """The outermost modules that were not called and have no other parameters; none unless they have all."""
        own = {path: {id(one) for one in module.parameters()} for path, module in modules.items()}
        idle = [path for path in own if own[path] and own[path] <= wanted and modules[path] not in self._called]
        found = dict[frozenset[int], IdleModule]()
        for path in idle:
            if path.rpartition(".")[0] not in idle:
                one, key = IdleModule(path, _instead(modules, path, last)), frozenset(own[path])
                if key not in found or (one.instead and not found[key].instead):  # the same by another name
                    found[key] = one
        return tuple(found.values()) if set[int]().union(*found) == wanted else ()


def _variables(frames: Iterable[FrameType]) -> Iterator[tuple[str, Any]]:
    """The variables of running code, and what `self` holds there."""
    for frame in frames:
        for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if name == "self" and not isinstance(value, torch.nn.Module):
                yield from ((f"self.{one}", inner) for one, inner in list(getattr(value, "__dict__", {}).items()))
            elif not name.startswith("_"):
                yield name, value


def _instead(modules: dict[str, Any], path: str, last: Any) -> str:
    """The attribute beside a module whose parameters were the last ones used, where it takes what that one takes."""
    parent = modules.get(path.rpartition(".")[0])
    children = parent.named_children() if parent is not None and last is not None else ()
    other = next(((name, one) for name, one in children if any(last is each for each in one.parameters())), None)
    new, old = (_taken(one) for one in (modules[path], other[1] if other is not None else None))
    return other[0] if other is not None and new is not None and new == old else ""


def _taken(module: Any) -> tuple[int, ...] | None:
    """The shape of the first weight of a module, without its outputs."""
    weights = (one for one in module.parameters() if one.dim() > 1) if module is not None else ()
    return next((tuple(one.shape[1:]) for one in weights), None)
