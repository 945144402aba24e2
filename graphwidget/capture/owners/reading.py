"""Read any Python object without running a line of its code.

Types are known by their MRO, never by `isinstance`, which asks `__class__`. Contents are read with C descriptors
(`__dict__`, `__slots__`).
"""

from __future__ import annotations

import collections
import functools
import keyword
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.installed import is_installed

__all__ = [
    "CO_OPTIMIZED",
    "REGISTRIES",
    "attribute",
    "class_dict",
    "code_of",
    "dict_getter",
    "is_leaf",
    "is_name",
    "is_own_class",
    "locals_of",
    "member_descriptors",
    "module_of",
    "module_tensors",
    "mro_of",
    "own_attributes",
    "static_attribute",
]

REGISTRIES = ("_parameters", "_buffers", "_modules")
HELD_BY_FRAME_AND_US = 3  # references to a dict of locals: the frame's, ours and the argument of getrefcount
CO_OPTIMIZED = 0x1  # a function's frame: its locals are not a namespace
READABLE_DUNDERS = frozenset({"__self__", "__func__", "__wrapped__"})
_FIELD = type(collections.namedtuple("_Pair", "one").one)  # type: ignore[attr-defined]  # reads one element
_mro = type.__dict__["__mro__"].__get__
_module = type.__dict__["__module__"].__get__


class_dict = type.__dict__["__dict__"].__get__


def mro_of(cls: type) -> tuple[type, ...]:
    """Return the method resolution order of `cls`, past any metaclass."""
    return _mro(cls)  # type: ignore[no-any-return]


def is_own_class(cls: type) -> bool:
    """Whether a class is defined in the program itself, or in a file that was not installed."""
    name = module_of(cls)
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__":
        return True
    if not isinstance(file, str) or name.partition(".")[0] in sys.stdlib_module_names:
        return False
    return not is_installed(file)


def module_of(cls: type) -> str:
    """Return the name of the module that defines `cls`."""
    try:
        name = _module(cls)
    except AttributeError:
        return ""
    return name if type(name) is str else ""


def static_attribute(cls: type, name: str) -> Any:
    """Return what `cls` or a base class defines as `name`, without calling descriptors; None if nothing."""
    for base in mro_of(cls):
        found = class_dict(base).get(name)
        if found is not None:
            return found
    return None


def dict_getter(cls: type) -> Callable[[Any], Any] | None:
    """Return the C getter of `__dict__`, past any property of that name; None if instances have no `__dict__`."""
    for base in mro_of(cls):
        found = class_dict(base).get("__dict__")
        if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            getter: Callable[[Any], Any] = found.__get__
            return getter
    return None


def own_attributes(o: Any) -> dict[str, Any]:
    """Return `vars(o)`, past any property named `__dict__`; empty if `o` has none."""
    getter = dict_getter(type(o))
    return getter(o) if getter else {}


def attribute(o: Any, name: str) -> Any:
    """Return `o.name` if it is stored in the object, a slot, a module's registries or a named tuple; else None."""
    own = own_attributes(o)
    if name in own:
        return own[name]
    for registry in REGISTRIES:
        entries = own.get(registry)
        if type(entries) is dict and name in entries:
            return entries[name]
    slot = static_attribute(type(o), name)
    if type(slot) in (types.MemberDescriptorType, _FIELD):
        try:
            return slot.__get__(o)
        except AttributeError:
            return None
    return None


def module_tensors(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the parameters and buffers of a module, those of its parts after its own, with their names in it."""
    work, seen = [("", module)], set[int]()
    while work:
        prefix, one = work.pop(0)
        if id(one) in seen or torch.nn.Module not in mro_of(type(one)):
            continue
        seen.add(id(one))
        parameters, buffers, parts = (dict(own_attributes(one).get(registry) or {}) for registry in REGISTRIES)
        for name, value in (*parameters.items(), *buffers.items()):
            if internals.is_tensor(value):
                yield f"{prefix}{name}", value
        work.extend((f"{prefix}{name}.", part) for name, part in parts.items())


def member_descriptors(cls: type) -> dict[str, Any]:
    """Return the member descriptors by name: `__slots__` of Python classes, object members of C types."""
    found: dict[str, Any] = {}
    for base in mro_of(cls):
        for name, value in class_dict(base).items():
            if type(value) is types.MemberDescriptorType and (not name.startswith("__") or name in READABLE_DUNDERS):
                found.setdefault(name, value)
    return found


def locals_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Return the local variables of a function's frame.

    Up to Python 3.12, `f_locals` fills a dict that the frame keeps. It would keep alive what the user deletes later, so
    it is emptied again, unless user code holds it, too (by `locals()`). Left out are the variables that pytest puts
    into asserts (``@py_assert3``).
    """
    values = frame.f_locals
    pairs = [(name, value) for name, value in values.items() if name[:1] != "@"]
    is_copy = type(values) is dict and frame.f_code.co_flags & CO_OPTIMIZED
    if is_copy and sys.getrefcount(values) <= HELD_BY_FRAME_AND_US:
        values.clear()
    return pairs


def is_leaf(tensor: torch.Tensor) -> bool:
    """Return `tensor.is_leaf`; for a stale view it follows from the base, as reading it could rebuild the history."""
    if not internals.maybe_stale_view(tensor):
        return internals.is_leaf(tensor)
    base = internals.base(tensor)
    return base is not None and not internals.requires_grad(base)


def is_name(key: Any) -> bool:
    return type(key) is str and key.isidentifier() and not keyword.iskeyword(key)


def code_of(hook: Any) -> types.CodeType | None:
    """The code of a function, a method, a partial, or an object that can be called."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    hook = getattr(hook, "__func__", hook)
    if not isinstance(hook, types.FunctionType):
        hook = static_attribute(type(hook), "__call__")
    return getattr(hook, "__code__", None)
