"""What must be noted when it happens, because nobody can see it afterwards.

* An in-place write into a view makes a CopySlices node. The node inside it, what that saved, and whether
  a call has released it are invisible from Python; `node.metadata`, a dict that lives with the C++ node, is
  where it is remembered.
* A hook on a tensor is kept by its node; a node's hooks cannot be listed.
* A tensor that was detached in place, or asked to need no gradient any more, says nothing of its past;
  a checkpoint that recomputes with it would.

`Watch` is a `TorchFunctionMode` that notes these while it is active. It costs a few microseconds for each call
of torch in Python, so it is for lines that may write in place, not for whole programs. What was not watched stays
unknown.

A note holds no user tensor: the version counter of an operand is kept through an empty tensor that shares it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from graphwidget.capture import torch_internals as internals
from graphwidget.capture.python_code import Reading, read_function

__all__ = ["Watch", "Write", "hooks_on_node", "note_hook", "numbers_with_hooks", "releasing", "was_frozen", "write_of"]

_WRITE, _HOOKS = "write", "hooks"
_ALIASES = {
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_", "__idiv__": "div_",
    "__setitem__": "__setitem__",
}  # fmt: skip
# What the hidden node keeps besides a copy of the target of its own: nothing; the first operand if the target
# needs a gradient; the first operand in any case; the result; perhaps any tensor among its operands.
# Every other operation may keep its operands or its result.
_NOTHING = frozenset(
    "add_ sub_ zero_ fill_ copy_ neg_ sin_ cos_ detach_ abs_ square_ log_ log2_ log10_ log1p_ erf_ floor_ ceil_ round_ "
    "trunc_ sign_ uniform_ normal_ random_ bernoulli_ exponential_".split()
)
_OPERAND_IF_TARGET = frozenset({"mul_"})
_OPERAND = frozenset({"div_", "masked_fill_"})
_RESULT = frozenset("exp_ exp2_ expm1_ tanh_ sigmoid_ relu_ sqrt_ rsqrt_ reciprocal_ tan_".split())
_PERHAPS_OPERANDS = frozenset(
    "__setitem__ clamp_ clamp_min_ clamp_max_ lerp_ addcmul_ addcdiv_ index_add_ index_copy_ index_fill_ scatter_ "
    "scatter_add_ masked_scatter_ index_put_ threshold_ hardtanh_ triu_ tril_".split()
)


@dataclass(frozen=True)
class _Operand:
    """A tensor that may have been saved: its version counter, the version then, and its memory's key."""

    counter: torch.Tensor
    version: int
    storage: int
    surely: bool

    @classmethod
    def of(cls, tensor: torch.Tensor, version: int, surely: bool) -> _Operand:
        counter = tensor.detach()
        counter.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)  # keeps the counter, drops the memory
        found = internals.storage_of(tensor)
        return cls(counter, version, found[0] if found else 0, surely)

    @property
    def modified(self) -> bool:
        return internals.version(self.counter) != self.version


@dataclass
class Write:
    """One in-place write into a view. `operands` None: it was not watched."""

    operands: tuple[_Operand, ...] | None = None
    overlap: bool = False
    released: bool = False

    @property
    def stale(self) -> bool | None:
        """Whether the hidden node would meet an operand that was modified since; None: cannot be known."""
        if self.operands is None:
            return None
        modified = [operand for operand in self.operands if operand.modified]
        return any(operand.surely for operand in modified) or (None if modified else False)

    @property
    def storages(self) -> tuple[int, ...]:
        """Keys of the memory of what was surely saved."""
        return tuple(operand.storage for operand in self.operands or () if operand.surely)


def write_of(node: Any) -> Write | None:
    """What was noted about a CopySlices node."""
    found: Write | None = internals.memory_of_node(node).get(_WRITE)
    return found


# ---------------------------------------------------------------- hooks


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
_MANY = 10_000


def note_hook(tensor: Any, hook: Any, handle: Any) -> None:
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


# ---------------------------------------------------------------- tensors that lost their history

_frozen: dict[int, weakref.ref[Any]] = {}


def _note_frozen(tensor: Any) -> None:
    key = id(tensor)
    _frozen[key] = weakref.ref(tensor, lambda _: _frozen.pop(key, None))


