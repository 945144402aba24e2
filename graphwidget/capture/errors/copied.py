"""The tensors with a graph in an object that was being copied: the error of ``copy.deepcopy`` names none of them.

The frames of the error know the object, and the tensor at which the copy stopped. No user code runs.
"""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Iterator, Sequence
from itertools import islice
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.owners import reading, spelling
from graphwidget.model import CopiedTensor

__all__ = ["tensors"]

MOST_OBJECTS = 20_000  # looked into
MOST_TENSORS = 50
MOST_NODES = 100  # between a tensor and the parameters of its module

_ATOMS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)
_OWN_COPY = ("__deepcopy__", "__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs_ex__")


def tensors(frames: Sequence[FrameType]) -> tuple[CopiedTensor, ...]:
    """Return the tensors that keep an object from being copied, the one at which the copy stopped first.

    Parameters
    ----------
    frames
        Those of the error, from the innermost one of the user's own code on, outermost first.
    """
    copying = next((frame for frame in frames if frame.f_code is copy.deepcopy.__code__), None)
    failed = dict(reading.locals_of(frames[-1])).get("self") if frames else None
    if copying is None or not ti.is_tensor(failed):
        return ()
    whole = dict(reading.locals_of(copying)).get("x")
    with ti.quiet():
        found = [*islice(_computed(_name(frames[0], whole), whole), MOST_TENSORS)]
        found.sort(key=lambda one: one[1] is not failed)
        if not found or found[0][1] is not failed:
            return ()
        return tuple(_described(*one) for one in found)


def _name(frame: FrameType, whole: Any) -> str:
    """Return what the user's line calls an object: a variable, or an attribute of one; empty: it has no such name."""
    own = dict(reading.locals_of(frame))
    variables = {**own, **{name: one for name, one in frame.f_globals.items() if name not in own}}
    named = [(name, one) for name, one in variables.items() if type(name) is str and not name.startswith("_")]
    direct = (name for name, one in named if one is whole)
    held = (path for name, one in named for path, part, _, _ in _parts(name, one) if part is whole)
    return next(direct, "") or next(held, "")


def _computed(start: str, whole: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield the tensors with a graph in an object: path, tensor, what holds it, and by which key.

    What an object with a way of its own to be copied holds may not be copied, and is not looked at.
    """
    work: list[tuple[str, Any, Any, Any]] = [(start, whole, None, None)]
    seen = set[int]()
    for path, one, owner, key in work:  # it grows
        if ti.is_tensor(one):
            if ti.requires_grad(one) and not reading.is_leaf(one):
                yield path, one, owner, key
        elif id(one) not in seen and len(work) < MOST_OBJECTS:
            seen.add(id(one))
            if one is whole or not any(_own(type(one), name) for name in _OWN_COPY):
                work += _parts(path, one)


def _own(cls: type, name: str) -> bool:
    """Whether a class has a method of that name which is not Python's own, nor that of all modules."""
    base = next((base for base in reading.mro_of(cls) if name in reading.class_dict(base)), object)
    return base is not torch.nn.Module and reading.module_of(base) not in ("builtins", "collections")


def _parts(path: str, one: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield what an object holds: its path as a user writes it, the part, the object, and by which key it has it."""
    cls = type(one)
    if issubclass(cls, (list, tuple)):
        items = tuple.__iter__(one) if issubclass(cls, tuple) else list.__iter__(one)
        for at, part in enumerate(items):
            yield spelling.by_index(path, at, one)[0], part, one, at
    elif issubclass(cls, dict):
        for key, part in dict.items(one):
            yield spelling.by_key(path, key, one)[0], part, one, key
    if issubclass(cls, _ATOMS):
        return
    own = dict(reading.own_attributes(one))
    if issubclass(cls, torch.nn.Module):
        item = reading.static_attribute(cls, "__getitem__")
        for at, (key, part) in enumerate((own.pop("_modules", None) or {}).items()):
            yield spelling.by_child(item, path, (at, key), one)[0], part, one, key
        for registry in ("_parameters", "_buffers"):
            for key, part in (own.pop(registry, None) or {}).items():
                yield spelling.by_registry(registry, item, path, key, one)[0], part, one, None
    for key, part in own.items():
        if type(key) is str:
            yield spelling.by_attribute(path, key, one)[0], part, one, key


# ------------------------------------------------------------------ what computes a tensor anew


def _described(path: str, tensor: Any, owner: Any, key: Any) -> CopiedTensor:
    node = ti.history(tensor, asked=False)[0]
    number = -1 if node is None else ti.number_of(node)
    if not isinstance(owner, torch.nn.Module) or type(key) is not str or node is None:
        return CopiedTensor(path, number)
    hooks = (reading.own_attributes(owner).get("_forward_pre_hooks") or {}).values()
    hook = next((one for one in hooks if _writes(one, key)), None)
    sources = _own_parameters(node, owner) if hook is not None else ()
    if hook is None or not sources:
        return CopiedTensor(path, number)
    return CopiedTensor(path, number, _name_of(hook), sources, _remover(hook))


def _writes(hook: Any, key: str) -> bool:
    """Whether a hook has the name of an attribute: in its code, its closure, or as an attribute of its own."""
    if isinstance(hook, types.MethodType):
        return _writes(hook.__func__, key) or _has(hook.__self__, key)
    if isinstance(hook, types.FunctionType):
        cells = hook.__closure__ or ()
        return _stores(hook.__code__, key) or any(_content(cell) == key for cell in cells)
    call = reading.static_attribute(type(hook), "__call__")
    return _has(hook, key) or (isinstance(call, types.FunctionType) and _stores(call.__code__, key))


def _stores(code: types.CodeType, key: str) -> bool:
    return key in code.co_names or key in code.co_consts


def _has(one: Any, key: str) -> bool:
    return any(type(value) is str and value == key for value in reading.own_attributes(one).values())


def _content(cell: types.CellType) -> str | None:
    try:
        return cell.cell_contents if type(cell.cell_contents) is str else None
    except ValueError:
        return None


def _own_parameters(node: Any, module: Any) -> tuple[str, ...]:
    """Return the parameters of a module from which a node was computed."""
    names = {id(one): key for key, one in (reading.own_attributes(module).get("_parameters") or {}).items()}
    found: dict[str, None] = {}
    work = [node]
    for one in work:  # it grows
        variable = ti.accumulated_variable(one) if ti.name_of(one) == "AccumulateGrad" else None
        if variable is not None and id(variable) in names:
            found[names[id(variable)]] = None
        for following, _ in one.next_functions:
            if following is not None and len(work) < MOST_NODES:
                work.append(following)
    return tuple(found)


def _name_of(hook: Any) -> str:
    function = hook.__func__ if isinstance(hook, types.MethodType) else hook
    return function.__qualname__ if isinstance(function, types.FunctionType) else type(hook).__name__


def _remover(hook: Any) -> str:
    """Return the function that makes permanent what a library's hook computes: it stands beside the hook's class."""
    cls = type(hook)
    if isinstance(hook, (types.FunctionType, types.MethodType)) or reading.is_own_class(cls):
        return ""
    name = reading.module_of(cls)
    beside = vars(sys.modules[name]) if name in sys.modules else {}
    found = [one for one in beside if one.startswith("remove") and isinstance(beside[one], types.FunctionType)]
    if len(found) != 1:
        return ""
    outer = name.rpartition(".")[0]  # where a package gives it out, too, a user finds it there
    given_out = outer in sys.modules and vars(sys.modules[outer]).get(found[0]) is beside[found[0]]
    return f"{outer if given_out else name}.{found[0]}"
