"""Which modules register a parameter, and which only have it in a list, tuple or dict of Python's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch

from graphwidget.capture.owners import reading
from graphwidget.model import Container

__all__ = ["beside", "classes_around", "names_in_unheld", "owners_around", "unregistered"]

SAMPLE = 1000  # elements of a container that are looked at
_DEPTH = 3  # nesting levels of containers
_KINDS: tuple[type, ...] = (list, tuple, dict)
_OF_TORCH = frozenset(vars(torch.nn.Module()))  # registries, and dicts of hooks


def classes_around(modules: Iterable[Any], wanted: Collection[int]) -> dict[int, frozenset[str]]:
    """Return the names of the classes, with their bases, of all modules that register a parameter, or a part with it.

    By the `id` of the parameter, of those that are `wanted`.
    """
    found: dict[int, set[str]] = {}
    for module in modules:
        names = {cls.__name__ for cls in reading.mro_of(type(module))}
        for _, one in reading.module_tensors(module):
            if id(one) in wanted:
                found.setdefault(id(one), set()).update(names)
    return {key: frozenset(names) for key, names in found.items()}


def beside(modules: Iterable[Any], is_held: Callable[[Any], bool]) -> frozenset[int]:
    """Return the `id` of the parameters that a module has beside one that an optimizer holds."""
    found = set[int]()
    for module in modules:
        own = [one for one in dict(reading.own_attributes(module).get("_parameters") or {}).values() if one is not None]
        if len(own) > 1 and any(map(is_held, own)):
            found.update(map(id, own))
    return frozenset(found)


def owners_around(
    modules: Iterable[Any], wanted: Collection[int], held: Mapping[int, Collection[int]]
) -> dict[int, frozenset[int]]:
    """Return which optimizers hold a part of the smallest module around a parameter of which any holds some.

    `held`: of each optimizer, by its `id`, the ids of its parameters. The result is by the `id` of the parameter.
    """
    found: dict[int, frozenset[int]] = {}
    every = [{id(one) for _, one in reading.module_tensors(module)} for module in modules]
    for inside in sorted(every, key=len):
        new = [key for key in wanted if key in inside and key not in found]
        owners = frozenset(one for one, own in held.items() if not inside.isdisjoint(own)) if new else frozenset()
        found.update(dict.fromkeys(new, owners) if owners else {})
    return found


def names_in_unheld(
    modules: Iterable[Any], wanted: Collection[int], is_held: Callable[[Any], bool], held: Collection[int]
) -> dict[int, tuple[str, ...]]:
    """Return what parameters are called in all modules around them of which nothing is held, by their `id`.

    `held`: the ids of what other optimizers hold.
    """
    found: dict[int, list[str]] = {}
    for module in modules:
        named = list(reading.module_tensors(module))
        if any(id(one) in wanted for _, one in named) and not any(is_held(one) or id(one) in held for _, one in named):
            for name, one in named:
                if id(one) in wanted:
                    found.setdefault(id(one), []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def unregistered(modules: Iterable[Any]) -> dict[int, Container]:
    """Return where parameters are that modules only have in a list, tuple or dict, by their `id`.

    What another attribute of the same module registers is left out. No user code runs.
    """
    found: dict[int, Container] = {}
    for module in modules:
        inside = list(_contained(module))
        registered = {id(one) for _, one in reading.module_tensors(module)} if inside else set()
        for container, parameter in inside:
            if id(parameter) not in registered:
                found.setdefault(id(parameter), container)
    return found


def _contained(module: Any) -> Iterator[tuple[Container, Any]]:
    own: Mapping[str, Any] = reading.own_attributes(module)
    for name, value in list(own.items()):
        kind = _kind_of(value) if name not in _OF_TORCH else None
        if kind is not None:
            for parameter, trains in _parameters_in(value, kind, 0):
                resting = own.get("training") is True and not trains
                yield Container(kind.__name__, type(module).__name__, name, resting), parameter


def _kind_of(value: Any) -> type | None:
    mro = reading.mro_of(type(value))
    return next((kind for kind in _KINDS if kind in mro), None)


def _parameters_in(value: Any, kind: type, depth: int) -> Iterator[tuple[Any, bool]]:
    """Yield the parameters, and whether the module in the container that has one is in training mode."""
    elements = dict.values(value) if kind is dict else (list if kind is list else tuple).__iter__(value)
    for one in islice(elements, SAMPLE):
        mro, inner = reading.mro_of(type(one)), _kind_of(one)
        if torch.nn.Module in mro:
            trains = reading.own_attributes(one).get("training") is not False
            yield from ((tensor, trains) for _, tensor in reading.module_tensors(one))
        elif torch.nn.Parameter in mro:
            yield one, True
        elif inner is not None and depth < _DEPTH:
            yield from _parameters_in(one, inner, depth + 1)
