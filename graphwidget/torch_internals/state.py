"""Modes and counters of the running thread."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.utils._python_dispatch

from graphwidget.torch_internals.private import find

__all__ = [
    "STEP_HOOKS",
    "TorchDispatchMode",
    "checks_nan",
    "dispatch_mode",
    "modes_would_see",
    "grad_mode",
    "next_number",
    "no_collection",
    "quiet",
    "ranks",
    "sequence_nr",
]

# `sequence_nr` without the cost of a Python function: line tracers call it at every line.
next_number: Callable[[], int] = find(
    "torch._C._autograd._get_sequence_nr",
    "Which line and which module made a node is unknown.",
    int,
)
# A context in which no `__torch_function__` runs, neither a subclass's nor a mode's.
quiet: Callable[[], AbstractContextManager[Any]] = find(
    "torch._C.DisableTorchFunction",
    "`__torch_function__` of tensor subclasses and modes runs when graphwidget reads tensors.",
    nullcontext,
)
# Attributes of an optimizer that hold the hooks around its steps. Lines of an optimizer without them are traced.
STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
_NO_QUESTIONS = "What in-place writes into views hide (whether they were released or are stale) is unknown."
TorchDispatchMode: Any = find("torch.utils._python_dispatch.TorchDispatchMode", _NO_QUESTIONS, object)
_push_mode = find("torch._C._push_on_torch_dispatch_stack", _NO_QUESTIONS, None)
_pop_mode = find("torch._C._pop_torch_dispatch_stack", _NO_QUESTIONS, None)


_modes = find(
    "torch._C._len_torch_dispatch_stack",
    "That a step went by gradients of zeros is not noticed.",
    lambda: 1,
)


def modes_would_see() -> bool:
    """Whether the user's own dispatch modes would see what is computed now."""
    return bool(_modes())


def sequence_nr() -> int:
    """The number that the next node made by this thread will get. Reading it does not use it up."""
    return next_number()


def checks_nan() -> bool:
    """Whether anomaly detection is on, so that a backward call raises at the first gradient that is NaN."""
    return torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()


def ranks() -> int:
    """How many processes this job has, as far as `torch.distributed` knows."""
    job = torch.distributed
    return job.get_world_size() if job.is_available() and job.is_initialized() else 1


@contextmanager
def no_collection() -> Iterator[None]:
    """A context in which the garbage collector does not start, so that no finaliser of the user's runs in between.

    It also saves a third of the time: the collector would visit all nodes again and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """A context with this grad mode for the thread, also inside inference mode. Restores the mode at its end."""
    with torch.inference_mode(False), torch.set_grad_enabled(enabled):
        yield


@contextmanager
def dispatch_mode(mode: Any) -> Iterator[None]:
    """Apply a `TorchDispatchMode` to this thread's operations. (Using the mode itself as a context sets global flags.)

    Raises
    ------
    AttributeError
        If this torch lacks a name that is needed. Then the body must not run, since it would run without the mode.
    """
    if _push_mode is None or _pop_mode is None or TorchDispatchMode is object:
        raise AttributeError("this torch has no dispatch modes that we know")
    _push_mode(mode)
    try:
        yield
    finally:
        _pop_mode(None)
