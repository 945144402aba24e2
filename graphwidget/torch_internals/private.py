"""Looks up the private names of torch, once, when graphwidget is imported. A name that is missing never raises.

Each name has a sentence that says what is lost without it. `missing` lists those that this torch lacks: the extension
shows them when it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["PRIVATE_NAMES", "find", "missing", "reader"]

PRIVATE_NAMES: dict[str, str] = {}  # dotted name -> what is lost without it
_missing: list[str] = []


def find(name: str, lost: str, otherwise: Any) -> Any:
    """The object that a private name refers to.

    Parameters
    ----------
    name
        Dotted, from ``torch`` on, through modules and classes. The modules must have been imported.
    lost
        A sentence that says what graphwidget cannot show without it.
    otherwise
        What to return if this torch lacks the name.
    """
    PRIVATE_NAMES[name] = lost
    found, rest = _look_up(name)
    if rest:
        _missing.append(name)
        return otherwise
    return found


def reader(name: str, lost: str, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that reads an attribute through its class: no code of a subclass runs. Parameters: see `find`."""
    descriptor = find(name, lost, None)
    get: Callable[[Any], Any] | None = getattr(descriptor, "__get__", None)
    return otherwise if get is None else get


def missing() -> dict[str, str]:
    """The names that this torch lacks -> what is lost without each."""
    return {name: PRIVATE_NAMES[name] for name in _missing}


def _look_up(name: str) -> tuple[Any, list[str]]:
    """The object found along a dotted name, and the rest of the name that was not found (empty if all was)."""
    first, *rest = name.split(".")
    found: Any = sys.modules[first]
    while rest:
        try:
            found = getattr(found, rest[0])
        except AttributeError:
            return found, rest
        rest = rest[1:]
    return found, rest
