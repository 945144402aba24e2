"""Reads a node and the tensors that it has saved."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from graphwidget.model import Kind
from graphwidget.model.views import VIEWS
from graphwidget.torch_internals.private import find, reader
from graphwidget.torch_internals.tensors import as_integers, maybe_stale_view, name_of_dtype

__all__ = [
    "FunctionBase",
    "NO_SEQUENCE",
    "RAW_SAVED_TENSORS",
    "NodeReaders",
    "SlotReaders",
    "accumulated_variable",
    "accumulates_shape",
    "accumulators_now",
    "arguments_of_custom",
    "data_of_slot",
    "current_node",
    "dtype_of_input",
    "forward_class",
    "forward_stack",
    "function_with_context",
    "hides_saved",
    "hook_of_slot",
    "is_compiled",
    "is_custom_function",
    "is_output_slot",
    "may_belong_to_view",
    "memory_of_node",
    "name_of",
    "next_functions_of_custom",
    "node_readers",
    "node_that_saved_a_view",
    "number_of",
    "number_of_inputs",
    "outputs_of",
    "saved_by_custom",
    "saved_value",
    "sequence_numbers",
    "slot_names",
    "slot_readers",
    "slot_of",
    "unpack_all",
    "unpacking_attribute",
    "was_never_saved",
]

NO_SEQUENCE = 2**64 - 1  # what AccumulateGrad and Error nodes report: they run as soon as they are ready


def _unreadable(node: Any) -> Any:
    """Replaces a reader whose name this torch lacks. (A RuntimeError would mean that the node was released.)"""
    raise AttributeError("this torch lacks the name that would tell")


def _no_number(node: Any) -> int:
    return NO_SEQUENCE


_NO_NUMBERS = "Which line and which module made a node is unknown."
_NO_CUSTOM = "Python Functions (torch.autograd.Function) may be shown wrongly: read through their own attributes."
_NO_SAVED = "What nodes have saved is unknown."
_NO_SAVED_BY_CUSTOM = "What Python Functions (torch.autograd.Function) have saved is unknown."

FunctionBase: Any = find("torch._C._FunctionBase", _NO_CUSTOM, torch.autograd.function.FunctionCtx)
next_functions_of_custom = reader("torch._C._FunctionBase.next_functions", _NO_CUSTOM, lambda node: node.next_functions)
_number_of_custom = find("torch._C._FunctionBase._sequence_nr", _NO_NUMBERS, _no_number)
saved_by_custom = reader("torch._C._FunctionBase._raw_saved_tensors", _NO_SAVED_BY_CUSTOM, _unreadable)
""" `_raw_saved_tensors`, also of a Function that keeps an attribute of that name. Raises RuntimeError once released."""
_needs_of_custom = reader("torch._C._FunctionBase.needs_input_grad", _NO_CUSTOM, lambda node: node.needs_input_grad)
_name_of_custom = find("torch._C._FunctionBase.name", _NO_CUSTOM, lambda node: node.name())
_saved_tensors = reader("torch._C._FunctionBase.saved_tensors", _NO_SAVED_BY_CUSTOM, _unreadable)
# Every generated node type has these: one of them stands for all.
_number_of_generated = find("torch._C._functions.MulBackward0._sequence_nr", _NO_NUMBERS, None)
_raw_saved = find("torch._C._functions.MulBackward0._raw_saved_self", _NO_SAVED, None)
_saved = find(
    "torch._C._functions.MulBackward0._saved_self",
    "Whether a slot without data was freed or never used, and whether a saved tensor is stale, is often unknown.",
    None,
)
_input_metadata = find(
    "torch._C._functions.MulBackward0._input_metadata",
    "Shapes of gradients are unknown; that a leaf changed its shape or type after it was used is not noticed.",
    None,
)
RAW_SAVED_TENSORS = "_raw_saved_tensors"  # the attribute of `ctx`, to be found in the source of a backward


def hides_saved(cls: type) -> bool:
    """Whether nodes of this type are hand-written in C++, not generated from torch's formulas: they show no slots."""
    return cls.__name__ == "CppFunction"


def number_of_inputs(node: Any) -> int:
    """How many arguments a custom Function was applied to, tensors or not."""
    return len(_needs_of_custom(node))


def arguments_of_custom(node: Any) -> tuple[int, ...]:
    """Per tensor that a custom Function was applied to, its position among all arguments; -1: it needs no gradient."""
    needed = (at for at, needs in enumerate(_needs_of_custom(node)) if needs)
    return tuple(-1 if edge is None else next(needed, -1) for edge, _ in next_functions_of_custom(node))


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


SlotReaders = tuple[tuple[str, Callable[[Any], Any]], ...]
_CUSTOM_SLOTS: SlotReaders = (("saved_tensors", saved_by_custom),)
_UNKNOWN_SLOTS: SlotReaders = (("?", _unreadable),)


