"""What each node has saved: the state of every slot, read without unpacking anything that a hook packed.

The slots of a chunk of nodes are gathered into one list, then each property is read for the whole list at once, in
C loops: that is what keeps a snapshot of a hundred thousand nodes near the cost of walking them. Only slots that
need a closer look (modified tensors, views, freed and packed slots) are looked at one by one.

FREED and UNSAVED both show as "no data". Only then the unpacking attribute is asked: it gives None, or raises if
FREED. Raising costs 8-25 us, so a slot that an earlier snapshot saw HELD is FREED without asking. A node whose
slots were all FREED or UNSAVED stays so for ever: it is copied from the earlier snapshot without being read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import attrgetter, is_, is_not
from typing import Any

from graphwidget.model import Snapshot

from . import torch_internals as ti
from .slot_states import (
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

__all__ = ["Numbered", "SlotColumns", "Tables"]

_data_of, _hook_of = attrgetter("data"), attrgetter("unpack_hook")
CHUNK = 256  # nodes; so few that a chunk's tensors stay in the processor's cache from one property to the next
_ENDED = bytes(state in (FREED, UNSAVED) for state in range(256))  # states that no slot leaves again


class Numbered(dict[Any, int]):
    """Value -> its number: values get one when they are first looked up, from 0."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


class _Translation(dict[int, int]):
    """Number in an earlier snapshot's table -> number in ours, -1 -> -1."""

    def __init__(self, table: Numbered, values: Sequence[Any]) -> None:
        super().__init__({-1: -1})
        self._table, self._values = table, values

    def __missing__(self, number: int) -> int:
        here = self[number] = self._table[self._values[number]]
        return here


class Tables:
    """What slots, leaves and facts share: numbered texts, types, shapes and storages."""

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
        keys = _each(ti.storage_key, _storage_key, tensors)
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

    def shape(self, tensor: Any) -> int:
        try:
            return self.shapes[ti.shape(tensor)]
        except (RuntimeError, TypeError):  # nested: a length that is not one number
            return -1


def _storage_key(tensor: Any) -> int:
    found = ti.storage_of(tensor)
    return -1 if found is None else found[0]


