"""The function through which every backward call starts the engine, whether one is in progress, and module hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch

from graphwidget.torch_internals.private import find
from graphwidget.torch_internals.tensors import is_tensor

__all__ = [
    "ENGINE_CALL",
    "came_through_backward",
    "engine_wrapper_installed",
    "gradients_unseen",
    "in_backward",
    "is_fake",
    "nested",
    "hide_from_compile",
    "unwrap_engine",
    "wrap_engine",
]

ENGINE_CALL = "_engine_run_backward"
_ENGINE = find(
    f"torch.autograd.graph.{ENGINE_CALL}",
    "Backward calls are not noticed: no call is recorded, and which call freed what is unknown.",
    None,
)
_installed: dict[str, tuple[Any, Any]] = {}  # module name -> (the original, our wrapper)
_local = threading.local()


_CALLS = {  # (module, function) of backward calls, including those refused before the engine starts
    ("torch._tensor", "backward"),
    ("torch.autograd", "backward"),
    ("torch.autograd", "grad"),
    ("torch.autograd.graph", ENGINE_CALL),
}


def came_through_backward(traceback: TracebackType | None) -> bool:
    """Whether an error was raised inside a call of `backward` or `autograd.grad`."""
    while traceback is not None:
        frame = traceback.tb_frame
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _CALLS:
            return True
        traceback = traceback.tb_next
    return False


def _modules() -> list[Any]:
    return [torch.autograd, torch.autograd.graph] if _ENGINE is not None else []


def wrap_engine(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Replace the function through which every backward call starts the engine by `make(original)`.

    Both modules that hold the name are wrapped. A second call does nothing until `unwrap_engine`.

    Parameters
    ----------
    make
        Takes the current function and returns its replacement, which must pass on all arguments.

    Returns
    -------
    bool
        Whether this call wrapped anything.
    """
    if _installed:
        return False
    for module in _modules():
        original = getattr(module, ENGINE_CALL, None)
        if original is None:
            continue
        ours = _Switch(make(original), original)
        _installed[module.__name__] = (original, ours)
        setattr(module, ENGINE_CALL, ours)
    return bool(_installed)


class _Switch:
    """Our wrapper in a module's namespace. Under another wrapper it cannot be removed, so it can be switched off."""

    def __init__(self, ours: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._ours: Callable[..., Any] | None = ours
        self._original = original
        self.__name__ = ENGINE_CALL
        self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        ours = self._ours
        return (self._original if ours is None else ours)(*args, **kwargs)

    def off(self) -> None:
        self._ours = None


def unwrap_engine() -> None:
    """Restore what `wrap_engine` replaced. Where another wrapper lies on top, it stays, and ours is switched off."""
    for module in _modules():
        entry = _installed.pop(module.__name__, None)
        if entry is None:
            continue
        original, ours = entry
        ours.off()
        if getattr(module, ENGINE_CALL, None) is ours:
            setattr(module, ENGINE_CALL, original)


def engine_wrapper_installed() -> bool:
    """Whether the engine is wrapped at present."""
    return bool(_installed)


def gradients_unseen(root: Any, gradient: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of some inputs, by a call that no record has. It keeps the graph and writes no `.grad`."""
    module = torch.autograd.graph
    original = _installed.get(module.__name__, (getattr(module, ENGINE_CALL), None))[0]
    with nested():
        found: tuple[Any, ...] = original(
            (root,), (gradient,), True, False, tuple(inputs), allow_unreachable=True, accumulate_grad=False
        )
        return found


class nested:
    """Marks a backward call in progress on this thread. Entering returns whether it runs inside another call.

    A backward inside a hook, a custom backward or a re-entrant checkpoint is not a call of the user's own.
    """

    __slots__ = ("_depth",)

    def __enter__(self) -> bool:
        self._depth = getattr(_local, "depth", 0)
        _local.depth = self._depth + 1
        return self._depth > 0

    def __exit__(self, *_: object) -> None:
        _local.depth = self._depth


def hide_from_compile(handles: Sequence[Any]) -> Callable[[], None]:
    """Keep `torch.compile` from warning about global module hooks if the hooks of these handles are the only ones.

    It warns that hooks run once more for the module that it makes. That does no harm to ours. Returns a function that
    undoes this.
    """
    modules = torch.nn.modules.module
    if _has_any_global_hook is None:
        return lambda: None
    original = modules._has_any_global_hook
    own = {handle.id for handle in handles}
    called = ("_global_forward", "_global_backward")
    tables = [value for name, value in vars(modules).items() if name.startswith(called) and isinstance(value, dict)]

    def has_any_other_hook() -> bool:
        return any(key not in own for table in tables for key in table)

    modules._has_any_global_hook = has_any_other_hook

    def undo() -> None:
        if modules._has_any_global_hook is has_any_other_hook:
            modules._has_any_global_hook = original

    return undo


def in_backward() -> bool:
    """Whether the engine is running on this thread: inside a hook, a custom backward or a recomputation."""
    return getattr(_local, "depth", 0) > 0 or _current_task() != -1


_has_any_global_hook = find(
    "torch.nn.modules.module._has_any_global_hook",
    "torch.compile warns that global module hooks are in use while graphwidget is loaded.",
    None,
)
_current_task: Callable[[], int] = find(
    "torch._C._current_graph_task_id",
    "A backward that C++ code started is not noticed while it runs.",
    lambda: -1,
)


def is_fake(tensors: Sequence[Any]) -> bool:
    """Whether a call is torch's own tracing or transforming (compile, export, `torch.func`), not the user's."""
    for tensor in tensors:
        if not is_tensor(tensor):  # a GradientEdge
            continue
        kind = type(tensor)
        if kind is not torch.Tensor and any(c.__module__.startswith("torch._subclasses.") for c in kind.__mro__):
            return True
        if _is_transformed(tensor) or _is_functional(tensor):
            return True
    return False


_no: Callable[[Any], bool] = lambda tensor: False  # noqa: E731
_is_transformed: Callable[[Any], bool] = find(
    "torch._C._functorch.is_functorch_wrapped_tensor",
    "Backward calls inside torch.func transforms are recorded like the user's own.",
    _no,
)
_is_functional: Callable[[Any], bool] = find(
    "torch._is_functional_tensor",
    "Backward calls inside torch's own tracing are recorded like the user's own.",
    _no,
)
