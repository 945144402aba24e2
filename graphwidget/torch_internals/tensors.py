"""Reads tensors through the descriptors of the base class, so that no code of a subclass runs."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import attrgetter
from typing import Any

import torch

from graphwidget.torch_internals.private import find, reader

__all__ = [
    "NOT_REBUILT",
    "DETECTS_STALE_VIEWS",
    "as_edge",
    "as_integers",
    "base",
    "bytes_of",
    "count_of",
    "creation_is_no_grad",
    "dtype",
    "dtype_name",
    "grad",
    "grad_fn",
    "history",
    "hook_registries",
    "hooks_of",
    "instances_alive",
    "is_leaf",
    "has_plain_values",
    "is_ordinary_view",
    "is_tensor",
    "is_view",
    "leaf_and_grad",
    "saved_properties",
    "maybe_no_leaf",
    "maybe_stale_view",
    "name_of_dtype",
    "nbytes",
    "never_rebuilt",
    "numel",
    "output_nr",
    "overlaps_itself",
    "refuses_writes",
    "requires_grad",
    "retains_grad",
    "shape",
    "shape_of",
    "tensors_alive",
    "untyped_storage",
    "version",
    "version_of",
]

_NO_SUBCLASSES = "Code of tensor subclasses may run when graphwidget reads tensors."
_Base: Any = find("torch._C.TensorBase", _NO_SUBCLASSES, torch.Tensor)


def _read_by_base(name: str, lost: str = _NO_SUBCLASSES, otherwise: Callable[[Any], Any] | None = None) -> Any:
    """A function that reads an attribute of a tensor through the base class, even if that class is missing."""
    here = f"torch._C.TensorBase.{name}"
    return reader(here, lost, attrgetter(name) if otherwise is None else otherwise)


def _no_version(tensor: Any) -> int:
    raise RuntimeError("this torch does not tell versions")


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor, by its type alone: no user-defined `__class__` runs, nothing warns."""
    return issubclass(type(obj), torch.Tensor)


# `requires_grad(t)` is `t.requires_grad` read through the base class, without any code of a subclass.
requires_grad: Callable[[Any], bool] = _read_by_base("requires_grad")
version: Callable[[Any], int] = _read_by_base(
    "_version", "That saved tensors were modified in place is not noticed.", _no_version
)
base: Callable[[Any], Any] = _read_by_base(
    "_base", "Views of tensors that were modified in place may be told wrongly.", lambda tensor: None
)
grad_fn: Callable[[Any], Any] = _read_by_base("grad_fn")
is_leaf: Callable[[Any], bool] = _read_by_base("is_leaf")
output_nr: Callable[[Any], int] = _read_by_base("output_nr")
shape: Callable[[Any], Any] = _read_by_base("shape")
dtype: Callable[[Any], Any] = _read_by_base("dtype")
nbytes: Callable[[Any], int] = _read_by_base("nbytes")
grad: Callable[[Any], Any] = _read_by_base("grad")
retains_grad: Callable[[Any], bool] = _read_by_base("retains_grad")
hook_registries: dict[str, Callable[[Any], Any]] = {
    name: _read_by_base(name, "Hooks that were registered on tensors are not seen.", lambda tensor: None)
    for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
}
_PROPERTIES = ("_version", "requires_grad", "dtype", "shape", "nbytes")
_read_plain: Callable[[Any], tuple[Any, ...]] = attrgetter(*_PROPERTIES)
_readers_of_base: tuple[Callable[[Any], Any], ...] = (version, requires_grad, dtype, shape, nbytes)
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def saved_properties(tensor: Any) -> tuple[int, bool, Any, Any, int]:
    """(version, requires_grad, dtype, shape, bytes) of a saved tensor.

    Unknown values, as of sparse, nested or functional tensors, are -1 (version), None (dtype, shape) or 0 (bytes).
    """
    try:
        if type(tensor) in _PLAIN:
            return _read_plain(tensor)
        return tuple([read(tensor) for read in _readers_of_base])
    except Exception:
        return (
            version_of(tensor),
            requires_grad(tensor),
            _known(dtype, tensor),
            _known(_hashable_shape, tensor),
            bytes_of(tensor),
        )


def _known(read: Callable[[Any], Any], tensor: Any) -> Any:
    try:
        return read(tensor)
    except (RuntimeError, TypeError):
        return None


def _hashable_shape(tensor: Any) -> Any:
    """The shape; raises if a length is not one number."""
    hash(shape(tensor))
    return shape(tensor)


is_view: Callable[[Any], bool] = find(
    "torch._C.TensorBase._is_view",
    "Nothing: whether a tensor is a view is asked in another way.",
    lambda tensor: base(tensor) is not None,
)
untyped_storage: Callable[[Any], Any] = _Base.untyped_storage
numel: Callable[[Any], int] = _Base.numel


def maybe_stale_view(tensor: Any) -> bool:
    """Whether reading the tensor's history could make torch rebuild it, or raise. False is certain, True nearly so."""
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


_NO_MARKS = "Whether a view is stale is unknown more often: looking could rebuild its history."
_creation_meta: Callable[[Any], Any] | None = find("torch._C._autograd._get_creation_meta", _NO_MARKS, None)
_set_creation_meta: Callable[[Any, Any], None] | None = find("torch._C._autograd._set_creation_meta", _NO_MARKS, None)
DETECTS_STALE_VIEWS = _creation_meta is not None and _set_creation_meta is not None


def is_ordinary_view(view: Any) -> bool:
    """Whether torch rebuilds the view's history when it is stale. Where it refuses (unbind, no_grad), it raises."""
    return _creation_meta is None or getattr(_creation_meta(view), "name", "") == "DEFAULT"


