"""Records events that cannot be read from tensors and nodes afterwards.

* A hook on a tensor. The tensor's node keeps the hook but does not expose it. A living tensor shows its hooks; a dead
  one (an activation inside a function) does not. The record is in `node.metadata`, a dict that lives with the node.
* A tensor that required grad once and was detached or frozen in place. The tensor shows no trace of it, but a
  checkpoint that recomputes with it saves other tensors than before.

`watch` replaces three methods of `torch.Tensor`, which are called rarely, by wrappers that also record the event.
A record keeps nothing alive.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, KeysView
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture import tensor_swaps
from graphwidget.capture.python.code import Reading, read_function

__all__ = [
    "hooks_on_node",
    "is_python",
    "ids_that_lost_their_gradient",
    "lost_its_gradient",
    "numbers_with_hooks",
    "unstoppable_unpack_hooks",
    "watch",
]

_HOOKS = "hooks"
_MANY = 10_000


@dataclass(frozen=True)
class _Hook:
    registered: weakref.ref[Any]  # the dict of hooks that its handle refers to
    key: int
    reading: Reading

    @property
    def there(self) -> bool:
        hooks = self.registered()
        return hooks is not None and self.key in hooks


# Sequence number of a node with a recorded hook -> the dict of hooks that the handle refers to. The metadata of other
# nodes is not read: reading it would create a dict on the node.
_hooked_nodes: dict[int, weakref.ref[Any]] = {}


def watch(problem: Callable[[BaseException], None] = lambda error: None) -> Callable[[], None]:
    """Start to record. Return a function that stops it.

    Parameters
    ----------
    problem
        Called with an exception of our own; the user's call continues in any case.
    """
    watching = True

    def replace(name: str, record: Callable[..., None]) -> Callable[[], None]:
        inherited, original = name not in vars(torch.Tensor), getattr(torch.Tensor, name)

        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            with internals.quiet():  # a torch mode of the user's sees the call itself, but not our reading
                needed = internals.requires_grad(self)
            result = original(self, *args, **kwargs)
            if watching:
                try:
                    with internals.quiet():
                        record(self, needed, result, *args, **kwargs)
                except Exception as error:
                    problem(error)
            return result

        def restore() -> None:
            if vars(torch.Tensor).get(name) is not method:
                return  # somebody has wrapped it once more
            if inherited:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, original)

        setattr(torch.Tensor, name, method)
        return restore

    def let_go(tensor: Any) -> Callable[[], None]:
        """Drop the record of a tensor for a swap. The restored record is again that of the same Python object."""
        if _lost.pop(id(tensor), None) is None:
            return lambda: None
        return lambda: _lose(tensor)

    recorders = {"register_hook": _record_hook, "detach_": _record_loss, "requires_grad_": _record_loss}
    restores = [replace(name, record) for name, record in recorders.items()]
    restores += [_watch_unpack_hooks(), tensor_swaps.watch(let_go, problem)]

    def end() -> None:
        nonlocal watching
        watching = False
        for restore in restores:
            restore()

    return end


_unstoppable = False


def _watch_unpack_hooks() -> Callable[[], None]:
    """Record whether an unpack hook is used that is no Python function. Return a function that stops it."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    original = hooks.__enter__

    @functools.wraps(original)
    def enter(self: Any) -> Any:
        global _unstoppable
        _unstoppable |= not is_python(self.unpack_hook)
        return original(self)

    def restore() -> None:
        if hooks.__enter__ is enter:
            hooks.__enter__ = original  # type: ignore[method-assign]

    hooks.__enter__ = enter  # type: ignore[method-assign]
    return restore


def unstoppable_unpack_hooks() -> bool:
    """Whether an unpack hook was ever used that is no Python function, such as a dict's `pop`.

    Once there was one, hidden saved tensors must not be unpacked: the hook would run.
    """
    return _unstoppable


def is_python(function: Any) -> bool:
    """Whether calling it begins with a Python function, which can be stopped before its first instruction."""
    while type(function) is functools.partial:
        function = function.func
    return isinstance(function, (FunctionType, MethodType)) or isinstance(type(function).__call__, FunctionType)


def _record_hook(tensor: Any, needed: bool, handle: Any, hook: Any) -> None:
    """Record a hook on a tensor that has a node. The hooks of a leaf are visible on the leaf itself."""
    node = internals.grad_fn(tensor)
    registered, key = getattr(handle, "hooks_dict_ref", None), getattr(handle, "id", None)
    if node is None or registered is None or key is None:
        return
    if len(_hooked_nodes) >= _MANY:
        for number in [number for number, hooks in _hooked_nodes.items() if hooks() is None]:
            del _hooked_nodes[number]
    _hooked_nodes[internals.node_readers(type(node))[1](node)] = registered
    internals.memory_of_node(node).setdefault(_HOOKS, []).append(_Hook(registered, key, read_function(hook)))


def numbers_with_hooks() -> Collection[int]:
    """Return the sequence numbers of the nodes with recorded hooks."""
    return _hooked_nodes.keys()


def hooks_on_node(node: Any) -> dict[int, Reading]:
    """Return the recorded hooks of a node that are still registered: key of the handle -> reading of the hook."""
    return {hook.key: hook.reading for hook in internals.memory_of_node(node).get(_HOOKS, ()) if hook.there}


_lost: dict[int, weakref.ref[Any]] = {}


def _record_loss(tensor: Any, needed: bool, *_: Any) -> None:
    if needed and not internals.requires_grad(tensor):
        _lose(tensor)


def _lose(tensor: Any) -> None:
    key = id(tensor)
    _lost[key] = weakref.ref(tensor, functools.partial(_lost.pop, key))


def ids_that_lost_their_gradient() -> KeysView[int]:
    """Return the ids of living tensors that stopped to require grad; they may require grad again since.

    A tensor that was detached in place and then required grad again looks like any leaf, but a node that saved it
    raises.
    """
    return _lost.keys()


def lost_its_gradient(tensor: Any) -> bool:
    """Whether the tensor required grad at some time and does not now."""
    reference = _lost.get(id(tensor))
    return reference is not None and reference() is tensor and not internals.requires_grad(tensor)
