"""Every private name of torch that graphwidget uses, and what each is trusted to do.

Capabilities are probed, versions never. Nothing here runs an unpack hook, recomputes a checkpoint,
bumps a version counter or keeps an object alive. Tensor properties are read through the descriptors
of the base class, so that no subclass's property or `__torch_function__` runs; `quiet` switches off
the modes that would see even those reads.

One read is never pure: a *stale view* (a view whose base, or another view of it, was modified in place
since) gets new nodes, with new sequence numbers, when its `.grad_fn`, `.is_leaf` or `.retains_grad` is
read, and when a slot that saved it is unpacked. `maybe_stale_view` tells such views without that.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import compress
from operator import methodcaller
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from graphwidget.model import Kind

__all__ = [
    "NO_SEQUENCE",
    "accumulated_variable",
    "creation_is_no_grad",
    "engine_wrapper_installed",
    "grad_mode",
    "is_custom_function",
    "is_fake",
    "is_tensor",
    "maybe_stale_view",
    "nested",
    "quiet",
    "sequence_nr",
    "slot_names",
    "storage_of",
    "unmentioned",
    "unwrap_engine",
    "wrap_engine",
]

NO_SEQUENCE = 2**64 - 1  # what AccumulateGrad and Error nodes report: they run as soon as they are ready
FunctionBase = torch._C._FunctionBase
_Base = torch._C.TensorBase


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor, told by its type alone: no foreign `__class__` runs, nothing warns."""
    return issubclass(type(obj), torch.Tensor)


# The same as `sequence_nr`, without the cost of a Python function: line tracers call it at every line.
next_number: Callable[[], int] = torch._C._autograd._get_sequence_nr


def sequence_nr() -> int:
    """The number that the next node made by this thread will get. Reading it takes none."""
    number: int = torch._C._autograd._get_sequence_nr()
    return number


def quiet() -> AbstractContextManager[Any]:
    """A context in which no `__torch_function__` runs, neither a subclass's nor a mode's."""
    guard: AbstractContextManager[Any] = torch._C.DisableTorchFunction()
    return guard


@contextmanager
def no_collection() -> Iterator[None]:
    """A context in which the garbage collector does not start, so that no finaliser of the user's runs in our midst.

    It also saves a third of the time: the collector would go over all nodes again and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# ---------------------------------------------------------------- tensors

# Slot reads of the base class: `requires_grad(t)` is `t.requires_grad` without any code of a subclass.
requires_grad: Callable[[Any], bool] = _Base.__dict__["requires_grad"].__get__
version: Callable[[Any], int] = _Base.__dict__["_version"].__get__
base: Callable[[Any], Any] = _Base.__dict__["_base"].__get__
grad_fn: Callable[[Any], Any] = _Base.__dict__["grad_fn"].__get__
is_leaf: Callable[[Any], bool] = _Base.__dict__["is_leaf"].__get__
output_nr: Callable[[Any], int] = _Base.__dict__["output_nr"].__get__
shape: Callable[[Any], Any] = _Base.__dict__["shape"].__get__
dtype: Callable[[Any], Any] = _Base.__dict__["dtype"].__get__
nbytes: Callable[[Any], int] = _Base.__dict__["nbytes"].__get__
grad: Callable[[Any], Any] = _Base.__dict__["grad"].__get__
retains_grad: Callable[[Any], bool] = _Base.__dict__["retains_grad"].__get__
hook_registries: dict[str, Callable[[Any], Any]] = {
    name: getattr(_Base, name).__get__
    for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
    if hasattr(_Base, name)
}
is_view: Callable[[Any], bool] = _Base._is_view
untyped_storage: Callable[[Any], Any] = _Base.untyped_storage
numel: Callable[[Any], int] = _Base.numel


def maybe_stale_view(tensor: Any) -> bool:
    """Whether reading the tensor's history could make torch rebuild it, or raise. False is certain, True nearly."""
    if not is_view(tensor):
        return False
    try:
        if version(tensor) == 0:
            return False
    except RuntimeError:  # inference tensors count no versions and have no history
        return False
    origin = base(tensor)
    if not requires_grad(tensor) and (origin is None or not requires_grad(origin)):
        return False
    return not is_ordinary_view(tensor) or _rebuild_is_due(tensor)