def _rebuild_is_due(view: Any) -> bool:
    if not DETECTS_STALE_VIEWS:
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
    """Mark ordinary views so that torch refuses to rebuild their history: reading it then raises if they are stale."""
    assert _creation_meta is not None and _set_creation_meta is not None
    marks = [_creation_meta(view) for view in views]
    try:
        for view, mark in zip(views, marks, strict=True):
            _set_creation_meta(view, type(mark).INFERENCE_MODE)
        yield
    finally:
        for view, mark in zip(views, marks, strict=True):
            _set_creation_meta(view, mark)


def instances_alive(base: type) -> list[Any]:
    """Every object of a class that the process has. Takes 10 ms for 100,000 objects of any kind."""
    objects = gc.get_objects()
    types = {cls for cls in set(map(type, objects)) if issubclass(cls, base)}
    return list(compress(objects, map(types.__contains__, map(type, objects))))


def tensors_alive() -> list[Any]:
    """Every tensor of the process that is a Python object."""
    return instances_alive(torch.Tensor)


def creation_is_no_grad(tensor: Any) -> bool:
    """Whether the tensor is a view that was made under `no_grad` (and not yet detached from its base)."""
    if _creation_meta is None or not is_view(tensor):
        return False
    return getattr(_creation_meta(tensor), "name", "") in ("NO_GRAD_MODE", "INFERENCE_MODE")


_COMPRESSED = ("values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
_layout: Callable[[Any], Any] = _read_by_base("layout")


def bytes_of(tensor: Any) -> int:
    """Bytes of the tensor, of all parts if it is sparse; 0 if unknown."""
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
        The user asked about this tensor: read its history even if that makes torch rebuild it.
    """
    if not requires_grad(tensor):
        return None, 0, None
    if not asked and maybe_stale_view(tensor):
        return None, 0, "stale_view"
    try:
        node = grad_fn(tensor)
    except RuntimeError as error:
        # "Output 0 of Split is a view and its base or another view of its base has been modified inplace. …"
        return None, 0, "view_modified" if str(error).startswith("Output") else "no_grad_view_modified"
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
    """Whether a leaf may have stopped being one, which only rebuilding its history would show.

    This is so for a view of a tensor that requires grad, if the view or its base was modified since.
    """
    origin = base(variable)
    return origin is not None and requires_grad(origin) and maybe_stale_view(variable)


def leaf_and_grad(variable: Any, *, asked: bool = False) -> tuple[bool, Any]:
    """(whether it is still a leaf, its `.grad`) of the tensor of an AccumulateGrad node. Never warns.

    Unless `asked`, a view whose history would have to be rebuilt counts as the leaf that it was, without `.grad`.
    """
    if not asked and maybe_no_leaf(variable):
        return True, None
    if not is_leaf(variable):
        return False, None  # `.grad` of a non-leaf warns
    return True, grad(variable)


_is_zero_tensor: Callable[[Any], bool] = find(
    "torch._C.TensorBase._is_zerotensor",
    "That torch refuses to add to a `.grad` that is a ZeroTensor is not foreseen.",
    lambda tensor: False,
)


def refuses_writes(tensor: Any) -> str:
    """Why torch refuses to write into the tensor in place; "" if it does not refuse.

    Some derivatives that are zero everywhere (the second one of `abs`) are tensors without memory, which cannot be
    written to. AccumulateGrad stores them as `.grad` unchanged, and then the next gradient cannot be added.
    """
    if _is_zero_tensor(tensor):
        return "is a ZeroTensor"
    if _Base.is_inference(tensor):
        return "is an inference tensor"
    return "overlaps itself in memory" if overlaps_itself(tensor) else ""


def has_plain_values(tensor: Any) -> bool:
    """Whether the elements are floating point or complex numbers in memory, one after the other."""
    kind = dtype(tensor)
    plain = str(_layout(tensor)) == "torch.strided" and not _Base.is_meta.__get__(tensor)
    return plain and count_of(tensor) > 0 and (kind.is_floating_point or kind.is_complex)


def overlaps_itself(tensor: Any) -> bool:
    """Whether elements certainly share memory, as in an expanded tensor: torch refuses to write into it in place."""
    if str(_layout(tensor)) != "torch.strided":
        return False
    steps = _Base.stride(tensor)
    return 0 in steps and any(step == 0 and size > 1 for step, size in zip(steps, shape(tensor), strict=True))


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The shape; () where it cannot be read, -1 for a length that is not one number (nested tensors)."""
    try:
        return as_integers(shape(tensor))
    except (RuntimeError, TypeError):
        return ()


def as_integers(lengths: Any) -> tuple[int, ...]:
    """A shape with -1 for symbolic lengths."""
    return tuple([length if type(length) is int else -1 for length in lengths])


def dtype_name(tensor: Any) -> str:
    """The dtype as "float32"."""
    return name_of_dtype(dtype(tensor))


@functools.cache
def name_of_dtype(dtype: Any) -> str:
    """A dtype of torch as "float32"."""
    return str(dtype).removeprefix("torch.")


def count_of(tensor: Any) -> int:
    """Number of elements; -1 where it cannot be read."""
    try:
        number = numel(tensor)
        return number if type(number) is int else -1
    except (RuntimeError, TypeError):
        return -1


def hooks_of(tensor: Any) -> dict[int, Any]:
    """Python hooks registered on a tensor, by the number of their handle, which is unique.

    The hooks of its node are not among them: torch cannot list those.
    """
    return {key: hook for read in hook_registries.values() for key, hook in (read(tensor) or {}).items()}


def version_of(tensor: Any) -> int:
    """The tensor's version counter, -1 if it counts none (inference tensors)."""
    try:
        return version(tensor)
    except RuntimeError:
        return -1
