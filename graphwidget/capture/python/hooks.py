"""What must be noted when it happens, because nobody can see it afterwards.

* A hook on a tensor: the tensor's node keeps it and cannot be asked for it. A living tensor shows its hooks; one that
  has died (an activation inside a function) does not. The note is in `node.metadata`, a dict that lives with the node.
* That a tensor needed a gradient once: detached or frozen in place, it says nothing of its past; a checkpoint that
  recomputes with it would.

`watch` replaces three methods of `torch.Tensor`, which are called rarely, by ones that do the same and take the note.
A note keeps nothing alive.
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
    registered: weakref.ref[Any]  # the dict that the handle removes it from
    key: int
    reading: Reading

    @property
    def there(self) -> bool:
        hooks = self.registered()
        return hooks is not None and self.key in hooks


# Sequence number of a node on which a hook was noted -> what the hook's handle removes it from. Only these nodes'
# metadata is looked at: reading it makes a dict on the node.
_noted: dict[int, weakref.ref[Any]] = {}


def watch(problem: Callable[[BaseException], None] = lambda error: None) -> Callable[[], None]:
    """Take notes from now on. Returns what ends it.

    Parameters
    ----------
    problem
        Is told of an exception of our own; the user's call goes on in any case.
    """
    watching = True

    def noting(name: str, note: Callable[..., None]) -> Callable[[], None]:
        inherited, original = name not in vars(torch.Tensor), getattr(torch.Tensor, name)

        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            with internals.quiet():  # a mode of the user's hears of the call itself, not of our reading
                needed = internals.requires_grad(self)
            result = original(self, *args, **kwargs)
            if watching:
                try:
                    with internals.quiet():
                        note(self, needed, result, *args, **kwargs)
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
        """What was noted of a tensor's loss stays with the name that it has."""
        if _lost.pop(id(tensor), None) is None:
            return lambda: None
        return lambda: _lose(tensor)

    notes = {"register_hook": _note_hook, "detach_": _note_loss, "requires_grad_": _note_loss}
    restores = [noting(name, note) for name, note in notes.items()]
    restores += [_notice_unpack_hooks(), tensor_swaps.watch(let_go, problem)]

    def end() -> None:
        nonlocal watching
        watching = False
        for restore in restores:
            restore()

    return end


_unstoppable = False


def _notice_unpack_hooks() -> Callable[[], None]:
    """Remember that an unpack hook was in use which is no Python function. Returns what ends it."""
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
    """Whether an unpack hook that is no Python function, such as a dict's own `pop`, was ever seen in use.

    Where one may sit, nothing hidden may be unpacked: it would run.
    """
    return _unstoppable


def is_python(function: Any) -> bool:
    """Whether calling it begins with a Python function, which can be stopped before its first instruction."""
    while type(function) is functools.partial:
        function = function.func
    return isinstance(function, (FunctionType, MethodType)) or isinstance(type(function).__call__, FunctionType)


def _note_hook(tensor: Any, needed: bool, handle: Any, hook: Any) -> None:
    """Remember a hook on a tensor that has a node. A leaf's hooks are visible on the leaf itself."""
    node = internals.grad_fn(tensor)
    registered, key = getattr(handle, "hooks_dict_ref", None), getattr(handle, "id", None)
    if node is None or registered is None or key is None:
        return
    if len(_noted) >= _MANY:
        for number in [number for number, hooks in _noted.items() if hooks() is None]:
            del _noted[number]
    _noted[internals.node_readers(type(node))[1](node)] = registered
    internals.memory_of_node(node).setdefault(_HOOKS, []).append(_Hook(registered, key, read_function(hook)))


def numbers_with_hooks() -> Collection[int]:
    """Sequence numbers of the nodes on which hooks were noted."""
    return _noted.keys()


def hooks_on_node(node: Any) -> dict[int, Reading]:
    """The hooks that were noted on a node and are still there: key of the handle -> what the hook was read to do."""
    return {hook.key: hook.reading for hook in internals.memory_of_node(node).get(_HOOKS, ()) if hook.there}


_lost: dict[int, weakref.ref[Any]] = {}


def _note_loss(tensor: Any, needed: bool, *_: Any) -> None:
    if needed and not internals.requires_grad(tensor):
        _lose(tensor)


def _lose(tensor: Any) -> None:
    key = id(tensor)
    _lost[key] = weakref.ref(tensor, functools.partial(_lost.pop, key))


def ids_that_lost_their_gradient() -> KeysView[int]:
    """Ids of living tensors that were seen to lose their gradient, though they may have been given a new one since.

    One that was `.detach_()`ed and then made to require one again looks like any leaf, and what saved it raises.
    """
    return _lost.keys()


def lost_its_gradient(tensor: Any) -> bool:
    """Whether the tensor was seen to need a gradient once and needs none now."""
    noted = _lost.get(id(tensor))
    return noted is not None and noted() is tensor and not internals.requires_grad(tensor)