_creation_meta: Callable[[Any], Any] | None = getattr(torch._C._autograd, "_get_creation_meta", None)
_set_creation_meta: Callable[[Any, Any], None] | None = getattr(torch._C._autograd, "_set_creation_meta", None)
TELLS_STALE_VIEWS = _creation_meta is not None and _set_creation_meta is not None


def is_ordinary_view(view: Any) -> bool:
    """Whether torch rebuilds the view's history when it is stale. Where it refuses (unbind, no_grad), it raises."""
    return _creation_meta is None or getattr(_creation_meta(view), "name", "") == "DEFAULT"


def _rebuild_is_due(view: Any) -> bool:
    if not TELLS_STALE_VIEWS:
        return True
    try:
        with never_rebuilt([view]):
            grad_fn(view)
    except RuntimeError:
        return True
    return False


NOT_REBUILT = "inference mode"  # words of the error that a view inside `never_rebuilt` raises if it is stale


@contextmanager
def never_rebuilt(views: Sequence[Any]) -> Iterator[None]:
    """Mark ordinary views as such whose history torch refuses to rebuild: reading it raises if they are stale."""
    assert _creation_meta is not None and _set_creation_meta is not None
    marks = [_creation_meta(view) for view in views]
    try:
        for view, mark in zip(views, marks, strict=True):
            _set_creation_meta(view, type(mark).INFERENCE_MODE)
        yield
    finally:
        for view, mark in zip(views, marks, strict=True):
            _set_creation_meta(view, mark)


def tensors_alive() -> list[Any]:
    """Every tensor that is a Python object anywhere in the process. 10 ms for 100,000 objects of any kind."""
    objects = gc.get_objects()
    types = {cls for cls in set(map(type, objects)) if issubclass(cls, torch.Tensor)}
    return list(compress(objects, map(types.__contains__, map(type, objects))))


def creation_is_no_grad(tensor: Any) -> bool:
    """Whether the tensor is a view that was made under `no_grad` (and not yet detached from its base)."""
    if _creation_meta is None or not is_view(tensor):
        return False
    return getattr(_creation_meta(tensor), "name", "") in ("NO_GRAD_MODE", "INFERENCE_MODE")


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """(key, bytes) of the memory behind a tensor. The key is an address: it means something only while that lives."""
    try:
        storage = untyped_storage(tensor)
        return storage._cdata, storage.nbytes()
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def is_held_elsewhere(grad: Any) -> bool:
    """Whether something in C++ besides its leaf holds a `.grad`, or shares its memory: a saved tensor, a view."""
    return _holders(grad) > _holders_of_a_grad()


def _holders(tensor: Any) -> int:
    storage = untyped_storage(tensor)
    return int(_Base._use_count(tensor)) + int(torch._C._storage_Use_Count(storage._cdata))  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=1)
def _holders_of_a_grad() -> int:
    leaf = torch.ones((), dtype=torch.float32, device="cpu", requires_grad=True)
    leaf.grad = torch.ones((), dtype=torch.float32, device="cpu")
    return _holders(grad(leaf))


# The key of `storage_of` alone, quickly; 0 or an exception where there is none.
storage_key: Callable[[Any], int] = getattr(torch._C, "_storage_address", lambda tensor: untyped_storage(tensor)._cdata)


