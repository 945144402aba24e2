"""The tensors that each node has saved: the state of every slot, read without unpacking what a hook packed.

FREED and UNSAVED slots both show no data. Only then the unpacking attribute is read: it returns None, or raises if
FREED. Raising costs 8-25 us, so a slot that an earlier snapshot saw HELD is FREED without reading it.

Three things are taken from an earlier snapshot, because the live objects no longer show them:

* A FREED slot stays FREED. It keeps the type, the shape and the bytes that were seen while it was held.
* A slot that was seen HELD at one version of its tensor is STALE if the tensor stands at another version now.
* A list of slots that was released raises when it is read: only an earlier snapshot knows how many slots it had.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.slot_states import (
    DETACHED,
    FREED,
    HELD,
    PACKED,
    STALE,
    UNKNOWN,
    UNSAVED,
    never_saves,
    unpack,
    unpack_slot,
)
from graphwidget.capture.graph.tables import Tables
from graphwidget.capture.graph.walk import Walk
from graphwidget.capture.python import hooks as hook_log
from graphwidget.model import SlotState, Snapshot

__all__ = ["SlotColumns"]

PIECE = 2048  # nodes read between two pauses
_FINAL = frozenset(state for state in SlotState if state.is_final)
_NOWHERE = range(0)
_NO_TYPE = -1


class _Row(NamedTuple):
    """One slot: a value for each of the slot columns of `Snapshot`."""

    name: int
    state: int
    dtype: int = _NO_TYPE
    shape: int = _NO_TYPE
    bytes: int = 0
    storage: int = -1
    freed_by: int = -1
    version: int = -1


class SlotColumns:
    """Fills the slot columns of a snapshot.

    Parameters
    ----------
    tables
        Gives names, types, shapes and storages their numbers.
    previous
        An earlier snapshot with uids of the same `Identity`.
    freed_by
        Which call freed a node.
    settle
        Unpack views that may be stale, too. Only right where the engine is about to do the same.

    Attributes
    ----------
    start, name, state, dtype, shape, bytes, storage, freed_by, version
        The columns.
    detached
        Node -> name of a slot (state STALE) that holds an input that was `.detach_()`ed since.
    packed
        Node -> unpack hooks of its packed slots.
    empty_after_release
        Nodes that were released and show no slot.
    unreadable
        Name of a node -> how many slots of such nodes could not be read.
    """

    def __init__(self, tables: Tables, previous: Snapshot | None, freed_by: Freed, settle: bool) -> None:
        self.tables = tables
        self.freed_by = freed_by
        self.settle = settle
        self.start = array("i", [0])
        self.name, self.state = array("i"), bytearray()
        self.dtype, self.shape, self.storage = array("i"), array("i"), array("i")
        self.bytes, self.version = array("q"), array("q")
        self.freed = array("i")
        self.detached: dict[int, str] = {}
        self.packed: dict[int, list[Any]] = {}
        self.empty_after_release: set[int] = set()
        self.unreadable: dict[str, int] = {}
        self._old = Snapshot() if previous is None else previous
        self._uids: Sequence[int] = ()
        self._numbers: Sequence[int] = ()
        self._lost_gradient = hook_log.ids_that_lost_their_gradient()

    def skip(self, count: int) -> None:
        """Add nodes without reading their slots."""
        self.start.extend([len(self.state)] * count)

    def reading(self, walk: Walk) -> Iterator[int]:
        """Read the slots of all nodes, in pieces; yields how many nodes are left. Never raises."""
        nodes, names = walk.nodes, tuple(walk.names)
        self._uids, self._numbers = walk.uid, walk.seq
        for first in range(0, len(nodes), PIECE):
            rows: list[_Row] = []
            for index, node in enumerate(nodes[first : first + PIECE], first):
                lost = self._read(index, node, rows)
                if lost:
                    name = names[walk.name[index]]
                    self.unreadable[name] = self.unreadable.get(name, 0) + lost
                self.start.append(len(self.state) + len(rows))
            self._add(rows)
            yield max(0, len(nodes) - first - PIECE)

    def _add(self, rows: list[_Row]) -> None:
        if rows:
            columns = self.name, self.state, self.dtype, self.shape, self.bytes, self.storage, self.freed, self.version
            for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                column.extend(values)

    # ------------------------------------------------------------ one node

    def _read(self, index: int, node: Any, rows: list[_Row]) -> int:
        """Add the rows of one node. Returns how many of its slots could not be read."""
        readers = ti.slot_readers(type(node))
        if not readers:
            return 0
        before, old = self._slots_before(index), self._old
        if before and _FINAL.issuperset(old.slot_state[before.start : before.stop]):
            rows += [self._as_before(index, position) for position in before]
            return 0
        lost = 0
        try:
            slots = self._list(index, node, readers, before)
        except Exception:
            rows.append(_Row(self.tables.slot_names["?"], UNKNOWN))
            return 1
        for position, (shown, slot) in enumerate(slots, before.start):
            if position >= before.stop or old.slot_names[old.slot_name[position]] != shown:
                position = -1
            try:
                rows.append(self._row(index, node, shown, slot, position))
            except Exception:
                rows.append(_Row(self.tables.slot_names[shown], UNKNOWN))
                lost += 1
        return lost

    def _slots_before(self, index: int) -> range:
        """Positions of the slots of a node in the earlier snapshot."""
        at = self._old.index_of.get(self._uids[index])
        return _NOWHERE if at is None else self._old.slots_of(at)

    def _list(self, index: int, node: Any, readers: ti.SlotReaders, before: range) -> list[tuple[str, Any]]:
        """(name, slot) of each slot of a node. The slot is None in a list that was released."""
        found: list[tuple[str, Any]] = []
        for shown, read in readers:
            try:
                slots = read(node)
            except RuntimeError:
                found += [(name, None) for name in self._names_of_released(index, node, shown, before)]
                continue
            if type(slots) is tuple:
                found += [(f"{shown}[{i}]", slot) for i, slot in enumerate(slots)]
            elif slots is not None:
                found.append((shown, slots))
        return found

    def _names_of_released(self, index: int, node: Any, shown: str, before: range) -> list[str]:
        """Slot names of a list that raises because it was released. Without an earlier snapshot it counts as one."""
        old = self._old
        if self._uids[index] in old.index_of:
            names = [old.slot_names[old.slot_name[position]] for position in before]
            names = [name for name in names if name == shown or name.startswith(shown + "[")]
            surely_empty = not names
        else:
            surely_empty = ti.is_custom_function(type(node)) and never_saves(ti.function_with_context(node))
            names = [] if surely_empty else [shown]
        if surely_empty and ti.is_custom_function(type(node)):
            self.empty_after_release.add(index)
        return names

    # ------------------------------------------------------------ one slot

    def _row(self, index: int, node: Any, shown: str, slot: Any, position: int) -> _Row:
        """The row of a slot. `position` is that of the slot in the earlier snapshot, -1 if it is not there."""
        if slot is None:
            return self._freed(index, shown, position)
        hook, data = ti.hook_of_slot(slot), ti.data_of_slot(slot)
        if hook is not None:
            self.packed.setdefault(index, []).append(hook)
            return self._packed(shown, data)
        if data is None:
            return self._without_data(index, node, shown, position)
        return self._with_data(index, node, shown, slot, data, position)

    def _as_before(self, index: int, position: int) -> _Row:
        """The row of a slot whose state is final: freed or never saved."""
        shown = self._old.slot_names[self._old.slot_name[position]]
        if self._old.slot_state[position] == UNSAVED:
            return _Row(self.tables.slot_names[shown], UNSAVED)
        return self._freed(index, shown, position)

    def _freed(self, index: int, shown: str, position: int) -> _Row:
        """The row of a freed slot: its type, shape and bytes as before. Which call freed it may be known only now."""
        name, old, tables = self.tables.slot_names[shown], self._old, self.tables
        by = -1 if position < 0 else old.slot_freed_by[position]
        if by < 0:
            found = self.freed_by.of(self._uids[index], self._numbers[index])
            by = -1 if found is None else found
        if position < 0:
            return _Row(name, FREED, freed_by=by)
        dtype, shape = old.slot_dtype[position], old.slot_shape[position]
        return _Row(
            name,
            FREED,
            dtype=_NO_TYPE if dtype < 0 else tables.dtypes[old.dtypes[dtype]],
            shape=_NO_TYPE if shape < 0 else tables.shapes[old.shapes[shape]],
            bytes=old.slot_bytes[position],
            freed_by=by,
        )

    def _without_data(self, index: int, node: Any, shown: str, position: int) -> _Row:
        """The row of a slot without data: freed or never saved. The earlier snapshot decides, or else the node."""
        before = UNKNOWN if position < 0 else self._old.slot_state[position]
        if before == UNSAVED or (before == UNKNOWN and ti.was_never_saved(node, shown)):
            return _Row(self.tables.slot_names[shown], UNSAVED)
        return self._freed(index, shown, position)

    def _packed(self, shown: str, data: Any) -> _Row:
        """The row of a slot behind a hook. `data` is what the pack hook returned."""
        name = self.tables.slot_names[shown]
        tensors = [t for t in (data if type(data) in (tuple, list) else (data,)) if ti.is_tensor(t)]
        size = sum(map(ti.bytes_of, tensors))
        if len(tensors) != 1:
            return _Row(name, PACKED, bytes=size)
        _, _, dtype, shape, _ = ti.saved_properties(tensors[0])
        return _Row(name, PACKED, self._dtype(dtype), self._shape(shape), size, self.tables.storage(tensors[0]))

    def _with_data(self, index: int, node: Any, shown: str, slot: Any, data: Any, position: int) -> _Row:
        version, wants_grad, dtype, shape, size = ti.saved_properties(data)
        try:
            state = self._state(node, shown, slot, data, version, wants_grad, position)
        except Exception:
            state = UNKNOWN
        if state == DETACHED:
            self.detached.setdefault(index, shown)
            state = STALE
        return _Row(
            self.tables.slot_names[shown],
            state,
            self._dtype(dtype),
            self._shape(shape),
            size,
            self.tables.storage(data),
            version=-1 if state == STALE else version,
        )

    def _dtype(self, dtype: Any) -> int:
        return _NO_TYPE if dtype is None else self.tables.dtypes[ti.name_of_dtype(dtype)]

    def _shape(self, shape: Any) -> int:
        return _NO_TYPE if shape is None else self.tables.shapes[shape]

    # ------------------------------------------------------------ the state of a slot that holds a tensor

    def _state(self, node: Any, shown: str, slot: Any, data: Any, version: int, wants_grad: bool, position: int) -> int:
        custom = ti.is_custom_function(type(node))
        ambiguous_alone = custom or ti.is_output_slot(shown)  # unpacked alone, an output looks detached
        if id(data) in self._lost_gradient and not ambiguous_alone and not ti.maybe_stale_view(data):
            state = unpack_slot(slot)
            if state != UNKNOWN:
                return state
        if version <= 0:
            if wants_grad or ambiguous_alone or unpack_slot(slot) == HELD:
                return HELD
            return unpack(node, data, shown)
        if wants_grad:
            before = UNKNOWN if position < 0 else self._old.slot_state[position]
            if before == STALE:
                return STALE
            if before == HELD:
                return HELD if self._old.slot_version[position] == version else STALE
        if ti.maybe_stale_view(data):
            return self._state_of_view(node, shown, slot, data)
        return unpack(node, data, shown)

    def _state_of_view(self, node: Any, shown: str, slot: Any, data: Any) -> int:
        """The state of a view that was modified since its history was read. Saving it read its history, so it is STALE.

        (Not if it got a history only later, from `requires_grad_()` on its base: with `settle` the slot itself is
        unpacked.)
        """
        if ti.is_ordinary_view(data) and not self.settle:
            return STALE if ti.DETECTS_STALE_VIEWS else UNKNOWN
        # The history of a view of another kind is never rebuilt: torch refuses, also where a node's attribute is read.
        saved = ti.unpacking_attribute(node, shown) if not ti.is_ordinary_view(data) else None
        state = unpack_slot(slot, node, saved)
        return HELD if state == DETACHED and ti.is_custom_function(type(node)) else state
