"""The memory behind tensors: which tensors share it, and what holds it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from graphwidget.torch_internals.private import find, reader
from graphwidget.torch_internals.tensors import grad, requires_grad, untyped_storage

__all__ = [
    "is_held_elsewhere",
    "is_memory_of",
    "is_unshared",
    "storage_key",
    "storage_of",
    "weak_memory",
]

_address: Callable[[Any], int] = reader(
    "torch.UntypedStorage._cdata",
    "Which tensors share memory is unknown; their bytes are counted one by one.",
    attrgetter("_cdata"),
)


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """(key, bytes) of the storage of a tensor; None: it has none. The key is an address, valid while that lives."""
    try:
        storage = untyped_storage(tensor)
        return _address(storage), storage.nbytes()
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def is_held_elsewhere(grad: Any) -> bool:
    """Whether C++ holds a `.grad` elsewhere than in its leaf, or shares its memory: a saved tensor or a view does."""
    try:
        return _holders(grad) > _holders_of_a_grad()
    except AttributeError:
        return True


def _cannot_count(_: Any) -> int:
    raise AttributeError("this torch does not count who holds a tensor")


_NO_COUNTS = "Whether something in C++ holds a `.grad` is unknown: it counts as held."
_holders_of_tensor: Callable[[Any], int] = find("torch._C.TensorBase._use_count", _NO_COUNTS, _cannot_count)
_holders_of_memory: Callable[[Any], int] = find("torch._C._storage_Use_Count", _NO_COUNTS, _cannot_count)


def _holders(tensor: Any) -> int:
    storage = untyped_storage(tensor)
    return int(_holders_of_tensor(tensor)) + int(_holders_of_memory(_address(storage)))


@functools.lru_cache(maxsize=1)
def _holders_of_a_grad() -> int:
    leaf = torch.ones((), dtype=torch.float32, device="cpu", requires_grad=True)
    leaf.grad = torch.ones((), dtype=torch.float32, device="cpu")
    return _holders(grad(leaf))


def is_unshared(tensor: Any) -> bool:
    """Whether only its Python object holds a tensor and its memory: then no node has saved it or a view of it.

    Only for plain tensors that do not require grad. False where unknown.
    """
    try:
        return type(tensor) is torch.Tensor and not requires_grad(tensor) and _holders(tensor) <= _holders_of_a_tensor()
    except (RuntimeError, NotImplementedError, AttributeError):
        return False


@functools.lru_cache(maxsize=1)
def _holders_of_a_tensor() -> int:
    return _holders(torch.ones((), dtype=torch.float32, device="cpu"))


# Only the key of `storage_of`, faster. 0 or an exception if the tensor has no storage.
storage_key: Callable[[Any], int] = find(
    "torch._C._storage_address",
    "Nothing: finding out which tensors share memory takes longer.",
    lambda tensor: _address(untyped_storage(tensor)),
)


def weak_memory(tensor: Any) -> Any:
    """A weak reference to the storage of a tensor, None if it has none. It keeps no data alive."""
    try:
        return StorageWeakRef(untyped_storage(tensor))  # type: ignore[no-untyped-call]
    except Exception:  # sparse, functional: no storage
        return None


def is_memory_of(reference: Any, tensor: Any) -> bool:
    """Whether a reference from `weak_memory` is to the storage of this tensor, and that storage is still alive."""
    found = storage_of(tensor)
    if reference is None or found is None:
        return reference is None and found is None
    return bool(reference.cdata == found[0]) and not reference.expired()
