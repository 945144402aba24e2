"""What the slots, leaves and facts of one snapshot share: numbered texts, types, shapes and storages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import torch_internals as ti

__all__ = ["Numbered", "Tables", "Translation"]


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

    def storages_of(self, tensors: Sequence[Any]) -> list[int]:
        """The same for many tensors."""
        try:
            keys = list(map(ti.storage_key, tensors))
        except Exception:
            keys = [0]
        if min(keys) <= 0:
            keys = list(map(_storage_key, tensors))
        sizes, found = self.storage_bytes, list[int]()
        find, put, met = self.storages.setdefault, found.append, len(sizes)
        for key, tensor in zip(keys, tensors, strict=True):
            if key < 0:
                put(-1)
                continue
            at = find(key, met)
            if at == met:
                sizes.append(ti.untyped_storage(tensor).nbytes())
                met += 1
            put(at)
        return found

    def columns_of(self, tensors: Sequence[Any]) -> tuple[Sequence[int], ...]:
        """Versions, whether they require grad, numbers of the dtypes and of the shapes, bytes of many tensors."""
        try:
            versions, wants, dtypes, shapes, sizes = zip(*ti.looks(tensors), strict=True)
            numbered = list(map(self.dtypes.__getitem__, dtypes)), list(map(self.shapes.__getitem__, shapes))
            return versions, wants, *numbered, sizes
        except Exception:  # sparse, nested, functional tensors: some cannot tell everything
            careful = ti.version_of, ti.requires_grad, self.dtype, self.shape, ti.bytes_of
            return tuple(list(map(read, tensors)) for read in careful)

    def dtype(self, tensor: Any) -> int:
        try:
            return self.dtypes[ti.dtype(tensor)]
        except (RuntimeError, TypeError):
            return -1

    def shape(self, tensor: Any) -> int:
        try:
            return self.shapes[ti.shape(tensor)]
        except (RuntimeError, TypeError):  # nested: a length that is not one number
            return -1


def _storage_key(tensor: Any) -> int:
    found = ti.storage_of(tensor)
    return -1 if found is None else found[0]