def was_frozen(tensor: Any) -> bool:
    """Whether the tensor was seen to need a gradient once and needs none now."""
    noted = _frozen.get(id(tensor))
    return noted is not None and noted() is tensor and not internals.requires_grad(tensor)


# ---------------------------------------------------------------- the watch


class Watch(TorchFunctionMode):
    """Notes in-place writes into views, hooks, and tensors that stop needing gradients, while it is active."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        name = _ALIASES.get(name, name)
        in_place = name.endswith("_") and (not name.endswith("__") or name == "__setitem__")
        target = args[0] if args else None
        if func is torch.Tensor.register_hook and target is not None:
            handle = func(*args, **kwargs)
            note_hook(target, args[1] if len(args) > 1 else kwargs.get("hook"), handle)
            return handle
        if not (in_place or name == "__set__") or not internals.is_tensor(target):
            return func(*args, **kwargs)
        needed_grad = internals.requires_grad(target)
        view = internals.is_view(target) or name == "__setitem__"  # which makes a view of its own
        before = _versions(name, args, kwargs) if view else []
        result = func(*args, **kwargs)
        if needed_grad and not internals.requires_grad(target):
            _note_frozen(target)
        if view and in_place:
            _note_write(name, target, before, needed_grad)
        return result


def _versions(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[torch.Tensor, int]]:
    """The operands and their versions before the write: `t[0].mul_(t[1])` makes its own operand stale."""
    if name in _NOTHING:
        return []
    others: list[Any] = [*args[1:], *kwargs.values()]
    if name == "lerp_" and not internals.is_tensor((others + [None, None])[1]):
        return []  # a number as weight: the other end is not needed
    if name == "__setitem__":  # only a tensor among the indices is kept, never the value
        others = list(args[1]) if isinstance(args[1], tuple) else [args[1]]
    return [(other, internals.version(other)) for other in others if internals.is_tensor(other)]


def _note_write(name: str, target: Any, before: list[tuple[torch.Tensor, int]], needed_grad: bool) -> None:
    base = internals.base(target)
    base = target if base is None else base
    node = internals.grad_fn(base)  # the base is no view: reading its history rebuilds nothing
    if node is None or type(node).__name__ != "CopySlices" or write_of(node) is not None:
        return
    surely = name in _OPERAND or (name in _OPERAND_IF_TARGET and needed_grad)
    if name in _OPERAND_IF_TARGET and not needed_grad:
        before = []
    operands = [_Operand.of(tensor, version, surely) for tensor, version in before]
    if name in _RESULT:
        if needed_grad:
            operands.append(_Operand.of(target, internals.version(target), True))
    elif name not in _NOTHING | _OPERAND | _OPERAND_IF_TARGET | _PERHAPS_OPERANDS:
        operands.append(_Operand.of(target, internals.version(target), False))
    internals.memory_of_node(node)[_WRITE] = Write(tuple(operands), overlap=_overlaps(base) or _overlaps(target))


def _overlaps(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))


# ---------------------------------------------------------------- released by a call

_local = threading.local()


@contextmanager
def releasing(nodes: list[Any], retain_graph: bool) -> Iterator[None]:
    """Around a call of the engine: note which of these CopySlices nodes it releases, also if it raises.

    Parameters
    ----------
    nodes
        The CopySlices nodes that the call may reach. Each gets a hook for the duration of the call; the list is
        empty afterwards.
    """
    ran: list[Any] = []
    token = object()
    running: list[object] = _local.__dict__.setdefault("running", [])

    def hook_on(node: Any) -> Any:
        def ran_now(*_: Any) -> None:
            if running[-1:] == [token]:  # not for a call nested in this one, which has its own token
                ran.append(node)

        return node.register_hook(ran_now)

    handles = [hook_on(node) for node in nodes]
    running.append(token)
    try:
        yield
    finally:
        running.remove(token)
        for handle in handles:
            handle.remove()
        if not retain_graph:
            _mark_released(ran)
        for held in (nodes, ran, handles):  # a traceback may keep this frame
            held.clear()


def _mark_released(nodes: list[Any]) -> None:
    for node in nodes:
        note = internals.memory_of_node(node).setdefault(_WRITE, Write())
        note.released = True
        note.operands = None if note.operands is None else ()
