"""Where each node was made: the line of code, and the module call."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

from graphwidget.model import ModuleCall, Place

__all__ = ["PlaceColumns", "place_columns"]

# Two columns, each with its table. In quotes: before Python 3.12 `array[int]` raises when it runs.
PlaceColumns: TypeAlias = "tuple[array[int], tuple[Place, ...], array[int], tuple[ModuleCall, ...]]"


def place_columns(places: Any, numbers: array[int], names: Sequence[str]) -> PlaceColumns:
    """The columns `place` and `module` of a snapshot, each with its table. `places`: see `taking`."""
    if places is None:
        nowhere = array("i", [-1]) * len(numbers)
        return nowhere, (), nowhere[:], ()
    if hasattr(places, "lookup"):
        place, place_table, module, module_table = places.lookup(numbers, names)
        return place, tuple(place_table), module, tuple(module_table)
    found_places: dict[Place, int] = {}
    found_modules: dict[ModuleCall, int] = {}
    place_column, module_column = array("i"), array("i")
    for number, name in zip(numbers, names, strict=True):
        where = places.place_of(number, name) if number >= 0 else None
        call = places.module_of(number, name) if number >= 0 else None
        place_column.append(-1 if where is None else found_places.setdefault(where, len(found_places)))
        module_column.append(-1 if call is None else found_modules.setdefault(call, len(found_modules)))
    return place_column, tuple(found_places), module_column, tuple(found_modules)