def slot_readers(cls: type) -> SlotReaders:
    """(shown name, reader) of each slot of nodes of this type, in the order in which a node unpacks them.

    A reader returns the slot, a tuple of slots, or None if there is none. It raises RuntimeError for a tuple that was
    released.
    """
    if is_custom_function(cls):
        return _CUSTOM_SLOTS
    return _UNKNOWN_SLOTS if _raw_saved is None else _readers_of_generated(cls)


@functools.cache
def _readers_of_generated(cls: type) -> SlotReaders:
    return tuple((shown, cls.__dict__[raw].__get__) for raw, _, shown in slot_names(cls))


def slot_of(node: Any, shown: str) -> Any:
    """The slot with this shown name, such as ``self``, ``tensors[2]`` or ``saved_tensors[0]``."""
    name, listed, number = shown.partition("[")
    found = saved_by_custom(node) if is_custom_function(type(node)) else getattr(node, "_raw_saved_" + name)
    return found[int(number[:-1])] if listed else found


_MARK = "graphwidget"
_metadata_of_custom = reader("torch._C._FunctionBase.metadata", _NO_CUSTOM, lambda node: node.metadata)


def memory_of_node(node: Any) -> dict[str, Any]:
    """Our data on a node: a dict under one key of `node.metadata`, made if there is none.

    It lives and dies with the C++ node. Only for the few nodes that need it, because each costs a dict.
    """
    memory: dict[str, Any] = _metadata_of(node).setdefault(_MARK, {})
    return memory


