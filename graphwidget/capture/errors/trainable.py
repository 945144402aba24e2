"""Finds what can be trained: the modules with parameters that require grad, and leaves. No user code runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.owners import reading

__all__ = ["frozen", "leaves", "modules"]

MOST = 5000  # modules visited
MOST_LEAVES = 1000  # named
MOST_OBJECTS = 10_000  # looked into for leaves
MOST_DEEP = 8


def modules(namespace: Mapping[str, Any]) -> dict[str, bool]:
    """Return, for the modules in variables and their submodules, path -> whether a parameter requires grad.

    Modules without parameters are left out; if there are too many modules, the result is empty. A module that does not
    keep its parameters where torch does (TorchScript) counts as one without.
    """
    found: dict[str, bool] = {}
    seen = [0]
    with ti.quiet():
        for name, value in list(namespace.items()):
            if isinstance(name, str) and not name.startswith("_") and issubclass(type(value), torch.nn.Module):
                _visit(name, value, found, seen, set())
    return found if seen[0] <= MOST else {}


def _visit(path: str, module: Any, found: dict[str, bool], seen: list[int], above: set[int]) -> bool | None:
    """Whether a parameter of a module or its submodules requires grad; None if there is no parameter."""
    seen[0] += 1
    if id(module) in above or seen[0] > MOST:
        return None
    own = object.__getattribute__(module, "__dict__")
    parameters = [p for p in dict(own.get("_parameters") or {}).values() if p is not None]
    answers: list[bool | None] = [ti.requires_grad(p) for p in parameters]
    for name, inside in list(dict(own.get("_modules") or {}).items()):
        if inside is not None:
            answers.append(_visit(f"{path}.{name}", inside, found, seen, above | {id(module)}))
    known = [answer for answer in answers if answer is not None]
    if not known:
        return None
    found[path] = any(known)
    return found[path]


def frozen(namespace: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return, for modules of which no parameter requires grad, path -> the names of their parameters, in their order.

    They are looked for in variables, and in attributes of objects of the program's own classes.
    """
    found: dict[str, tuple[str, ...]] = {}
    objects = [(name, value) for name, value in namespace.items() if isinstance(name, str) and name[:1] != "_"]
    for name, value in objects[:MOST_LEAVES]:
        if issubclass(type(value), torch.nn.Module):
            modules = [(name, value)]
        elif reading.is_own_class(type(value)):
            modules = [(f"{name}.{key}", one) for key, one in reading.own_attributes(value).items()]
        else:
            continue
        for path, one in modules:
            named = dict(islice(_parameters("", one), MOST_LEAVES)) if issubclass(type(one), torch.nn.Module) else {}
            if named and not any(map(ti.requires_grad, named.values())):
                found[path] = tuple(named)
    return found


def _parameters(prefix: str, module: Any, deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a module with their names, in the order of ``named_parameters()``."""
    own = reading.own_attributes(module)
    yield from ((f"{prefix}{key}", one) for key, one in dict(own.get("_parameters") or {}).items() if one is not None)
    for key, part in dict(own.get("_modules") or {}).items() if deep < MOST_DEEP * 2 else ():
        if part is not None:
            yield from _parameters(f"{prefix}{key}.", part, deep + 1)


def leaves(namespace: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return, for the leaf tensors that require grad, path -> shape.

    They are looked for in variables, and in what these hold: modules, lists, tuples, dicts, objects of the program's
    own classes. A tensor has as many paths as lead to it.
    """
    found: dict[str, tuple[int, ...]] = {}
    work = [(name, value, 0) for name, value in namespace.items() if isinstance(name, str) and name[:1] != "_"]
    for path, one, deep in work:  # it grows
        if len(found) >= MOST_LEAVES or len(work) > MOST_OBJECTS:
            break
        if ti.is_tensor(one):
            if ti.requires_grad(one) and reading.is_leaf(one):
                found[path] = ti.shape_of(one)
        elif deep < MOST_DEEP:
            work += [(inner, part, deep + 1) for inner, part in _parts(path, one)]
    return found


def _parts(path: str, one: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds, with its path: nothing of modules of Python, functions, or a library's objects."""
    cls = type(one)
    if cls in (list, tuple):
        yield from ((f"{path}[{at}]", part) for at, part in enumerate(one[:MOST_LEAVES]))
    elif cls is dict:
        yield from ((f"{path}[{key!r}]", part) for key, part in one.items() if type(key) in (str, int))
    elif issubclass(cls, torch.nn.Module):
        own = dict(reading.own_attributes(one))
        inside = [dict(own.pop(registry, None) or {}) for registry in reading.REGISTRIES]
        for key, part in ((key, part) for registry in inside for key, part in registry.items()):
            yield f"{path}[{key}]" if str(key).isdecimal() else f"{path}.{key}", part
        yield from ((f"{path}.{key}", part) for key, part in own.items() if str(key)[:1] != "_")
    elif cls is not type and reading.is_own_class(cls):
        yield from ((f"{path}.{key}", part) for key, part in reading.own_attributes(one).items())
