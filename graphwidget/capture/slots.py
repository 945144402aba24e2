"""What each node has saved: the state of every slot, read without unpacking anything that a hook packed.

The slots of a chunk of nodes are gathered into one list, then each property is read for the whole list at once, in
C loops: that is what keeps a snapshot of a hundred thousand nodes near the cost of walking them. Only slots that
need a closer look (modified tensors, views, packed slots) are looked at one by one.

FREED and UNSAVED both show as "no data". Only then the unpacking attribute is asked: it gives None, or raises if
FREED. Raising costs 8-25 us, so a slot that an earlier snapshot saw HELD is FREED without asking.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import is_, is_not
from typing import Any

from graphwidget.model import Snapshot

from . import torch_internals as ti
from .gathering import Chunk, Gatherer
from .slot_states import (
    DETACHED,
    FREED,
    HELD,
    PACKED,
    STALE,
    UNKNOWN,
    UNSAVED,
    unpack,
    unpack_slot,
)
from .tables import Tables, Translation

__all__ = ["SlotColumns"]

CHUNK = 256  # nodes; so few that a chunk's tensors stay in the processor's cache from one property to the next
_HAD = bytes(state in (HELD, STALE, FREED, PACKED) for state in range(256))  # a slot without data was freed since


_NOUGHT, _NONE_LONG, _NONE = array("q", [0]), array("q", [-1]), array("i", [-1])


class SlotColumns:
    """Fills the slot columns of a snapshot.

    Parameters
    ----------
    tables
        Where texts, types, shapes and storages are numbered.
    previous
        An earlier snapshot: what it proved need not be asked again.
    freed_by
        uid -> n of the call that freed the node.
    settle
        Unpack views in doubt too. Only right where the engine is about to do the same.
    """

    def __init__(self, tables: Tables, previous: Snapshot | None, freed_by: Mapping[int, int], settle: bool) -> None:
        self.tables = tables
        self.previous = previous
        self.freed_by = freed_by
        self.settle = settle
        self.start = array("i", [0])
        self.name: list[int] = []
        self.state = bytearray()
        self.dtype = array("i")
        self.shape = array("i")
        self.bytes = array("q")
        self.storage = array("i")
        self.freed = array("i")
        self.version = array("q")
        self.detached: dict[int, str] = {}  # node -> slot name
        self.packed: dict[int, list[Any]] = {}  # node -> unpack hooks of its packed slots
        self.empty_after_release: set[int] = set()  # nodes that were released but show no slot
        self.unreadable: dict[str, int] = {}  # node name -> how many
        if previous is not None:
            self._was = previous.slot_state + bytes([UNKNOWN])  # the last one at -1: not there
            self._dtypes = Translation(tables.dtypes, previous.dtypes)
            self._shapes = Translation(tables.shapes, previous.shapes)
        self._nodes: Sequence[Any] = ()
        self._uids: Sequence[int] = ()
        self._names: Sequence[str] = ()
        self._shown: list[str] = []  # slot names by number
        self._chunk = Chunk(0, 0)  # of the nodes that are being read

    def skip(self, count: int) -> None:
        """Nodes whose slots are not asked for."""
        self.start.extend([len(self.state)] * count)

    def read(self, nodes: Sequence[Any], uids: Sequence[int], names: Sequence[str]) -> None:
        """Read the slots of all `nodes`. Never raises: a node that cannot be read gets one UNKNOWN slot."""
        self._nodes, self._uids, self._names = nodes, uids, names
        gatherer = Gatherer(self.tables, self.previous, nodes, uids, names)
        self.empty_after_release, self.unreadable = gatherer.empty_after_release, gatherer.unreadable
        for first in range(0, len(nodes), CHUNK):
            self._read(gatherer.gather(first, min(first + CHUNK, len(nodes)), len(self.state)))
        self._nodes, self._uids, self._names = (), (), ()

    def _read(self, chunk: Chunk) -> None:
        self.start.extend(chunk.starts())
        count = len(chunk.slots)
        if not count:
            return
        self._chunk, self._shown = chunk, list(self.tables.slot_names)
        self.name.extend(chunk.names)
        self.state.extend(bytes(count))
        self.bytes.extend(_NOUGHT * count)
        self.version.extend(_NONE_LONG * count)
        for column in (self.dtype, self.shape, self.storage, self.freed):
            column.extend(_NONE * count)
        if chunk.ended and 1 in chunk.ended:
            self._copy(chunk.ended)
        for position in chunk.lost:
            self.state[position] = UNKNOWN
        if chunk.released:
            self._freed(chunk.released)
        self._read_gathered()
        self._chunk = Chunk(0, 0)

    def _copy(self, ended: bytes | bytearray) -> None:
        """The slots that will not change any more are as they were. Who freed them may be known only now."""
        old, chunk = self.previous, self._chunk
        assert old is not None and chunk.before is not None
        here = list(compress(range(chunk.base, len(self.state)), ended))
        there = list(compress(chunk.before, ended))
        self._put(self.state, here, bytes(map(old.slot_state.__getitem__, there)))
        self._put(self.freed, here, list(map(old.slot_freed_by.__getitem__, there)))
        self._take_over(here, there)
        if self.freed_by:
            for position in here:
                if self.freed[position] < 0 and self.state[position] == FREED:
                    self.freed[position] = self.freed_by.get(self._uids[self._node_at(position)], -1)

    # ------------------------------------------------------------ all slots at once

    def _read_gathered(self) -> None:
        found, base = self._chunk.slots, self._chunk.base
        where: Sequence[int] = range(base, base + len(found))
        if self._chunk.blank:
            where, found = _only(found, is_not, where, found)
        hooks, datas = zip(*found, strict=True) if found else ((), ())
        if any(map(is_not, hooks, repeat(None))):
            self._look_at(self._packed, _only(hooks, is_not, where, datas)[0])
            where, datas = _only(hooks, is_, where, datas)
        if any(map(is_, datas, repeat(None))):
            self._read_gone(_only(datas, is_, where, datas)[0])
            where, datas = _only(datas, is_not, where, datas)
        if datas:
            self._write(where, datas)

    def _write(self, where: Sequence[int], tensors: Sequence[Any]) -> None:
        """All columns; the state is HELD unless a closer look tells otherwise."""
        versions, wants, dtypes, shapes, sizes = self.tables.columns_of(tensors)
        self._put(self.version, where, versions)
        self._put(self.dtype, where, dtypes)
        self._put(self.shape, where, shapes)
        self._put(self.bytes, where, sizes)
        self._put(self.storage, where, self.tables.storages_of(tensors))
        # At version 0 nothing can have been modified, and what requires grad was not `.detach_()`ed: the common case.
        if any(versions) or not all(wants):
            self._check([position for position, v, w in zip(where, versions, wants, strict=True) if v or not w])

    def _put(self, column: array[int] | bytearray, where: Sequence[int], values: Sequence[int]) -> None:
        if len(values) == len(column) - self._chunk.base:  # in all of the chunk
            column[self._chunk.base :] = values if type(column) is bytearray else array(column.typecode, values)
        else:
            for position, value in zip(where, values, strict=True):
                column[position] = value

    # ------------------------------------------------------------ slots without data

    def _read_gone(self, positions: list[int]) -> None:
        """Slots that show no data: was there any? What an earlier snapshot saw there tells, or else the node."""
        chunk = self._chunk
        if chunk.before is not None and self.previous is not None:
            was = [self._was[chunk.before[position - chunk.base]] for position in positions]
            self._freed(list(compress(positions, map(_HAD.__getitem__, was))))
            for position in compress(positions, map(UNSAVED.__eq__, was)):
                self.state[position] = UNSAVED
            positions = list(compress(positions, map(UNKNOWN.__eq__, was)))
        if chunk.plain:
            positions = self._never_saved(positions)
        self._look_at(self._gone, positions)

    def _never_saved(self, positions: list[int]) -> list[int]:
        """Ask all nodes at once whether they ever saved these; those that would not say are left over."""
        nodes, node_at = self._nodes, self._node_at
        saved, names = ["_saved_" + shown for shown in self._shown], self.name
        try:
            values = [getattr(nodes[node_at(at)], saved[names[at]]) for at in positions]
        except RuntimeError:
            return positions
        for position in compress(positions, map(is_, values, repeat(None))):
            self.state[position] = UNSAVED
        return list(compress(positions, map(is_not, values, repeat(None))))

    def _gone(self, position: int) -> None:
        node, shown = self._nodes[self._node_at(position)], self._shown[self.name[position]]
        if ti.was_never_saved(node, shown):
            self.state[position] = UNSAVED
        else:
            self._freed([position])

    def _freed(self, positions: list[int]) -> None:
        """Write freed slots, with what an earlier snapshot knew of them."""
        chunk = self._chunk
        owners = map(self._uids.__getitem__, map(self._node_at, positions))
        self._put(self.freed, positions, [self.freed_by.get(uid, -1) for uid in owners])
        self._put(self.state, positions, bytes([FREED]) * len(positions))
        if chunk.before is not None and self.previous is not None:
            there = [chunk.before[position - chunk.base] for position in positions]
            known = [at >= 0 for at in there]
            self._take_over(list(compress(positions, known)), list(compress(there, known)))

    def _take_over(self, here: Sequence[int], there: Sequence[int]) -> None:
        """Type, shape and bytes as they were in the earlier snapshot."""
        old = self.previous
        assert old is not None
        self._put(self.dtype, here, list(map(self._dtypes.__getitem__, map(old.slot_dtype.__getitem__, there))))
        self._put(self.shape, here, list(map(self._shapes.__getitem__, map(old.slot_shape.__getitem__, there))))
        self._put(self.bytes, here, list(map(old.slot_bytes.__getitem__, there)))

    # ------------------------------------------------------------ a closer look at some

    def _look_at(self, look: Callable[[int], None], positions: Iterable[int]) -> None:
        for position in positions:
            try:
                look(position)
            except Exception:
                self.state[position] = UNKNOWN
                name = self._names[self._node_at(position)]
                self.unreadable[name] = self.unreadable.get(name, 0) + 1

    def _looked_at(self, position: int) -> tuple[Any, Any]:
        found = self._chunk.slots[position - self._chunk.base]
        assert found is not None
        return found

    def _node_at(self, position: int) -> int:
        """Index of the node of a slot in the chunk."""
        return bisect_right(self.start, position, self._chunk.first) - 1

    def _check(self, doubtful: Iterable[int]) -> None:
        """Slots with a tensor that was modified at some time or requires no grad."""
        outputs = {number for name, number in self.tables.slot_names.items() if ti.is_output_slot(name)}
        raw = ["_raw_saved_" + shown for shown in self._shown]
        nodes, start, first = self._nodes, self.start, self._chunk.first
        versions, names, closer = self.version, self.name, list[int]()
        for position in doubtful:
            if versions[position] > 0:
                closer.append(position)
            elif (name := names[position]) not in outputs:
                try:
                    getattr(nodes[bisect_right(start, position, first) - 1], raw[name]).unpack()
                except Exception:  # or there is no such attribute: an element of a list
                    closer.append(position)
        self._look_at(self._judge, closer)

    def _judge(self, position: int) -> None:
        index = self._node_at(position)
        shown = self._shown[self.name[position]]
        state = self._held(index, position, self._looked_at(position)[1], shown)
        if state == DETACHED:
            self.detached.setdefault(index, shown)
            state = STALE
        self.state[position] = state
        if state not in (HELD, UNKNOWN):
            self.version[position] = -1

    def _held(self, index: int, position: int, data: Any, shown: str) -> int:
        node, version = self._nodes[index], self.version[position]
        wants, custom = ti.requires_grad(data), ti.is_custom_function(type(node))
        if version <= 0 and (wants or custom or ti.is_output_slot(shown)):
            return HELD
        if version > 0 and wants:
            proof = self._proof(position, version)
            if proof is not None:
                return proof
        if version > 0 and ti.maybe_stale_view(data):
            return self._view_slot(node, shown, data)
        return unpack(node, data, shown)

    def _view_slot(self, node: Any, shown: str, data: Any) -> int:
        """A view that was modified since its history was read. Saving it read its history: so it is stale.

        (Not if it got a history only later, from `requires_grad_()` on its base: `settle` asks the slot itself.)
        """
        if ti.is_ordinary_view(data) and not self.settle:
            return STALE if ti.TELLS_STALE_VIEWS else UNKNOWN
        state = unpack_slot(ti.slot_of(node, shown))
        return HELD if state == DETACHED and ti.is_custom_function(type(node)) else state

    def _proof(self, position: int, version: int) -> int | None:
        """What the previous snapshot proves about a held slot that stands at `version`."""
        at = self._before(position)
        if at is None:
            return None
        before = self.previous.slot_state[at]  # type: ignore[union-attr]
        if before == STALE:
            return STALE
        if before == HELD:
            return HELD if self.previous.slot_version[at] == version else STALE  # type: ignore[union-attr]
        return None

    def _before(self, position: int) -> int | None:
        """Position of this slot in the previous snapshot."""
        before = self._chunk.before
        at = -1 if before is None else before[position - self._chunk.base]
        return None if at < 0 else at

    def _packed(self, position: int) -> None:
        hook, data = self._looked_at(position)
        self.packed.setdefault(self._node_at(position), []).append(hook)
        self.state[position] = PACKED
        tensors = [t for t in (data if type(data) in (tuple, list) else (data,)) if ti.is_tensor(t)]
        self.bytes[position] = sum(ti.bytes_of(t) for t in tensors)
        if len(tensors) == 1:
            self.dtype[position] = self.tables.dtype(tensors[0])
            self.shape[position] = self.tables.shape(tensors[0])
            self.storage[position] = self.tables.storage(tensors[0])


def _only(
    values: Iterable[Any], test: Callable[[Any, Any], bool], where: Iterable[int], items: Iterable[Any]
) -> tuple[list[int], list[Any]]:
    """Positions and items of which the value is None (`is_`) or is not (`is_not`). Foreign `__eq__` is never asked."""
    chosen = list(map(test, values, repeat(None)))
    return list(compress(where, chosen)), list(compress(items, chosen))
