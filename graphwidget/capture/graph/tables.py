"""What the slots, leaves and facts of one snapshot share: numbered texts, types, shapes and storages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from graphwidget import torch_internals as ti

__all__ = ["NOTHING", "Look", "Numbered", "Tables", "Translation"]


class Look(NamedTuple):
    """What is read of a saved tensor besides its memory. A table of them is short: most tensors look like others."""

    version: int = -1  # -1: it counts none
    wants_grad: bool = True
    dtype: Any = None  # torch's, or its name; None: unknown
    shape: Sequence[int] | None = None  # None: unknown
    bytes: int = 0


NOTHING = 0  # number of the look of a slot of which nothing is known


class Numbered(dict[Any, int]):
    """Value -> its number: values get one when they are first looked up, from 0."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


class Translation(dict[int, int]):
    """Number in an earlier snapshot's table -> number in ours."""

    def __init__(self, table: Numbered, values: Sequence[Any]) -> None:
        super().__init__()
        self._table, self._values = table, values

    def __missing__(self, number: int) -> int:
        here = self[number] = self._table[self._values[number]]
        return here


class Tables:
    """Where each text, look and storage gets its number. `looks`: a table to go on with."""

    def __init__(self, looks: Numbered | None = None) -> None:
        self.slot_names = Numbered()
        self.looks = Numbered({Look(): NOTHING}) if looks is None else looks
        self.storages: dict[int, int] = {}  # key -> index
        self.storage_bytes: list[int] = []

    def storage(self, tensor: Any) -> int:
        """Index of the memory behind a tensor, -1: it has none that could be named."""
        found = ti.storage_of(tensor)
        if found is None:
            return -1
        key, size = found
        at = self.storages.get(key)
        if at is None:
            at = self.storages[key] = len(self.storage_bytes)
            self.storage_bytes.append(size)
        return at

    def storages_of(self, tensors: Sequence[Any]) -> Sequence[int]:
        """The keys of the memory behind many tensors, -1: none. Their storages get numbers."""
        try:
            keys = list(map(ti.storage_key, tensors))
        except Exception:
            keys = [0]
        if min(keys) <= 0:
            return list(map(self.storage_key, tensors))
        known, fresh = self.storages, dict(zip(keys, tensors, strict=True))
        new = [key for key in fresh if key not in known]
        self.storage_bytes.extend(ti.storage_sizes(map(fresh.__getitem__, new)))
        known.update(zip(new, count(len(known))))
        return keys

    def sizes_of(self, tensors: Sequence[Any], keys: Sequence[int]) -> list[int] | None:
        """Bytes of the memory behind many tensors, if their keys are these. None: they are not, or some have none."""
        try:
            if list(map(ti.storage_key, tensors)) != keys:
                return None
            return list(ti.storage_sizes(tensors))
        except Exception:
            return None

    def storage_key(self, tensor: Any) -> int:
        """The key of the memory behind any tensor, -1: none. Its storage gets a number."""
        found = ti.storage_of(tensor)
        if found is None:
            return -1
        self.storage(tensor)
        return found[0]

    def looks_of(self, tensors: Sequence[Any]) -> list[int]:
        """The numbers of the looks of many tensors."""
        try:
            return list(map(self.looks.__getitem__, ti.looks(tensors)))
        except Exception:  # sparse, nested, functional tensors: some cannot tell everything
            return list(map(self.look, tensors))

    def look(self, tensor: Any) -> int:
        """The number of the look of any tensor: what it cannot tell is unknown."""
        return self.looks[self.careful_look(tensor)]

    def careful_look(self, tensor: Any) -> Look:
        """The look of any tensor: what it cannot tell is unknown."""
        return Look(
            ti.version_of(tensor), ti.requires_grad(tensor), _dtype(tensor), _shape(tensor), ti.bytes_of(tensor)
        )


def _dtype(tensor: Any) -> Any:
    try:
        return ti.dtype(tensor)
    except (RuntimeError, TypeError):
        return None


def _shape(tensor: Any) -> Any:
    try:
        shape = ti.shape(tensor)
        hash(shape)
        return shape
    except (RuntimeError, TypeError):  # nested: a length that is not one number
        return None
