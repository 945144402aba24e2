"""Where a search for tensors starts: variables, locals of live frames, IPython's history, the last error."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from graphwidget.capture.owners import reading
from graphwidget.capture.owners.paths import PathStep

__all__ = ["LAST_RESULT", "items_of", "parts_of_older", "starting_points"]

IPYTHON_NAMES = frozenset({"In", "Out", "get_ipython", "exit", "quit", "_ih", "_oh", "_dh", "_i", "_ii", "_iii"})
LAST_OUTPUTS = ("_", "__", "___")
LAST_RESULT = "get_ipython().last_execution_result"


def starting_points(
    items: list[tuple[Any, Any]],
    frames: Sequence[types.FrameType],
    shell: Any,
    out: bool,
    last_error: bool,
    hidden: frozenset[str],
    others: Iterable[tuple[str, str, Any]] = (),
) -> Iterator[tuple[Any, PathStep]]:
    """Yield objects with the first steps of their paths, the preferred names first."""
    names = {name: value for name, value in items if type(name) is str and name not in hidden}
    outputs = list(_outputs(names, dict(items).get("Out"))) if out else []
    apart = IPYTHON_NAMES.union(path for path, _ in outputs)
    for name in sorted(names, key=lambda name: (name.startswith("_"), len(name))):
        if name not in apart and not name.startswith("__") and not (_is_number(name) and out):
            yield names[name], PathStep.first(name if reading.is_name(name) else f"globals()[{name!r}]", "variable")
    for frame in frames:
        if frame.f_code.co_flags & reading.CO_OPTIMIZED:
            for name, value in reading.locals_of(frame):
                yield value, PathStep.first(f"{frame.f_code.co_name}:{name}", "frame", expression=False)
    for path, kind, value in others:
        yield value, PathStep.first(path, kind, expression=False)
    for path, value in outputs:
        yield value, PathStep.first(path, "out")
    if out and shell is not None:
        result = reading.own_attributes(shell).get("last_execution_result")
        for name, value in reading.own_attributes(result).items():
            if name in ("result", "error_before_exec", "error_in_exec"):
                yield value, PathStep.first(f"{LAST_RESULT}.{name}", "out" if name == "result" else "traceback")
    if last_error:
        for name in ("last_traceback", "last_value", "last_exc"):
            yield sys.__dict__.get(name), PathStep.first(f"sys.{name}", "traceback")


def parts_of_older(items: list[tuple[Any, Any]], frames: Iterable[types.FrameType]) -> frozenset[int]:
    """Return the ids of modules that are parts of another variable's, which is older: `layer` of a loop over a model.

    Such a variable stands for another module in each pass, and the path through the whole lasts.
    """
    found = set[int]()
    functions = [frame for frame in frames if frame.f_code.co_flags & reading.CO_OPTIMIZED]
    for variables in (items, *map(reading.locals_of, functions)):
        modules = [value for _, value in variables if torch.nn.Module in reading.mro_of(type(value))]
        inside = set[int]()
        for module in modules if len(modules) > 1 else ():  # one alone is no part of another: nothing is looked through
            if id(module) in inside:
                found.add(id(module))
            else:
                _add_parts(module, inside)
    return frozenset(found)


def _add_parts(module: Any, inside: set[int]) -> None:
    for part in dict(reading.own_attributes(module).get("_modules") or {}).values():
        if part is not None and id(part) not in inside:
            inside.add(id(part))
            _add_parts(part, inside)


def _outputs(names: dict[str, Any], history: Any) -> Iterator[tuple[str, Any]]:
    """Yield `Out[n]`, `_`, `__`, `___`, and each `_n` that is not the same object as `Out[n]`."""
    values = dict(items_of(history))
    for n, value in values.items():
        yield f"Out[{n!r}]", value
    for name in names:
        if name in LAST_OUTPUTS or (_is_number(name) and values.get(int(name[1:])) is not names[name]):
            yield name, names[name]


def _is_number(name: str) -> bool:
    return name.startswith("_") and name[1:].isdecimal()


def items_of(mapping: Any) -> list[tuple[Any, Any]]:
    """Return the items of a dict or an instance of a subclass, read with `dict.items`; of other objects none."""
    return list(dict.items(mapping)) if dict in reading.mro_of(type(mapping)) else []
