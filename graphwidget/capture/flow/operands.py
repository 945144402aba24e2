"""What an operation is given and returns, as the measurement of lineage reads it: tensors, indices, leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.overrides import resolve_name

from graphwidget import torch_internals as internals

__all__ = ["held", "is_index", "is_parameter", "leaves_behind", "name_of", "tensors_in", "writes_in_place"]

_MOST_NODES = 3000  # of a graph, looked at for leaves


def name_of(func: Any) -> str:
    """``detach`` of ``torch.Tensor.detach``, ``data`` of the property."""
    return (
        (resolve_name(func) or getattr(func, "__name__", ""))
        .removesuffix(".__get__")
        .removesuffix(".__set__")
        .rpartition(".")[2]
    )


def held(optimizer: Any) -> list[Any]:
    """The parameters of an optimizer."""
    return [one for group in optimizer.param_groups for one in group["params"]]


def is_index(value: Any) -> bool:
    """Whether a tensor can only choose among values: a label, or an action that `log_prob` scores."""
    return not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)


def writes_in_place(by: str) -> bool:
    """Whether an operation of that name changes its first argument: a method, an element, or `.data`."""
    return by in ("data", "__setitem__") or (by.endswith("_") and not by.endswith("__"))


def is_parameter(value: Any) -> bool:
    return isinstance(value, torch.nn.Parameter)


def tensors_in(value: Any, depth: int = 4) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one, depth - 1)
    elif depth and isinstance(value, dict):
        yield from tensors_in(list(value.values()), depth)


def leaves_behind(values: Iterable[Any]) -> Iterator[Any]:
    """The leaves that require grad behind some values."""
    queue: list[Any] = []
    for one in values:
        if one.grad_fn is None and internals.is_view(one):  # a view that was made without grad mode
            one = internals.base(one)
        if one.grad_fn is None:
            yield one
        else:
            queue.append(one.grad_fn)
    seen = set(queue)
    for node in queue:
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            yield leaf
        for following, _ in node.next_functions:
            if following is not None and following not in seen and len(seen) < _MOST_NODES:
                seen.add(following)
                queue.append(following)
