"""Predicts from its source what Python code inside the graph would do. The code is never run.

A custom Function's backward, a hook, an unpack hook and a checkpointed function are Python code. A forecast can be
definite about a node that runs such code only if the code is *plain*: arithmetic on tensors, calls of torch and of
harmless builtins, writes into tensors that it created itself. Anything else that it surely does is an *effect* ("calls
backward itself"). A call of a function whose source cannot be read has no effect, but makes the code not plain.

The source also shows whether the code surely reads `ctx.saved_tensors`, and which gradients it returns as None. "Never
reads them" is claimed only if every use of `ctx` was followed. Unread code may read them if it gets `ctx`.

Caveats: a tensor method is known by its name only. Code that raises because of its input counts as plain.
"""

from __future__ import annotations

import functools
import types
import weakref
from dataclasses import replace
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.python.code_reading import RAISES, WRITES_ARGUMENT, Reading
from graphwidget.capture.python.effects import EffectVisitor, Parameter
from graphwidget.capture.python.source import code_of, resolve, tree_of

__all__ = ["WRITES_ARGUMENT", "Reading", "materializes_grads", "read_backward", "read_function"]

_UNREAD = Reading()
_read: weakref.WeakKeyDictionary[types.FunctionType, dict[Parameter, Reading]] = weakref.WeakKeyDictionary()


def read_backward(cls: type) -> Reading:
    """Read the backward of a custom Function, or its `vjp`, through `once_differentiable` and `torch.library`."""
    base = torch.autograd.Function
    backward: Any = getattr(cls, "backward", None)
    vjp: Any = getattr(cls, "vjp", None)
    if vjp not in (None, base.vjp):
        if backward is not base.backward:
            return Reading(effect=RAISES, reads_saved=False)  # torch accepts only one of them
        backward = vjp
    while _is_torch_wrapper(backward):
        backward = backward.__wrapped__
    formula = ti.formula_of_operator(backward, resolve)
    return read_function(backward) if formula is None else replace(read_function(formula), exact=False)


def materializes_grads(cls: type) -> bool:
    """Whether undefined gradients reach the backward as zeros: no `set_materialize_grads` in the class."""
    for name in ("forward", "setup_context"):
        code = getattr(getattr(cls, name, None), "__code__", None)
        if code is not None and "set_materialize_grads" in code.co_names:
            return False
    return True


def read_function(function: Any, depth: int = 0, context: Parameter = 0) -> Reading:
    """Read a function, method, lambda or partial. Other objects, and code without source, get the default reading.

    `context` is the parameter that receives `ctx`.
    """
    if type(function) is functools.partial:
        function = function.func
    function = getattr(function, "__func__", function) if type(function) is types.MethodType else function
    if type(function) is not types.FunctionType:
        return _UNREAD
    known = _read.setdefault(function, {}).get(context)
    if known is not None and all(code_of(resolve(function, name)) is code for name, code in known.helpers):
        return known
    tree = tree_of(function.__code__)
    result = _UNREAD if tree is None else EffectVisitor(function, tree, depth, context, read_function).reading()
    _read[function][context] = result
    return result


def _is_torch_wrapper(function: Any) -> bool:
    return (
        type(function) is types.FunctionType
        and hasattr(function, "__wrapped__")
        and "torch/autograd" in function.__code__.co_filename.replace("\\", "/")
    )
