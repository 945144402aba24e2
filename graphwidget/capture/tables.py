"""What the slots, leaves and facts of one snapshot share: numbered texts, types, shapes and storages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import torch_internals as ti

__all__ = ["Numbered", "Tables", "Translation", "each"]


class Numbered(dict[Any, int]):
    """Value -> its number: values get one when they are first looked up, from 0."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


class Translation(dict[int, int]):
    """Number in an earlier snapshot's table -> number in ours, -1 -> -1."""

    def __init__(self, table: Numbered, values: Sequence[Any]) -> None:
        super().__init__({-1: -1})
        self._table, self._values = table, values

    def __missing__(self, number: int) -> int:
        here = self[number] = self._table[self._values[number]]
        return here


class Tables:
    """Where each text, type, shape and storage gets its number."""

    def __init__(self) -> None:
        self.slot_names = Numbered()
        self.dtypes = Numbered()
        self.shapes = Numbered()
        self.storages: dict[int, int] = {}  # key -> index
        self.storage_bytes: list[int] = []
        self.storage_version: list[int] = []

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
            self.storage_version.append(ti.version_of(tensor))
        return at

    def storages_of(self, tensors: Sequence[Any], versions: Sequence[int]) -> list[int]:
        """The same for many tensors, of which the versions are known."""
        keys = each(ti.storage_key, _storage_key, tensors)
        known, sizes, found = self.storages, self.storage_bytes, list[int]()
        find, put = known.get, found.append
        for key, tensor, version in zip(keys, tensors, versions, strict=True):
            at = find(key)
            if at is None:
                if key <= 0 and (key := _storage_key(tensor)) < 0:
                    put(-1)
                    continue
                at = known[key] = len(sizes)
                sizes.append(ti.untyped_storage(tensor).nbytes())
                self.storage_version.append(version)
            put(at)
        return found

    def dtype(self, tensor: Any) -> int:
        try:
            return self.dtypes[ti.dtype(tensor)]
        except (RuntimeError, TypeError):
            return -1

    def dtypes_of(self, tensors: Sequence[Any]) -> list[int]:
        return _numbered(self.dtypes, ti.dtype, self.dtype, tensors)

    def shape(self, tensor: Any) -> int:
        try:
            return self.shapes[ti.shape(tensor)]
        except (RuntimeError, TypeError):  # nested: a length that is not one number
            return -1

    def shapes_of(self, tensors: Sequence[Any]) -> list[int]:
        return _numbered(self.shapes, ti.shape, self.shape, tensors)


def _storage_key(tensor: Any) -> int:
    found = ti.storage_of(tensor)
    return -1 if found is None else found[0]


def each(quick: Callable[[Any], Any], careful: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`quick` of all items; if that raises for any (sparse, nested, functional tensors), `careful` of all."""
    try:
        return list(map(quick, items))
    except Exception:
        return list(map(careful, items))


def _numbered(
    table: Numbered, quick: Callable[[Any], Any], careful: Callable[[Any], int], items: Sequence[Any]
) -> list[int]:
    try:
        return list(map(table.__getitem__, map(quick, items)))
    except Exception:
        return list(map(careful, items))