def _each(quick: Callable[[Any], Any], careful: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`quick` of all items; if that raises for any (sparse, nested, functional tensors), `careful` of all."""
    try:
        return list(map(quick, items))
    except Exception:
        return list(map(careful, items))


class _Plan:
    """How the slots of nodes of one type are read: `read` gives one slot each, `names` are their numbers.

    `read` is None where that is not known before a node is asked: lists of slots, custom Functions.
    """

    __slots__ = ("names", "read")

    def __init__(self, read: tuple[Callable[[Any], Any], ...] | None, names: tuple[int, ...] = ()) -> None:
        self.read = read
        self.names = names


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
        self._nodes: Sequence[Any] = ()
        self._uids: Sequence[int] = ()
        self._names: Sequence[str] = ()
        self._plans: dict[type, _Plan] = {}
        self._careful = False
        self._ended: dict[int, tuple[int, int]] = {}
        # Of the chunk of nodes that is being read:
        self._base = 0  # position of its first slot
        self._slots: list[Any] = []  # torch's SavedTensor, None where nothing is to be read
        self._released: list[tuple[int, int | None]] = []  # (position, position in `previous`) of slots of a freed list
        self._copied: list[list[int]] = []  # [position, position in `previous`, how many], neighbours merged
        self._blank = 0  # positions where nothing is to be read
        self._lost: list[int] = []  # positions of nodes that could not be read
        self._shown: list[str] = []  # slot names by number

    def skip(self, count: int) -> None:
        """Nodes whose slots are not asked for."""
        self.start.extend([len(self.state)] * count)

    def read(self, nodes: Sequence[Any], uids: Sequence[int], names: Sequence[str]) -> None:
        """Read the slots of all `nodes`. Never raises: a node that cannot be read gets one UNKNOWN slot."""
        self._nodes, self._uids, self._names, self._ended = nodes, uids, names, self._find_ended()
        for first in range(0, len(nodes), CHUNK):
            self._read_chunk(first, min(first + CHUNK, len(nodes)))
        self._nodes, self._uids, self._names, self._ended = (), (), (), {}

    def _read_chunk(self, first: int, last: int) -> None:
        try:
            whole = self._gather(first, last)
        except Exception:
            whole = False
        if not whole:
            self._careful = True
            self._plans.clear()
            self._gather(first, last)
        count = len(self._slots)
        if not count:
            return
        self._shown = list(self.tables.slot_names)
        self.state.extend(bytes(count))
        self.bytes.extend(repeat(0, count))
        for column in (self.dtype, self.shape, self.storage, self.freed, self.version):
            column.extend(repeat(-1, count))
        self._copy()
        for position in self._lost:
            self.state[position] = UNKNOWN
        for position, before in self._released:
            self._freed(position, before)
        self._read_gathered()
        self._slots = []

    # ------------------------------------------------------------ which slots there are

    def _gather(self, first: int, last: int) -> bool:
        """List the slots of nodes `first` to `last`. False: a type was not as its first node let expect."""
        base = self._base = len(self.state)
        slots, starts, ended = list[Any](), list[int](), self._ended
        del self.name[base:], self.start[first + 1 :]
        self._slots, self._blank = slots, 0
        self._released, self._copied, self._lost = [], [], []
        end, put, put_names = starts.append, slots.append, self.name.extend
        plans, index = self._plans, first
        for index, node in enumerate(self._nodes[first:last], first):
            plan = plans.get(type(node))
            if plan is None:
                plan = plans[type(node)] = self._plan(node)
            read = plan.read
            if read != ():
                if ended and (uid := self._uids[index]) in ended:
                    self._keep(*ended[uid])
                elif read is None:
                    self._gather_carefully(index)
                else:
                    for get in read:
                        put(get(node))
                    put_names(plan.names)
            end(base + len(slots))
        self.start.extend(starts)
        kinds = set(map(type, slots))
        kinds.discard(type(None))
        return all(map(ti.is_saved_tensor_type, kinds)) and (sum(map(is_, slots, repeat(None))) == self._blank)

    def _plan(self, node: Any) -> _Plan:
        """The plan for nodes like this one. What is a list is a list in all of them, and only lists ever raise."""
        cls = type(node)
        if self._careful or ti.is_custom_function(cls):
            return _Plan(None)
        found = ti.slot_names(cls)
        try:
            if not all(ti.is_saved_tensor_type(type(getattr(node, raw))) for raw, _, _ in found):
                return _Plan(None)
        except RuntimeError:
            return _Plan(None)
        read = tuple(cls.__dict__[raw].__get__ for raw, _, _ in found)
        return _Plan(read, tuple(self.tables.slot_names[shown] for _, _, shown in found))

    def _gather_carefully(self, index: int) -> None:
        node, first, blank = self._nodes[index], len(self._slots), self._blank
        try:
            if ti.is_custom_function(type(node)):
                self._gather_list(index, first, "saved_tensors", ti.saved_by_custom)
            else:
                for raw, _, shown in ti.slot_names(type(node)):
                    self._gather_list(index, first, shown, attrgetter(raw))
        except Exception:
            del self._slots[first:], self.name[self._base + first :]
            self._released = [entry for entry in self._released if entry[0] < self._base + first]
            self._blank = blank
            self._lost.append(self._base + first)
            self._add("?", None)
            name = self._names[index]
            self.unreadable[name] = self.unreadable.get(name, 0) + 1

    def _gather_list(self, index: int, first: int, shown: str, read: Callable[[Any], Any]) -> None:
        try:
            slots = read(self._nodes[index])
        except RuntimeError:
            self._released_list(index, first, shown)
            return
        if type(slots) is tuple:
            for i, slot in enumerate(slots):
                self._add(f"{shown}[{i}]", slot)
        elif slots is not None:
            self._add(shown, slots)

    def _add(self, shown: str, slot: Any) -> None:
        self._slots.append(slot)
        self.name.append(self.tables.slot_names[shown])
        if slot is None:
            self._blank += 1

    def _released_list(self, index: int, first: int, shown: str) -> None:
        """The slots of a list that raises because it was released: how many there were, only an earlier look knows."""
        old, node = self.previous, self._nodes[index]
        at = None if old is None else old.index_of.get(self._uids[index])
        custom = ti.is_custom_function(type(node))
        if old is None or at is None:
            if custom and never_saves(ti.function_with_context(node)):
                self.empty_after_release.add(index)
            else:
                self._released.append((self._base + len(self._slots), None))
                self._add(shown, None)
            return
        count = len(self._slots)
        for before in range(old.slot_start[at] + count - first, old.slot_start[at + 1]):
            name = old.slot_names[old.slot_name[before]]
            if name != shown and not name.startswith(shown + "["):
                break
            self._released.append((self._base + len(self._slots), before))
            self._add(name, None)
        if custom and len(self._slots) == count:
            self.empty_after_release.add(index)

    # ------------------------------------------------------------ what never changes again

    def _find_ended(self) -> dict[int, tuple[int, int]]:
        """uid -> first and last + 1 slot in the previous snapshot, of nodes of which no slot will change any more."""
        old = self.previous
        if old is None:
            return {}
        ended = old.slot_state.translate(_ENDED)
        if 1 not in ended:
            return {}
        starts = old.slot_start
        ranges = zip(old.uid, starts, starts[1:])
        if 0 not in ended:
            return {uid: (first, last) for uid, first, last in ranges if first < last}
        return {uid: (first, last) for uid, first, last in ranges if first < last and ended.find(0, first, last) < 0}

    def _keep(self, first: int, last: int) -> None:
        """Copy slots `first` to `last` of the previous snapshot to the next positions."""
        position, count = self._base + len(self._slots), last - first
        run = self._copied[-1] if self._copied else None
        if run is not None and run[0] + run[2] == position and run[1] + run[2] == first:
            run[2] += count
        else:
            self._copied.append([position, first, count])
        self._slots.extend(repeat(None, count))
        self.name.extend(repeat(0, count))
        self._blank += count

    def _copy(self) -> None:
        old, tables = self.previous, self.tables
        if old is None or not self._copied:
            return
        names = _Translation(tables.slot_names, old.slot_names)
        dtypes, shapes = _Translation(tables.dtypes, old.dtypes), _Translation(tables.shapes, old.shapes)
        for position, first, count in self._copied:
            here, there = slice(position, position + count), slice(first, first + count)
            self.name[here] = map(names.__getitem__, old.slot_name[there])
            self.state[here] = old.slot_state[there]
            self.dtype[here] = array("i", map(dtypes.__getitem__, old.slot_dtype[there]))
            self.shape[here] = array("i", map(shapes.__getitem__, old.slot_shape[there]))
            self.bytes[here] = old.slot_bytes[there]
            self.freed[here] = old.slot_freed_by[there]
            if self.freed_by:
                for p in range(position, position + count):
                    if self.freed[p] < 0 and self.state[p] == FREED:
                        self.freed[p] = self.freed_by.get(self._uids[self._node_at(p)], -1)
        self._shown = list(tables.slot_names)

    # ------------------------------------------------------------ all slots at once

    def _read_gathered(self) -> None:
        slots = self._slots
        where: Sequence[int] = range(self._base, self._base + len(slots))
        if self._blank:
            where, slots = _only(slots, is_not, where, slots)
        hooks, datas = list(map(_hook_of, slots)), list(map(_data_of, slots))
        if any(map(is_not, hooks, repeat(None))):
            self._look_at(self._packed, _only(hooks, is_not, where, slots)[0])
            where, datas = _only(hooks, is_, where, datas)
        if any(map(is_, datas, repeat(None))):
            self._look_at(self._gone, _only(datas, is_, where, datas)[0])
            where, datas = _only(datas, is_not, where, datas)
        versions = _each(ti.version, ti.version_of, datas)
        self._write(where, datas, versions)
        wants = map(ti.requires_grad, datas)
        # At version 0 nothing can have been modified, and what requires grad was not `.detach_()`ed: the common case.
        doubtful = [position for position, v, w in zip(where, versions, wants, strict=True) if v or not w]
        self._check(doubtful)

    def _write(self, where: Sequence[int], tensors: Sequence[Any], versions: Sequence[int]) -> None:
        """All columns but the state, which is HELD so far."""
        tables = self.tables
        self._put(self.storage, where, tables.storages_of(tensors, versions))
        self._put(self.bytes, where, _each(ti.nbytes, ti.bytes_of, tensors))
        self._put(self.dtype, where, _numbered(tables.dtypes, ti.dtype, tables.dtype, tensors))
        self._put(self.shape, where, _numbered(tables.shapes, ti.shape, tables.shape, tensors))
        self._put(self.version, where, versions)

    def _put(self, column: array[int], where: Sequence[int], values: Sequence[int]) -> None:
        if len(values) == len(column) - self._base:
            column[self._base :] = array(column.typecode, values)
        else:
            for position, value in zip(where, values, strict=True):
                column[position] = value

    # ------------------------------------------------------------ a closer look at some

    def _look_at(self, look: Callable[[int], None], positions: Iterable[int]) -> None:
        for position in positions:
            try:
                look(position)
            except Exception:
                self.state[position] = UNKNOWN
                name = self._names[self._node_at(position)]
                self.unreadable[name] = self.unreadable.get(name, 0) + 1

    def _node_at(self, position: int) -> int:
        return bisect_right(self.start, position) - 1

    def _check(self, doubtful: Iterable[int]) -> None:
        """Slots with a tensor that was modified at some time or requires no grad."""
        outputs = {number for name, number in self.tables.slot_names.items() if ti.is_output_slot(name)}
        slots, base, versions, names, closer = self._slots, self._base, self.version, self.name, list[int]()
        for position in doubtful:
            if versions[position] > 0:
                closer.append(position)
            elif names[position] not in outputs:
                try:
                    slots[position - base].unpack()
                except Exception:
                    closer.append(position)
        self._look_at(self._judge, closer)

    def _judge(self, position: int) -> None:
        index = self._node_at(position)
        shown = self._shown[self.name[position]]
        data = _data_of(self._slots[position - self._base])
        state = self._held(index, position, data, shown)
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
            proof = self._proof(index, position, version)
            if proof is not None:
                return proof
        if version > 0 and ti.maybe_stale_view(data):
            return self._view_slot(position, data, custom)
        saved = None if custom or shown.endswith("]") else "_saved_" + shown
        return unpack(node, self._slots[position - self._base], data, saved, shown)

    def _view_slot(self, position: int, data: Any, custom: bool) -> int:
        """A view that was modified since its history was read. Saving it read its history: so it is stale.

        (Not if it got a history only later, from `requires_grad_()` on its base: `settle` asks the slot itself.)
        """
        if ti.is_ordinary_view(data) and not self.settle:
            return STALE if ti.TELLS_STALE_VIEWS else UNKNOWN
        state = unpack_slot(self._slots[position - self._base])
        return HELD if state == DETACHED and custom else state

    def _proof(self, index: int, position: int, version: int) -> int | None:
        """What the previous snapshot proves about a held slot that stands at `version`."""
        at = self._before(index, position)
        if at is None:
            return None
        before = self.previous.slot_state[at]  # type: ignore[union-attr]
        if before == STALE:
            return STALE
        if before == HELD:
            return HELD if self.previous.slot_version[at] == version else STALE  # type: ignore[union-attr]
        return None

    def _before(self, index: int, position: int) -> int | None:
        """Position of this slot in the previous snapshot."""
        previous = self.previous
        if previous is None:
            return None
        node = previous.index_of.get(self._uids[index])
        if node is None:
            return None
        at = previous.slot_start[node] + position - self.start[index]
        shown = self._shown[self.name[position]]
        if at >= previous.slot_start[node + 1] or previous.slot_names[previous.slot_name[at]] != shown:
            return None
        return at

    def _gone(self, position: int) -> None:
        """A slot that shows no data: was there any?"""
        index = self._node_at(position)
        at = self._before(index, position)
        before = UNKNOWN if at is None else self.previous.slot_state[at]  # type: ignore[union-attr]
        if before in (HELD, STALE, FREED, PACKED):
            self._freed(position, at)
            return
        node, shown = self._nodes[index], self._shown[self.name[position]]
        saved = None if ti.is_custom_function(type(node)) or shown.endswith("]") else "_saved_" + shown
        if before == UNSAVED or ti.was_never_saved(node, self._slots[position - self._base], saved):
            self.state[position] = UNSAVED
        else:
            self._freed(position, None)

    def _freed(self, position: int, before: int | None) -> None:
        """Write a freed slot, with what an earlier snapshot knew of it."""
        self.state[position] = FREED
        self.freed[position] = self.freed_by.get(self._uids[self._node_at(position)], -1)
        old = self.previous
        if before is not None and old is not None:
            if old.slot_dtype[before] >= 0:
                self.dtype[position] = self.tables.dtypes[old.dtypes[old.slot_dtype[before]]]
            if old.slot_shape[before] >= 0:
                self.shape[position] = self.tables.shapes[old.shapes[old.slot_shape[before]]]
            self.bytes[position] = old.slot_bytes[before]

    def _packed(self, position: int) -> None:
        slot = self._slots[position - self._base]
        hook, data = _hook_of(slot), _data_of(slot)
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


def _numbered(
    table: Numbered, quick: Callable[[Any], Any], careful: Callable[[Any], int], items: Sequence[Any]
) -> list[int]:
    try:
        return list(map(table.__getitem__, map(quick, items)))
    except Exception:
        return list(map(careful, items))
