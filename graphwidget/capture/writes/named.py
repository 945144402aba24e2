"""The tensors that a line names, among the variables of its frame."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.owners import reading

__all__ = ["resolve", "variables_of"]

MAX_ELEMENTS = 16  # elements compared in a list that a line names and may write to

Variables = tuple[Mapping[str, Any], Mapping[str, Any]]  # of a frame, and the global ones


def variables_of(frame: FrameType) -> Variables:
    """Return the variables of a frame, and the global ones."""
    # Not `reading.locals_of`: emptying the dict while a trace function runs would empty the frame.
    local = frame.f_locals if frame.f_code.co_flags & reading.CO_OPTIMIZED else {}
    return local, frame.f_globals


def resolve(variables: Variables, chain: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Return the names and tensors that `chain` leads to among the variables. No user code runs.

    They are a tensor, its `.grad`, the first elements of a list, tuple or dict, or the first parameters and buffers of
    a module: `Embedding` and `BatchNorm` write to their own in code that is not the user's.
    """
    name, *attributes = chain
    local, around = variables
    value: Any = local.get(name)
    if value is None:
        value = around.get(name)
    for attribute in attributes:
        if value is None or type(value) in (list, tuple, dict):
            break
        if internals.is_tensor(value):
            if attribute != "grad":
                break
            value = internals.leaf_and_grad(value)[1]
        else:
            owner, value = value, reading.attribute(value, attribute)
            if value is None:
                value = reading.static_attribute(type(owner), attribute)
        name = f"{name}.{attribute}"
    if internals.is_tensor(value):
        return [(name, value)]
    if type(value) in (list, tuple):
        elements = [(f"{name}[{i}]", one) for i, one in enumerate(value[:MAX_ELEMENTS])]
    elif type(value) is dict:
        elements = [(f"{name}[{key!r}]", value[key]) for key in islice(value, MAX_ELEMENTS) if type(key) in (str, int)]
    elif torch.nn.Module in reading.mro_of(type(value)):
        elements = [(f"{name}.{inner}", one) for inner, one in islice(reading.module_tensors(value), MAX_ELEMENTS)]
    else:
        return []
    return [(path, one) for path, one in elements if internals.is_tensor(one)]
