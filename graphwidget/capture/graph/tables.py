"""Tables that the slots, leaves and facts of one snapshot share: texts, types, shapes and storages by number."""

from __future__ import annotations

from typing import Any

from graphwidget import torch_internals as ti

__all__ = ["Numbered", "Tables"]


class Numbered(dict[Any, int]):
    """Value -> its number. A value gets the next number, from 0, when it is first looked up."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


class Tables:
    """Gives each slot name, type, shape and storage of a snapshot its number.

    Attributes
    ----------
    dtypes
        Names of types ("float32").
    shapes
        Shapes as torch returns them; lengths may be symbolic.
    storages
        Keys (see `torch_internals.storage_of`).
    storage_bytes
        Bytes of each storage.
    """

    def __init__(self) -> None:
        self.slot_names = Numbered()
        self.dtypes = Numbered()
        self.shapes = Numbered()
        self.storages: dict[int, int] = {}
        self.storage_bytes: list[int] = []

    def storage(self, tensor: Any) -> int:
        """Index of the storage of a tensor; -1: it has none that can be identified."""
        try:
            at = self.storages.get(ti.storage_key(tensor))
        except (RuntimeError, NotImplementedError, AttributeError):  # sparse, functional: no storage
            return -1
        return self._new_storage(tensor) if at is None else at

    def _new_storage(self, tensor: Any) -> int:
        found = ti.storage_of(tensor)
        if found is None:
            return -1
        key, size = found
        if key not in self.storages:
            self.storages[key] = len(self.storage_bytes)
            self.storage_bytes.append(size)
        return self.storages[key]