def _metadata_of(node: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = _metadata_of_custom(node) if isinstance(node, FunctionBase) else node.metadata
    return metadata


def forward_stack(node: Any) -> tuple[str, ...]:
    """Where the forward of a node ran, as anomaly mode stored it: the entries of a stack, innermost last; else empty.

    Each is text as `traceback.format_stack` returns it. Torch's own C++ and anybody else can write there, so
    whatever has another form is left out.
    """
    found = _metadata_of(node).get("traceback_")
    return tuple(one for one in found if type(one) is str) if type(found) is list else ()


_SavedTensor = find("torch._C._autograd.SavedTensor", "Reading what nodes have saved takes longer.", None)


def _reader_of_slot(name: str) -> Callable[[Any], Any]:
    """The getter of the property, which is faster than looking the property up each time."""
    return getattr(getattr(_SavedTensor, name, None), "fget", None) or attrgetter(name)


hook_of_slot, data_of_slot = _reader_of_slot("unpack_hook"), _reader_of_slot("data")


def is_output_slot(shown: str) -> bool:
    """Whether a slot of a generated node holds an output of that node: torch names it after the output."""
    return shown.startswith(("result", "output", "values", "indices", "log_sumexp", "logsumexp"))


def saved_value(node: Any, shown: str) -> Any:
    """What a generated node has saved under a name: a tensor or a number. None: nothing, or a hook has packed it."""
    raw = getattr(node, "_raw_saved_" + shown, None)
    return None if raw is not None and hook_of_slot(raw) is not None else getattr(node, "_saved_" + shown, None)


def unpacking_attribute(node: Any, shown: str) -> str | None:
    """The attribute of a node that unpacks this slot alone; None: there is none."""
    return None if is_custom_function(type(node)) or shown.endswith("]") else "_saved_" + shown


def was_never_saved(node: Any, shown: str) -> bool:
    """Whether a slot without data and hook never held anything. If it was released instead, this takes 8 us."""
    saved = unpacking_attribute(node, shown)
    try:
        return (slot_of(node, shown).unpack() if saved is None else getattr(node, saved)) is None
    except RuntimeError:
        return False


def unpack_all(node: Any, shown: str) -> None:
    """Unpack a list of slots, to raise torch's error if one is stale. Not for lists that a hook has packed.

    Raises
    ------
    RuntimeError
        torch's own error (modified, detached or freed), or "packed".
    """
    if is_custom_function(type(node)):
        if any(slot.unpack_hook is not None for slot in saved_by_custom(node) or ()):
            raise RuntimeError("packed")
        _saved_tensors(node)
    else:
        getattr(node, "_saved_" + shown.partition("[")[0])


def function_with_context(node: Any) -> Any:
    """The part of a custom Function that can call `save_for_backward`: `setup_context`, or else `forward`."""
    cls = forward_class(node)
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


def may_belong_to_view(node: Any) -> bool:
    """Whether a tensor with this history may be a view whose history torch would rebuild.

    For several views at once, or a custom Function, torch refuses to.
    """
    variable = accumulated_variable(node)
    if variable is not None:
        return maybe_stale_view(variable)
    return type(node).__name__.partition("Backward")[0].lower() in VIEWS


_ALWAYS_RAISES = ("Error", "DelayedError", "NotImplemented")


class NodeReaders(NamedTuple):
    """How to read nodes of one type.

    Attributes
    ----------
    next_functions, number
        Functions of a node: its edges, its sequence number.
    name
        The name of all nodes of the type; None: it has to be read from each node.
    kind
        A `Kind`.
    """

    next_functions: Callable[[Any], Any]
    number: Callable[[Any], int]
    name: str | None
    kind: int


def node_readers(cls: type) -> NodeReaders:
    """How to read nodes of one type.

    A custom Function is read through the base class: its author may have set attributes such as `ctx.name`.
    """
    if is_custom_function(cls):
        kind = Kind.COMPILED if is_compiled(cls) else Kind.CUSTOM
        return NodeReaders(next_functions_of_custom, _number_of_custom, None, int(kind))
    name = cls.__name__
    edges = cls.next_functions.__get__  # type: ignore[attr-defined]
    number = _no_number if _number_of_generated is None else cls._sequence_nr  # type: ignore[attr-defined]
    if name == "AccumulateGrad":
        return NodeReaders(edges, number, name, int(Kind.ACCUMULATE))
    if name == "CopySlices":
        kind = Kind.COPY_SLICES
    elif name in _ALWAYS_RAISES:
        kind = Kind.ERROR
    else:
        kind = Kind.FUNCTION
    # Nodes generated from formulas (MulBackward0) have the name of their type. The engine's own (CopySlices,
    # CopyBackwards, Error) have a prefix, and nodes without a type of their own share one type.
    shared = name if name.rstrip("0123456789").endswith("Backward") else None
    return NodeReaders(edges, number, shared, int(kind))


def sequence_numbers(nodes: Sequence[Any], types: Sequence[type]) -> list[int]:
    """The sequence numbers of nodes; `types` are their types."""
    readers = {cls: node_readers(cls).number for cls in set(types)}
    return [readers[cls](node) for node, cls in zip(nodes, types, strict=True)]


def number_of(node: Any) -> int:
    """The sequence number of a node."""
    return node_readers(type(node)).number(node)


_current_node: Callable[[], Any] = find(
    "torch._C._current_autograd_node",
    "For which node a hook unpacks a saved tensor is unknown.",
    lambda: None,
)


def current_node() -> Any:
    """The node that the engine is running in this thread; None: it runs none."""
    return _current_node()


def forward_class(node: Any) -> Any:
    """The user's class of a custom Function node; None: unknown, or another node."""
    return getattr(type(node), "_forward_cls", None)


def name_of(node: Any) -> str:
    """The name that torch gives a node; ``AccumulateGrad`` without the prefix ``torch::autograd::``."""
    name: str = _name_of_custom(node) if isinstance(node, FunctionBase) else node.name()
    return "AccumulateGrad" if name == "torch::autograd::AccumulateGrad" else name


def accumulates_shape(node: Any) -> tuple[int, ...] | None:
    """The shape of the gradients that an AccumulateGrad takes: the leaf's when the node was made. None: unknown."""
    if _input_metadata is None:
        return None
    try:
        return as_integers(node._input_metadata[0].shape)
    except (AttributeError, IndexError, RuntimeError):
        return None


def is_compiled(cls: type) -> bool:
    """Whether nodes of this type run a region of `torch.compile`."""
    forward = getattr(cls, "_forward_cls", None)
    return getattr(forward, "__module__", "").startswith("torch._functorch") and hasattr(
        forward, "_compiled_autograd_key"
    )


def accumulated_variable(node: Any) -> Any:
    """The leaf behind an AccumulateGrad node, None for any other node."""
    return getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None


def dtype_of_input(node: Any) -> str:
    """The dtype of the gradients that a node takes, such as "float32"; "" if unknown."""
    return "" if _input_metadata is None else name_of_dtype(node._input_metadata[0].dtype)


def outputs_of(node: Any) -> tuple[tuple[Any, Any, Any], ...] | None:
    """(dtype, shape, device) of each output of the operation: those of the gradients that its node takes.

    As torch returns them; a shape may have symbolic lengths. None: unknown.
    """
    if _input_metadata is None:
        return None
    try:
        return tuple((of.dtype, of.shape, of.device) for of in node._input_metadata)
    except (AttributeError, RuntimeError):  # a nested tensor has no shape
        return None


def accumulators_now(leaves: Sequence[torch.Tensor]) -> list[Any]:
    """The AccumulateGrad node that torch gives each leaf now. It is a new one if the leaf's dtype has changed.

    Finding it makes another node with a sequence number, so this runs in a new thread, which has its own numbers. None
    for a leaf of a subclass, because the subclass's code would run, and where torch raises.
    """
    found: list[Any] = [None] * len(leaves)

    def ask() -> None:
        for i, leaf in enumerate(leaves):
            with contextlib.suppress(Exception):  # torch refuses some views
                if type(leaf) in (torch.Tensor, torch.nn.Parameter):
                    found[i] = leaf.view_as(leaf).grad_fn.next_functions[0][0]  # type: ignore[union-attr]

    thread = threading.Thread(target=ask, name="graphwidget-leaves")
    thread.start()
    thread.join()
    return found
