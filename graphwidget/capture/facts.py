"""What only some nodes have and only the engine's simulation needs: `model.NodeFacts`, read off live objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphwidget.model import Kind, NodeFacts

from . import torch_internals as ti
from .slots import SlotColumns, Tables

__all__ = ["Facts"]


class Facts:
    """Collects the facts of one walk.

    Parameters
    ----------
    tables, columns
        The storages and slots of the snapshot.
    variables
        Node index -> leaf tensor.
    freed_by
        uid -> n of the call that freed it; None: nobody has watched.
    watched_from
        Sequence number at which the watching began.
    refuses_inputs
        A call in progress uses `inputs=`.
    """

    def __init__(
        self,
        tables: Tables,
        columns: SlotColumns,
        variables: Mapping[int, Any],
        freed_by: Mapping[int, int] | None,
        watched_from: int,
        refuses_inputs: bool,
    ) -> None:
        self.tables = tables
        self.columns = columns
        self.variables = variables
        self.freed_by = freed_by
        self.watched_from = watched_from
        self.refuses_inputs = refuses_inputs
        self.found: dict[int, dict[str, Any]] = {}

    def _of(self, index: int) -> dict[str, Any]:
        return self.found.setdefault(index, {})

    def count_hooks(self, index: int, tensor: Any) -> None:
        """Hooks that the tensor with this history says it has."""
        number = len(ti.hooks_of(tensor))
        if number:
            entry = self._of(index)
            entry["hooks"] = entry.get("hooks", 0) + number

    def read(
        self,
        nodes: Sequence[Any],
        kinds: bytearray,
        numbers: Sequence[int],
        uids: Sequence[int],
        edge_start: Sequence[int],
        edge_to: Sequence[int],
    ) -> dict[int, NodeFacts]:
        """The facts of all nodes that have any."""
        for index, name in self.columns.detached.items():
            self._of(index)["detached_slot"] = name
        for index in self.columns.empty_after_release:
            self._of(index)["released"] = True
        special = (int(Kind.CUSTOM), int(Kind.COPY_SLICES), int(Kind.COMPILED))
        for index, node in enumerate(nodes):
            kind = kinds[index]
            if kind in special:
                try:
                    if kind == Kind.COPY_SLICES:
                        self._copy_slices(index, node, numbers[index], uids[index])
                    else:
                        self._custom(index, node)
                except Exception:
                    self._of(index).setdefault("effect", "could not be read")
        return {index: NodeFacts(**entry) for index, entry in self.found.items()}

    def _copy_slices(self, index: int, node: Any, number: int, uid: int) -> None:
        """Its inner node is invisible from Python: only what was written down when things happened is known."""
        entry = self._of(index)
        memory = ti.memory_of_node(node)
        released: bool | None = None
        if self.freed_by is not None:
            released = True if uid in self.freed_by else (False if number >= self.watched_from else None)
        entry["released"] = memory.get("released", released)
        entry["overlap"] = bool(memory.get("overlap", False))
        entry["inner_stale"] = None

    def _custom(self, index: int, node: Any) -> None:
        entry = self._of(index)
        forward = getattr(type(node), "_forward_cls", None)
        entry["class_name"] = getattr(forward, "__qualname__", type(node).__name__)
