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
    "Layer",
    "came_through_backward",
    "engine_wrapper_installed",
    "gradients_unseen",
    "in_backward",
    "is_fake",
    "is_mapped",
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
Layer = dict[str, tuple[Any, "_Switch"]]  # module name -> (what it replaced, the wrapper)
_layers: list[Layer] = []  # the wrappers that are installed, the outermost last
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


def wrap_engine(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Layer:
    """Replace the function through which every backward call starts the engine by `make(original)`.

    Both modules that hold the name are wrapped. A second wrapper goes around the first.

    Parameters
    ----------
    make
        Takes the current function and returns its replacement, which must pass on all arguments.

    Returns
    -------
    Layer
        What `unwrap_engine` takes out again; empty if nothing was wrapped.
    """
    layer: Layer = {}
    for module in _modules():
        original = getattr(module, ENGINE_CALL, None)
        if original is None:
            continue
        ours = _Switch(make(original), original)
        layer[module.__name__] = (original, ours)
        setattr(module, ENGINE_CALL, ours)
    if layer:
        _layers.append(layer)
    return layer


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

    @property
    def is_off(self) -> bool:
        return self._ours is None

    def off(self) -> None:
        self._ours = None


def _beneath(function: Any) -> Any:
    """The first function below that is not one of ours that has been switched off."""
    while isinstance(function, _Switch) and function.is_off:
        function = function.__wrapped__
    return function


def unwrap_engine(layer: Layer) -> None:
    """Restore what `wrap_engine` replaced. Where another wrapper lies on top, it stays, and ours is switched off."""
    if layer in _layers:
        _layers.remove(layer)
    for module in _modules():
        entry = layer.get(module.__name__)
        if entry is None:
            continue
        original, ours = entry
        ours.off()
        if getattr(module, ENGINE_CALL, None) is ours:
            setattr(module, ENGINE_CALL, _beneath(original))


def engine_wrapper_installed() -> bool:
    """Whether the engine is wrapped at present."""
    return bool(_layers)


def gradients_unseen(root: Any, gradient: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of some inputs, by a call that no record has. It keeps the graph and writes no `.grad`."""
    module = torch.autograd.graph
    lowest: Layer = _layers[0] if _layers else {}
    original = lowest.get(module.__name__, (getattr(module, ENGINE_CALL), None))[0]
    with nested():
        found: tuple[Any, ...] = original(
            (root,), (gradient,), True, False, tuple(inputs), allow_unreachable=True, accumulate_grad=False
        )
        return found


class nested:
    """Marks a backward call in progress on this thread. Entering returns whether it runs inside another call.

    A backward inside a hook, a custom backward or a re-entrant checkpoint is not a call of the user's own. `watcher`:
    who has seen the call; another one, whose wrapper lies below, sees the same call after it. None: nobody sees it.
    """

    __slots__ = ("_before", "_watcher")

    def __init__(self, watcher: object = None) -> None:
        self._watcher = id(watcher)

    def __enter__(self) -> bool:
        self._before: tuple[int, ...] = getattr(_local, "calls", ())
        _local.calls = (*self._before, self._watcher)
        return bool(self._before)

    def __exit__(self, *_: object) -> None:
        _local.calls = self._before


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


def in_backward(watcher: object = None) -> bool:
    """Whether the engine is running on this thread: inside a hook, a custom backward or a recomputation.

    `watcher`: only where it has seen the call, or the engine runs already.
    """
    calls: tuple[int, ...] = getattr(_local, "calls", ())
    seen = bool(calls) if watcher is None else id(watcher) in calls or id(None) in calls
    return seen or _current_task() != -1


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


def is_mapped(tensor: Any) -> bool:
    """Whether a tensor stands for one of each element that `vmap` maps over, perhaps within other transforms."""
    while _is_transformed(tensor):
        if _is_batched(tensor):
            return True
        inner = _unwrapped(tensor)
        if inner is tensor:
            return False
        tensor = inner
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
_is_batched: Callable[[Any], bool] = find(
    "torch._C._functorch.is_batchedtensor",
    "Which tensors are mapped, in a function that `vmap` refused, is unknown: a fix has no edit.",
    _no,
)
_unwrapped: Callable[[Any], Any] = find(
    "torch._C._functorch.get_unwrapped",
    "Which tensors are mapped, in a function that `vmap` refused within `grad`, is unknown: a fix has no edit.",
    lambda tensor: tensor,
)