_COMPRESSED = ("values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
_layout: Callable[[Any], Any] = _Base.__dict__["layout"].__get__


def bytes_of(tensor: Any) -> int:
    """Bytes of the tensor itself; of its parts if it is sparse; 0 if nothing is known."""
    sparse = str(_layout(tensor)).startswith("torch.sparse")
    parts = () if not sparse else ("_indices", "_values") if _layout(tensor) is torch.sparse_coo else _COMPRESSED
    total = 0
    try:
        total = 0 if sparse else int(nbytes(tensor))
    except (RuntimeError, NotImplementedError, TypeError):
        return 0
    for part in parts:
        try:
            with torch.no_grad():
                total += int(nbytes(getattr(_Base, part)(tensor)))
        except (RuntimeError, NotImplementedError, TypeError, AttributeError):
            continue
    return total


def history(tensor: Any, *, asked: bool) -> tuple[Any, int, str | None]:
    """(grad_fn, output number, problem) of a tensor; `problem` as in `model.TensorRef`.

    Parameters
    ----------
    asked
        The user asked for this very tensor: read its history even if that makes torch rebuild it.
    """
    if not requires_grad(tensor):
        return None, 0, None
    if not asked and maybe_stale_view(tensor):
        return None, 0, "stale_view"
    try:
        node = grad_fn(tensor)
    except RuntimeError:
        return None, 0, "no_grad_view_modified"
    if node is not None:
        return node, output_nr(tensor), None
    if is_view(tensor):
        origin = base(tensor)
        if origin is not None and requires_grad(origin) and creation_is_no_grad(tensor):
            return None, 0, "no_grad_view"
    return None, 0, None


def as_edge(obj: Any) -> tuple[Any, int] | None:
    """(node, number) of a `torch.autograd.graph.GradientEdge`, None for anything else."""
    if isinstance(obj, torch.autograd.graph.GradientEdge):
        return obj.node, int(obj.output_nr)
    return None


def maybe_no_leaf(variable: Any) -> bool:
    """Whether only rebuilding the history of a leaf would tell if it still is one.

    So it is for a view of a tensor with history that was modified since.
    """
    origin = base(variable)
    return origin is not None and requires_grad(origin) and maybe_stale_view(variable)


def leaf_and_grad(variable: Any, *, asked: bool = False) -> tuple[bool, Any]:
    """(is it still a leaf, its `.grad`) of the tensor behind an AccumulateGrad node. Warns about nothing.

    Unless `asked`, a view whose history looking might rebuild counts as the leaf that it was.
    """
    if not asked and maybe_no_leaf(variable):
        return True, None
    if not is_leaf(variable):
        return False, None  # `.grad` of a non-leaf warns
    return True, grad(variable)


_is_zero_tensor: Callable[[Any], bool] = getattr(_Base, "_is_zerotensor", lambda tensor: False)


def refuses_writes(tensor: Any) -> str:
    """Why torch refuses to write into the tensor in place; empty if it does not.

    Some derivatives that are zero everywhere (the second one of `abs`) are tensors without memory that nobody may write
    to, and AccumulateGrad takes them over as `.grad` as they are: the next gradient cannot be added.
    """
    if _is_zero_tensor(tensor):
        return "is a ZeroTensor"
    if _Base.is_inference(tensor):
        return "is an inference tensor"
    return "overlaps itself in memory" if overlaps_itself(tensor) else ""


def overlaps_itself(tensor: Any) -> bool:
    """Whether several elements surely share memory, so that in-place writes are refused (an expanded tensor)."""
    if str(_layout(tensor)) != "torch.strided":
        return False
    return any(step == 0 and size > 1 for step, size in zip(_Base.stride(tensor), shape(tensor), strict=True))


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The shape; () where it cannot be read, -1 for a length that is not one number (nested tensors)."""
    try:
        return as_integers(shape(tensor))
    except (RuntimeError, TypeError):
        return ()


def as_integers(lengths: Any) -> tuple[int, ...]:
    """A shape without symbolic numbers."""
    return tuple(length if type(length) is int else -1 for length in lengths)


def dtype_name(tensor: Any) -> str:
    """The dtype as "float32"."""
    return str(dtype(tensor)).removeprefix("torch.")


def count_of(tensor: Any) -> int:
    """Number of elements; -1 where it cannot be read."""
    try:
        number = numel(tensor)
        return number if type(number) is int else -1
    except (RuntimeError, TypeError):
        return -1


def hooks_of(tensor: Any) -> dict[int, Any]:
    """Python hooks that were registered on a tensor itself, by the number of their handle, which is unique.

    Those on its node cannot be listed.
    """
    return {key: hook for read in (_backward_hooks, _post_hooks) for key, hook in (read(tensor) or {}).items()}


_backward_hooks: Callable[[Any], Any] = _Base.__dict__["_backward_hooks"].__get__
_post_hooks: Callable[[Any], Any] = _Base.__dict__["_post_accumulate_grad_hooks"].__get__


def version_of(tensor: Any) -> int:
    """The tensor's version counter, -1 if it counts none (inference tensors)."""
    try:
        return version(tensor)
    except RuntimeError:
        return -1


# ---------------------------------------------------------------- nodes

next_functions_of_custom: Callable[[Any], Any] = FunctionBase.__dict__["next_functions"].__get__
_sequence_nr: Callable[[Any], int] = methodcaller("_sequence_nr")
saved_by_custom: Callable[[Any], Any] = FunctionBase.__dict__["_raw_saved_tensors"].__get__
""" `_raw_saved_tensors`, also of a Function that keeps an attribute of that name. Raises RuntimeError once released."""
_name_of_custom: Callable[[Any], str] = FunctionBase.__dict__["name"]
_saved_tensors: Callable[[Any], Any] = FunctionBase.__dict__["saved_tensors"].__get__


def is_custom_function(cls: type) -> bool:
    """Whether nodes of this type run a Python backward."""
    return issubclass(cls, FunctionBase)


@functools.cache
def slot_names(cls: type) -> tuple[tuple[str, str, str], ...]:
    """(raw attribute, unpacking attribute, shown name) of each slot, in the order in which the node unpacks them.

    Declaration order is the order in the type's own `__dict__`; `dir` would sort.
    """
    prefix = "_raw_saved_"
    found = [name for name in cls.__dict__ if name.startswith(prefix)]
    return tuple((name, "_saved_" + name[len(prefix) :], name[len(prefix) :]) for name in found)


_MARK = "graphwidget"
_metadata_of_custom: Callable[[Any], Any] = FunctionBase.__dict__["metadata"].__get__


def memory_of_node(node: Any) -> dict[str, Any]:
    """What we wrote down on a node: one dict under one key of `node.metadata`, made if there is none.

    It lives and dies with the C++ node. Used for the few nodes that need it; it costs a dict.
    """
    metadata = _metadata_of_custom(node) if isinstance(node, FunctionBase) else node.metadata
    memory: dict[str, Any] = metadata.setdefault(_MARK, {})
    return memory


def weak_memory(tensor: Any) -> Any:
    """A weak reference to the memory behind a tensor, None if it has none. It keeps no data alive."""
    try:
        return StorageWeakRef(untyped_storage(tensor))  # type: ignore[no-untyped-call]
    except Exception:  # sparse, functional: no storage
        return None


def is_memory_of(reference: Any, tensor: Any) -> bool:
    """Whether a weak reference made by `weak_memory` is to the memory of this tensor, and that has lived since."""
    found = storage_of(tensor)
    if reference is None or found is None:
        return reference is None and found is None
    return bool(reference.cdata == found[0]) and not reference.expired()


def is_saved_tensor_type(cls: type) -> bool:
    """Whether objects of this type are one slot as torch shows it, not a list of them."""
    return cls is _SavedTensor


_SavedTensor = torch._C._autograd.SavedTensor


def is_output_slot(shown: str) -> bool:
    """Whether a slot of a generated node holds an output of its own: torch names those after the output."""
    return shown.startswith(("result", "output", "values", "indices", "log_sumexp", "logsumexp"))


def was_never_saved(node: Any, slot: Any, saved: str | None) -> bool:
    """Whether a slot without data and without hook never held anything. If it was released instead, this costs 8 us."""
    try:
        if saved is not None:
            return getattr(node, saved) is None
        return slot.unpack() is None
    except RuntimeError:
        return False


def unpack_all(node: Any, shown: str) -> None:
    """Unpack a list of slots for the error that it raises if one is stale. Not for lists that a hook has packed.

    Raises
    ------
    RuntimeError
        As torch raises it.
    """
    if is_custom_function(type(node)):
        if any(slot.unpack_hook is not None for slot in saved_by_custom(node) or ()):
            raise RuntimeError("packed")
        _saved_tensors(node)
    else:
        getattr(node, "_saved_" + shown.partition("[")[0])


def function_with_context(node: Any) -> Any:
    """The part of a custom Function that can call `save_for_backward`: `setup_context`, or else `forward`."""
    cls = getattr(type(node), "_forward_cls", None)
    setup = getattr(cls, "setup_context", None)
    own_setup = setup is not getattr(torch.autograd.Function, "setup_context", None)
    return setup if own_setup else getattr(cls, "forward", None)


def node_that_saved_a_view() -> Any:
    """A small node whose slot is the only holder of a view of a tensor that was modified before."""
    with torch.enable_grad():
        leaf = torch.ones(1, 1, dtype=torch.float32, device="cpu", requires_grad=True)
        with torch.no_grad():
            leaf.zero_()
        return leaf.t().sin().grad_fn


# Not those that make several views at once, nor custom Functions: torch refuses to rebuild the history of theirs.
_VIEWS = frozenset(
    "Alias AsStrided Conj Diagonal Expand Imag Indices Narrow NegView Permute Real ReshapeAlias Select Slice Squeeze "
    "SqueezeMultiple Swapaxes Swapdims T Transpose Unfold Unsqueeze Values View ViewAsComplex ViewAsReal".split()
)


def may_be_of_a_view(node: Any) -> bool:
    """Whether a tensor with this history may be a view whose history torch would rebuild."""
    variable = accumulated_variable(node)
    if variable is not None:
        return maybe_stale_view(variable)
    return type(node).__name__.partition("Backward")[0] in _VIEWS


_RUNS_ALWAYS_RAISING = ("Error", "DelayedError", "NotImplemented")


def node_readers(cls: type) -> tuple[Callable[[Any], Any], Callable[[Any], int], str | None, int]:
    """How to read nodes of one type: next_functions, sequence number, the name if all share it, the `Kind`.

    A custom Function is read through the base class: its author may have set `ctx.name` or the like.
    """
    if is_custom_function(cls):
        kind = Kind.COMPILED if is_compiled(cls) else Kind.CUSTOM
        return next_functions_of_custom, FunctionBase._sequence_nr, None, int(kind)
    name = cls.__name__
    if name == "AccumulateGrad":
        return cls.next_functions.__get__, cls._sequence_nr, name, int(Kind.ACCUMULATE)  # type: ignore[attr-defined]
    if name == "CopySlices":
        kind = Kind.COPY_SLICES
    elif name in _RUNS_ALWAYS_RAISING:
        kind = Kind.ERROR
    else:
        kind = Kind.FUNCTION
    # Functions made from formulas (MulBackward0) are called as their type is; the engine's own (CopySlices,
    # CopyBackwards, Error) have a prefix, and types without a class of their own share one.
    shared = name if name.rstrip("0123456789").endswith("Backward") else None
    return cls.next_functions.__get__, cls._sequence_nr, shared, int(kind)  # type: ignore[attr-defined]


def sequence_numbers(nodes: Sequence[Any], types: Sequence[type]) -> list[int]:
    """The sequence numbers of nodes, whose types are given."""
    if not any(map(is_custom_function, set(types))):
        return list(map(_sequence_nr, nodes))
    readers = {cls: node_readers(cls)[1] for cls in set(types)}
    return [readers[cls](node) for node, cls in zip(nodes, types, strict=True)]


def name_of(node: Any) -> str:
    """torch's own name of a node; ``AccumulateGrad`` without its prefix ``torch::autograd::``."""
    name: str = _name_of_custom(node) if isinstance(node, FunctionBase) else node.name()
    return "AccumulateGrad" if name == "torch::autograd::AccumulateGrad" else name


def is_compiled(cls: type) -> bool:
    """Whether nodes of this type run a region of `torch.compile`."""
    forward = getattr(cls, "_forward_cls", None)
    return getattr(forward, "__module__", "").startswith("torch._functorch") and hasattr(
        forward, "_compiled_autograd_key"
    )


def accumulated_variable(node: Any) -> Any:
    """The leaf behind an AccumulateGrad node, None for any other node."""
    return getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None


# ---------------------------------------------------------------- checkpoints


def is_reentrant_checkpoint(forward: type) -> bool:
    """Whether a custom Function is that of `checkpoint(use_reentrant=True)`."""
    return forward.__name__ == "CheckpointFunction" and forward.__module__ == "torch.utils.checkpoint"


def refuses_reentrant_checkpoints() -> bool:
    """Whether a call in progress on this thread was given `inputs=`: re-entrant checkpoints inside it raise."""
    valid = getattr(torch.autograd, "_is_checkpoint_valid", None)
    return valid is not None and not valid()


def checkpoint_frame(unpack_hook: Any) -> Any:
    """The frame of `torch.utils.checkpoint` behind an unpack hook, None if the hook is another one."""
    code = getattr(unpack_hook, "__code__", None)
    if code is None or not getattr(unpack_hook, "__qualname__", "").startswith("_checkpoint_hook."):
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


def state_of_argument(saved: Any) -> str:
    """Whether a checkpoint's argument can still be taken: "ok", "inplace" or "detached". No hook runs."""
    unpack = getattr(saved, "unpack", None)
    if unpack is None:
        return "ok"
    try:
        unpack()
    except RuntimeError as error:
        return "inplace" if "modified by an inplace" in str(error) else "detached"
    return "ok"


def tensors_around(function: Any, depth: int = 0) -> list[Any]:
    """Tensors that a function uses without being given them: closure, defaults, globals; two levels deep."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    names = function.__globals__
    used = [names[name] for name in code.co_names if name in names]
    found: list[Any] = []
    for value in (*_cells(function).values(), *(function.__defaults__ or ()), *used):
        if is_tensor(value):
            found.append(value)
        elif depth < 2 and type(value).__name__ == "function":
            found += tensors_around(value, depth + 1)
    return found


def _cells(function: Any) -> dict[str, Any]:
    """Closure variables of a function that have a value."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


# ---------------------------------------------------------------- the engine

_NAME = "_engine_run_backward"
_installed: dict[str, tuple[Any, Any]] = {}  # module name -> (what was there, what we put there)
_local = threading.local()


def _modules() -> list[Any]:
    return [torch.autograd, torch.autograd.graph]


def wrap_engine(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Put `make(original)` in the place of the function through which every backward call starts the engine.

    Both modules that hold the name are wrapped. A second call does nothing until `unwrap_engine`.

    Parameters
    ----------
    make
        Gets the function that is there now, returns the one to put there. It must pass on all arguments.

    Returns
    -------
    bool
        Whether anything was wrapped now.
    """
    if _installed:
        return False
    for module in _modules():
        original = getattr(module, _NAME, None)
        if original is None:
            continue
        ours = _Switch(make(original), original)
        _installed[module.__name__] = (original, ours)
        setattr(module, _NAME, ours)
    return bool(_installed)


class _Switch:
    """Our wrapper in a module's namespace. With somebody else's on top it cannot be taken out: it is switched off."""

    def __init__(self, ours: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._ours: Callable[..., Any] | None = ours
        self._original = original
        self.__name__ = _NAME
        self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        ours = self._ours
        return (self._original if ours is None else ours)(*args, **kwargs)

    def off(self) -> None:
        self._ours = None


def unwrap_engine() -> None:
    """Restore what `wrap_engine` found. Where somebody else wrapped on top since, ours steps aside and theirs stays."""
    for module in _modules():
        entry = _installed.pop(module.__name__, None)
        if entry is None:
            continue
        original, ours = entry
        ours.off()
        if getattr(module, _NAME, None) is ours:
            setattr(module, _NAME, original)


def engine_wrapper_installed() -> bool:
    """Whether `wrap_engine` is in force."""
    return bool(_installed)


class nested:
    """Marks a backward call in progress on this thread; entering tells whether it runs inside another one.

    A backward inside a hook, a custom backward or a re-entrant checkpoint is not a call of the user's own.
    """

    __slots__ = ("_depth",)

    def __enter__(self) -> bool:
        self._depth = getattr(_local, "depth", 0)
        _local.depth = self._depth + 1
        return self._depth > 0

    def __exit__(self, *_: object) -> None:
        _local.depth = self._depth


def unmentioned(handles: Sequence[Any]) -> Callable[[], None]:
    """Keep `torch.compile` from warning about global module hooks if these are the only ones.

    It warns that hooks run once more for the module it makes; ours do not mind. Returns what undoes this.
    """
    home = torch.nn.modules.module
    original = getattr(home, "_has_any_global_hook", None)
    if original is None:
        return lambda: None
    own = {handle.id for handle in handles}
    called = ("_global_forward", "_global_backward")
    tables = [value for name, value in vars(home).items() if name.startswith(called) and isinstance(value, dict)]

    def has_any_other_hook() -> bool:
        return any(key not in own for table in tables for key in table)

    home._has_any_global_hook = has_any_other_hook

    def undo() -> None:
        if home._has_any_global_hook is has_any_other_hook:
            home._has_any_global_hook = original

    return undo


@contextmanager
def dispatch_mode(mode: Any) -> Iterator[None]:
    """Put a `TorchDispatchMode` around this thread's operations. Entering it as a context would set global flags."""
    torch._C._push_on_torch_dispatch_stack(mode)
    try:
        yield
    finally:
        torch._C._pop_torch_dispatch_stack(None)


def in_backward() -> bool:
    """Whether the engine is running on this thread: inside a hook, a custom backward or a recomputation."""
    if getattr(_local, "depth", 0) > 0:
        return True
    current = getattr(torch._C, "_current_graph_task_id", None)
    return current is not None and current() != -1


def is_fake(tensors: Sequence[Any]) -> bool:
    """Whether a call is torch's own tracing or transforming (compile, export, `torch.func`), not the user's."""
    for tensor in tensors:
        if not is_tensor(tensor):  # a GradientEdge
            continue
        kind = type(tensor)
        if kind is not torch.Tensor and any(c.__module__.startswith("torch._subclasses.") for c in kind.__mro__):
            return True
        for test in _wrapper_tests():
            if test(tensor):
                return True
    return False


@functools.lru_cache(maxsize=1)
def _wrapper_tests() -> tuple[Callable[[Any], bool], ...]:
    functorch = getattr(torch._C, "_functorch", None)
    tests = [getattr(functorch, "is_functorch_wrapped_tensor", None), getattr(torch, "_is_functional_tensor", None)]
    return tuple(test for test in tests if test is not None)


@contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """Set the grad mode of this thread for a while, also out of inference mode, and put it back."""
    with torch.inference_mode(False), torch.set_grad_enabled(enabled):
        yield
