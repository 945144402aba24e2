"""Spelling of paths: ``net[2].weight`` for the weight of the third part of `net`.

Each function takes the path of the owner, the key of the child and the owner. It returns the path of the child and
whether that path is a Python expression.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from math import isfinite
from typing import Any

import torch

from graphwidget.capture.owners.reading import class_dict, is_name, mro_of, own_attributes, static_attribute

__all__ = [
    "Spelling",
    "by_arrow",
    "by_attribute",
    "by_child",
    "by_closure",
    "by_default",
    "by_frame",
    "by_index",
    "by_key",
    "by_nothing",
    "by_position",
    "by_registry",
    "by_traceback",
]

# (path of the owner, key, owner) -> (path, whether it is an expression)
Spelling = Callable[[str, Any, Any], "tuple[str, bool]"]


def by_index(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    if tuple in mro_of(type(owner)):
        fields = static_attribute(type(owner), "_fields")
        if type(fields) is tuple and key < len(fields):
            return f"{prefix}.{fields[key]}", True
    return f"{prefix}[{key}]", True


def by_nothing(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    """What stands for its owner has the owner's name."""
    return prefix, True


def by_position(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"list({prefix})[{key}]", True


def by_key(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    text = literal(key)
    if text is not None:
        return f"{prefix}[{text}]", True
    at = next((i for i, k in enumerate(dict.keys(owner)) if k is key), 0)
    return f"list({prefix}.values())[{at}]", True


def by_attribute(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    if not is_name(key) or hides_instance(type(owner), key):
        return f"vars({prefix})[{key!r}]", True
    return f"{prefix}.{key}", True


def by_registry(registry: str, item: Any, prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    """A parameter or buffer: `fc1.weight`, or `weights[0]` in a ParameterList."""
    if item is not None:
        if item is torch.nn.ParameterList.__getitem__ and type(key) is str and key.isdigit():
            return f"{prefix}[{key}]", True
        if item is torch.nn.ParameterDict.__getitem__:
            return f"{prefix}[{key!r}]", True
    if not is_name(key) or static_attribute(type(owner), key) is not None or key in own_attributes(owner):
        return f"{prefix}.{registry}[{key!r}]", True
    return f"{prefix}.{key}", True


def by_child(item: Any, prefix: str, at_key: Any, owner: Any) -> tuple[str, bool]:
    """A submodule as users write it: `net[2]`, `blocks['a']`, `model.fc1`."""
    at, key = at_key
    if item is torch.nn.ModuleDict.__getitem__:
        return f"{prefix}[{key!r}]", True
    if item is torch.nn.Sequential.__getitem__ and not is_name(key):
        return f"{prefix}[{at}]", True
    if item is torch.nn.ModuleList.__getitem__ and key == str(at):
        return f"{prefix}[{at}]", True
    return by_registry("_modules", None, prefix, key, owner)


def by_closure(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}.__closure__[{key}]", False


def by_default(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    """What an argument has by default, by the argument's name."""
    return f"{prefix}.__defaults__[{key}]", False


def by_frame(attribute: str, prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}.{attribute}[{key}]", False


def by_traceback(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}: {key}", False


def by_arrow(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix} -> [{key}]", False


def hides_instance(cls: type, name: str) -> bool:
    """Whether a property or other data descriptor of the class shadows the instance's attribute."""
    found = static_attribute(cls, name)
    if found is None or type(found) in (types.MemberDescriptorType, types.GetSetDescriptorType):
        return False
    return any("__set__" in class_dict(base) or "__delete__" in class_dict(base) for base in mro_of(type(found)))


def literal(key: Any) -> str | None:
    """Return a short expression for a dict's key; None if there is none."""
    cls = type(key)
    if cls in (str, int, bool, bytes, type(None)) or (cls is float and isfinite(key)):
        text = repr(key)
    elif cls is tuple and key:
        parts = [literal(part) for part in key]
        text = "(" + ", ".join(p for p in parts if p is not None) + ("," if len(parts) == 1 else "") + ")"
        if None in parts:
            return None
    else:
        return None
    return text if len(text) <= 80 else None
