"""Reads checkpoints of `torch.utils.checkpoint`."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import checkpoint

from graphwidget.model import torch_messages
from graphwidget.torch_internals.nodes import saved_by_custom, unpack_all
from graphwidget.torch_internals.private import find
from graphwidget.torch_internals.tensors import is_tensor

__all__ = [
    "checkpoint_frame",
    "checkpointed_function",
    "first_difference",
    "formula_of_operator",
    "holder_at",
    "in_reentrant_checkpoint",
    "is_reentrant_checkpoint",
    "recompute_context",
    "refuses_reentrant_checkpoints",
    "saved_arguments",
    "state_of_argument",
    "tensors_used_by",
]


_is_checkpoint_valid = find(
    "torch.autograd._is_checkpoint_valid",
    "That `inputs=` makes re-entrant checkpoints raise is not foreseen inside a call.",
    None,
)
_checkpoint_hook = find(
    "torch.utils.checkpoint._checkpoint_hook",
    "Checkpoints are shown as saved-tensor hooks: what their recomputation meets is not foreseen.",
    None,
)
_SELECTIVE = "That a selective checkpoint hands out what it kept only once is not foreseen."
_CachedMode = find("torch.utils.checkpoint._CachedTorchDispatchMode", _SELECTIVE, None)
_CONSUMED = getattr(checkpoint, "_CONSUMED", None)  # torch 2.10 has no such mark: it removes what it returned


def is_reentrant_checkpoint(forward: type) -> bool:
    """Whether a custom Function is the one that `checkpoint(use_reentrant=True)` applies."""
    return forward.__name__ == "CheckpointFunction" and forward.__module__ == "torch.utils.checkpoint"


def in_reentrant_checkpoint(frame: types.FrameType | None) -> bool:
    """Whether the forward of a re-entrant checkpoint is running in a frame, or in one that has called it."""
    forward = checkpoint.CheckpointFunction.forward.__code__
    while frame is not None and frame.f_code is not forward:
        frame = frame.f_back
    return frame is not None


def refuses_reentrant_checkpoints() -> bool:
    """Whether a call in progress on this thread was given `inputs=`: re-entrant checkpoints inside it raise."""
    return _is_checkpoint_valid is not None and not _is_checkpoint_valid()


def formula_of_operator(backward: Any, closure: Callable[[Any, str], Any]) -> Any:
    """The function given to `torch.library.register_autograd`, if `backward` is what that made; None for any other.

    `closure` returns the value of a closure variable, given a function and a name.
    """
    if type(backward) is not types.FunctionType or backward.__module__ != "torch._library.autograd":
        return None
    return getattr(closure(backward, "info"), "_backward_fn", None)


def checkpoint_frame(unpack_hook: Any) -> Any:
    """The checkpoint frame of `torch.utils.checkpoint` that an unpack hook belongs to; None for any other hook."""
    code = getattr(unpack_hook, "__code__", None)
    if (
        _checkpoint_hook is None
        or code is None
        or not getattr(unpack_hook, "__qualname__", "").startswith("_checkpoint_hook.")
    ):
        return None
    frame = _cells(unpack_hook).get("frame")
    if frame is None:  # with debug=True the hook is wrapped once more
        inner = _cells(unpack_hook).get("unpack_hook")
        frame = None if inner is None else _cells(inner).get("frame")
    return frame


def checkpointed_function(frame: Any) -> Any:
    """The user's function that a checkpoint frame runs again."""
    cells = _cells(frame.recompute_fn)
    return cells.get("fn", cells.get("function"))


def first_difference(frame: Any) -> int:
    """The position of the first tensor that a checkpoint saved otherwise when it ran again; -1: unknown.

    Positions count the tensors that it saved in the forward, from 0.
    """
    again = max(frame.recomp_counter.values(), default=-1)
    newest = next(reversed(frame.recomp_counter), None)
    for position, (before, reference) in enumerate(zip(frame.x_metadatas, frame.weak_holders)):
        holder = reference()
        handle = holder.handles.get(newest) if holder is not None else None
        tensor = frame.recomputed[newest].get(handle) if handle is not None else None
        if tensor is not None and frame.metadata_fn(tensor) != before:
            return position
    return again if 0 <= again < len(frame.weak_holders) else -1


def holder_at(frame: Any, position: int) -> Any:
    """What a node holds in the place of the tensor at a position; None: it is gone, or there is none."""
    holders = frame.weak_holders
    return holders[position]() if 0 <= position < len(holders) else None


def recompute_context(frame: Any) -> tuple[bool, bool]:
    """Whether a frame recomputes inside a context of the user's, and whether that context cannot be used again.

    A selective checkpoint returns what it kept only once, even if the graph is retained.
    """
    context = _cells(frame.recompute_fn).get("recompute_context")
    if context is None or isinstance(context, contextlib.nullcontext):
        return False, False
    kept = context.storage if _CachedMode is not None and type(context) is _CachedMode else {}
    return True, any(map(_used_up, kept.values()))


def _used_up(calls: Any) -> bool:
    """Whether a kept result of an operation was returned already: torch then marks it, older torch removes it."""
    if isinstance(calls, list):
        return not calls
    return any(entry is _CONSUMED for entry in calls.values())


def saved_arguments(frame: Any) -> list[Any]:
    """The saved tensors for the arguments with which a frame's function was called."""
    if hasattr(frame, "saved_args"):
        return [argument for argument in frame.saved_args if hasattr(argument, "unpack_hook")]
    return list(saved_by_custom(frame.input_saver.grad_fn) or ())[1:]  # in older torch the first one is a dummy


def state_of_argument(frame: Any, saved: Any) -> str:
    """Whether a checkpoint's argument can still be unpacked: "ok", "inplace" or "detached". No hook runs."""
    try:
        if hasattr(saved, "unpack"):
            saved.unpack()
        else:  # older torch unpacks only all of them together
            unpack_all(frame.input_saver.grad_fn, "saved_tensors")
    except RuntimeError as error:
        return "inplace" if torch_messages.says(error, torch_messages.MODIFIED) else "detached"
    return "ok"


def tensors_used_by(function: Any, depth: int = 0) -> list[Any]:
    """Tensors that a function uses besides its arguments: from closure, defaults and globals, two levels deep.

    For a module, or a method of a module, these include its parameters.
    """
    if isinstance(function, torch.nn.Module):
        return _parameters(function)
    owner, function = getattr(function, "__self__", None), getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    names = function.__globals__
    used = [names[name] for name in code.co_names if name in names]
    found: list[Any] = []
    if isinstance(owner, torch.nn.Module):
        found += _parameters(owner)
    for value in (*_cells(function).values(), *(function.__defaults__ or ()), *used):
        if is_tensor(value):
            found.append(value)
        elif isinstance(value, torch.nn.Module) or (depth < 2 and type(value).__name__ == "function"):
            found += tensors_used_by(value, depth + 1)
    return found


def _parameters(module: torch.nn.Module) -> list[Any]:
    """The parameters of a module and of the modules inside it. None of their code runs."""
    modules = torch.nn.Module.named_modules(module)
    return [value for _, inner in modules for value in inner.__dict__["_parameters"].values() if value is not None]


def _cells(function: Any) -> dict[str, Any]:
    """Closure variables of a function that have a value."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found
