"""Which functions of torch's cannot lead back into a cell: there the tracing of lines may rest (see `resting`).

A function leads back into a cell through what it is given: a function, a module or an object of the user's. So it has
to get tensors, numbers and words, torch's own optimizers, or modules, whose forward hooks tell where lines must be
traced again.
"""

from __future__ import annotations

import os
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FrameType, FunctionType, GeneratorType
from typing import Any

import torch

__all__ = ["TORCH", "torch_only"]

TORCH = os.path.dirname(torch.__file__) + os.sep
DEPTH = 4  # of values in values
MOST = 64  # values of a list, looked at one by one
_GOES_ON = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_PLAIN = frozenset(
    {torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format}
    | {int, float, complex, bool, str, bytes, slice, type(None), type(...)}
)


def torch_only(frame: FrameType, hears_modules: bool) -> bool:
    """Whether a function of torch's that begins cannot lead into a cell.

    Parameters
    ----------
    frame
        Of the function, at its beginning.
    hears_modules
        The forward hooks are there, which trace lines in modules of the user's.
    """
    if frame.f_code.co_flags & _GOES_ON or torch._C._len_torch_function_stack():
        return False
    return all(_plain(value, hears_modules, DEPTH) for value in frame.f_locals.values())


def _plain(value: Any, hears_modules: bool, depth: int) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    if not depth:
        return False
    if kind in (tuple, list, dict):
        inside = value.values() if kind is dict else value
        return len(value) <= MOST and all(_plain(one, hears_modules, depth - 1) for one in inside)
    if kind is FunctionType:  # torch's decorators hold functions, of torch's or of anybody's
        if not value.__code__.co_filename.startswith(TORCH):
            return False
        return all(_plain(cell.cell_contents, hears_modules, depth - 1) for cell in value.__closure__ or ())
    if kind is GeneratorType:  # `model.parameters()`
        return value.gi_code.co_filename.startswith(TORCH)
    if issubclass(kind, torch.nn.Module):
        return hears_modules
    return bool(kind.__module__.startswith("torch.optim."))
