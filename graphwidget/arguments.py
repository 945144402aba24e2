"""What the public functions can be given: tensors with a graph, and options that exist. Misuse names the next step."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["check_has_graph", "no_grad_reason", "refuses_unknown_options", "tensors_in"]

P = ParamSpec("P")
R = TypeVar("R")


def refuses_unknown_options(function: Callable[P, R]) -> Callable[P, R]:
    """An unknown keyword argument is an error that names the nearest one that exists."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in inspect.signature(function).parameters:
                near = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                takes = f"It takes: {', '.join(known)}." if known else "It takes none."
                raise TypeError(f"{function.__name__}() has no option {name!r}.{hint} {takes}")
        return function(*args, **kwargs)

    return checked


def _tensor_name(tensor: Any) -> str:
    return f"this {str(tensor.dtype).removeprefix('torch.')} tensor of shape {list(tensor.shape)}"


def check_is_tensor(value: Any, function: str) -> None:
    """A tensor or a GradientEdge.

    Raises
    ------
    TypeError
        For anything else, with what to pass instead.
    """
    import torch
    from torch.autograd.graph import GradientEdge

    if isinstance(value, (torch.Tensor, GradientEdge)):
        return
    call = f"graphwidget.{function}"
    if isinstance(value, torch.nn.Module):
        why = f"a module has no graph of its own. Pass what it returns: {call}(model(x))"
    elif isinstance(value, str):
        why = f"pass the tensor itself, not its name. Names are for the magic: %graphwidget forecast {value[:40]}"
    elif isinstance(value, (list, tuple, set, dict)):
        why = f"pass the tensors one by one: {call}(*losses)"
    elif type(value).__module__.split(".")[0] == "numpy":
        why = "arrays have no graph. Compute with tensors: torch.from_numpy(a).requires_grad_()"
    elif isinstance(value, (int, float, complex)):
        why = "a number has no graph. Pass the tensor before .item() was called"
    else:
        why = "pass a tensor that was computed from one with requires_grad=True"
    raise TypeError(f"{call}() takes tensors, not {type(value).__name__}: {why}.")


def check_has_graph(value: Any, function: str) -> None:
    """A tensor with a graph.

    Raises
    ------
    TypeError
        If it is no tensor.
    ValueError
        If no gradient flows into it.
    """
    check_is_tensor(value, function)
    problem = no_grad_reason(value)
    if problem:
        raise ValueError(f"graphwidget.{function}(): {problem}")


def no_grad_reason(value: Any) -> str:
    """Why no backward can start at a tensor, with the next step; empty if one can."""
    import torch

    if not isinstance(value, torch.Tensor) or value.requires_grad:
        return ""
    if not (value.is_floating_point() or value.is_complex()):
        return f"{_tensor_name(value)} carries no gradient; only floating point does. Use x.float() before computing."
    if torch.is_grad_enabled():
        cause = "it was made from tensors that do not require grad, under no_grad, or by detach()"
        step = "Call x.requires_grad_() on an input, or unfreeze a parameter, and compute it again."
    else:
        cause = "grad mode is off here"
        step = "Compute it outside torch.no_grad()."
    return f"{_tensor_name(value)} does not require grad, so it has no graph: {cause}. {step}"


def tensors_in(value: Any, function: str) -> list[Any]:
    """One or several tensors, or a generator of them, as a list.

    Raises
    ------
    TypeError, ValueError
        If it is empty, or something in it is no tensor.
    """
    tensors = _as_list(value)
    for tensor in tensors:
        check_is_tensor(tensor, function)
    if not tensors:
        raise ValueError(f"graphwidget.{function}() needs at least one tensor: graphwidget.{function}(loss).")
    return tensors


def _as_list(value: Any) -> list[Any]:
    """One or several tensors as a list, also of a generator. A GradientEdge is a tuple and yet one thing."""
    import torch
    from torch.autograd.graph import GradientEdge

    one = isinstance(value, (torch.Tensor, GradientEdge, Mapping, str)) or not isinstance(value, Iterable)
    return [value] if one else list(value)
