"""Tensors that custom Functions of a graph read besides those that they were applied to. No user code runs.

A Function is one node: the graph leads from it to the tensors that it was applied to. What its code takes from a
closure, a global or an object is no edge, and a call that asks for gradients of that finds no path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.errors import checkpoints
from graphwidget.capture.installed import is_installed
from graphwidget.capture.owners import reading
from graphwidget.model import UsedInside

__all__ = ["uses"]

MOST_OBJECTS = 5000  # that one Function's code is followed to
MOST_DEPTH = 5  # from a function to one that it calls, and so on
MOST_FUNCTIONS = 50

_CONTAINERS = (list, tuple, set, frozenset)
_INPUTS = 3  # position of the inputs among what the engine is given behind the roots


def uses(frames: Sequence[FrameType]) -> tuple[UsedInside, ...]:
    """Return the Functions behind the roots of a failed call whose code reads some of its inputs, as far as seen.

    Parameters
    ----------
    frames
        All frames of the error's traceback, outermost first.
    """
    wanted = {id(one): at for at, one in enumerate(_inputs(frames))}
    found = list[UsedInside]()
    for node in checkpoints.nodes_of_call(frames) if wanted else ():
        forward = ti.forward_class(node) if ti.is_custom_function(type(node)) else None
        if forward is None or len(found) >= MOST_FUNCTIONS:
            continue
        read = _Reader().tensors(_starts(node, forward))
        inside = sorted({wanted[id(one)] for one in read if id(one) in wanted})
        if inside:
            found.append(UsedInside(ti.number_of(node), tuple(inside)))
    return tuple(found)


def _inputs(frames: Sequence[FrameType]) -> Sequence[Any]:
    """Return the inputs that the call of the engine was given."""
    for frame in frames:
        if frame.f_code.co_name == ti.ENGINE_CALL:
            given = dict(reading.locals_of(frame)).get("args") or ()
            inputs = given[_INPUTS] if len(given) > _INPUTS else ()
            return inputs if type(inputs) is tuple else ()
    return ()


def _starts(node: Any, forward: type) -> Iterator[Any]:
    """Yield what the code of a Function begins with: its methods, and what `forward` has left on the context."""
    yield from reading.own_attributes(node).values()
    for name in ("forward", "backward"):
        method = reading.static_attribute(forward, name)
        yield getattr(method, "__func__", method)


class _Reader:
    """Follows objects to the tensors that code reads of them: of a function only what its code names."""

    def __init__(self) -> None:
        self.seen = set[int]()

    def tensors(self, starts: Iterator[Any]) -> Iterator[Any]:
        """Yield the tensors that some objects lead to."""
        for one in starts:
            yield from self._of(one, None, MOST_DEPTH)

    def _of(self, one: Any, names: frozenset[str] | None, depth: int) -> Iterator[Any]:
        """Yield the tensors of an object. `names`: the names in the code that reads it; None: it is used as a whole."""
        kind = type(one)
        if ti.is_tensor(one):
            yield one
            return
        if depth <= 0 or len(self.seen) > MOST_OBJECTS:
            return
        if kind in _CONTAINERS or kind is dict:
            for inner in one.values() if kind is dict else one:
                yield from self._of(inner, names, depth - 1)
        elif kind is functools.partial:
            for inner in (one.func, *one.args, *one.keywords.values()):
                yield from self._of(inner, None, depth - 1)
        elif kind is MethodType:
            yield from self._of_function(one.__func__, one.__self__, depth)
        elif kind is FunctionType:
            yield from self._of_function(one, None, depth)
        elif torch.nn.Module in reading.mro_of(kind):
            yield from self._of_object(one, names, depth, whole=True)
        elif names is not None and reading.is_own_class(kind):
            yield from self._of_object(one, names, depth, whole=False)

    def _of_object(self, one: Any, names: frozenset[str] | None, depth: int, *, whole: bool) -> Iterator[Any]:
        """Yield what code reads of an object: the attributes and methods that it names, else all of a module."""
        named = [(name, reading.attribute(one, name)) for name in sorted(names or ())]
        found = list[Any]()
        for name, value in named:
            if value is not None:
                inside = None if torch.nn.Module in reading.mro_of(type(value)) else names
                found += self._of(value, inside, depth - 1)
            else:
                method = reading.static_attribute(type(one), name)
                if type(method) is FunctionType and _is_own(method):
                    found += self._of_function(method, one, depth - 1)
        yield from found
        if whole and not found:
            yield from (tensor for _, tensor in reading.module_tensors(one))

    def _of_function(self, function: Any, owner: Any, depth: int) -> Iterator[Any]:
        """Yield what the code of a function reads: of its closure, its defaults, its globals, and its object."""
        if type(function) is not FunctionType or id(function) in self.seen:
            return
        self.seen.add(id(function))
        names = frozenset(_names_in(function.__code__))
        around = [cell.cell_contents for cell in function.__closure__ or () if _has_value(cell)]
        around += function.__defaults__ or ()
        if _is_own(function):
            space = function.__globals__
            around += [space[name] for name in sorted(names) if name in space]
        if owner is not None:
            yield from self._of_object(owner, names, depth, whole=torch.nn.Module in reading.mro_of(type(owner)))
        for one in around:
            yield from self._of(one, names, depth - 1)


def _is_own(function: Any) -> bool:
    return not is_installed(function.__code__.co_filename)


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _names_in(constant)


def _has_value(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
