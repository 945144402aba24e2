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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import compress, count, islice, repeat
from operator import is_, is_not
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.gathering import ENDED, Chunk, Gatherer
from graphwidget.capture.graph.memo import Memo
from graphwidget.capture.graph.slot_states import (
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
from graphwidget.capture.graph.tables import NOTHING, Look, Numbered, Tables
from graphwidget.capture.graph.walk import Walk, joined, positions
from graphwidget.capture.python import hooks as noted
from graphwidget.model import Snapshot

__all__ = ["SlotColumns"]

CHUNK = 256  # nodes; so few that a chunk's tensors stay in the processor's cache from one property to the next
PIECE = 8  # chunks that are read without a pause
MOST_UNSEEN = 32  # chunks that are passed over after a failure
_HAD = bytes(state in (HELD, STALE, FREED, PACKED) for state in range(256))  # a slot without data was freed since
_SURE = bytes(state in (HELD, FREED, UNSAVED) for state in range(256))
_NOT = bytes([1, 0, *repeat(0, 254)])
_NO_HOOK = {type(None)}
_NOTHING, _NOBODY, _NO_KEY = array("i", [NOTHING]), array("i", [-1]), array("q", [-1])


class SlotColumns:
    """Fills the slot columns of a snapshot.

    Parameters
    ----------
    tables
        Where texts, looks and storages are numbered. Its looks are those of `memo`.
    previous, memo
        An earlier snapshot and what its slots looked like: what it proved need not be asked again.
    freed_by
        Which call freed a node.
    settle
        Unpack views in doubt too. Only right where the engine is about to do the same.

    Attributes
    ----------
    look, key
        As in `Memo`. The other columns that describe tensors are made from these at the end of `read`.
    """

    def __init__(
        self,
        tables: Tables,
        previous: Snapshot | None,
        memo: Memo,
        freed_by: Freed,
        settle: bool,
    ) -> None:
        self.tables = tables
        self.previous = previous
        self.freed_by = freed_by
        self.settle = settle
        self.start = array("i", [0])
        self.name = array("i")
        self.state = bytearray()
        self.look = array("i")
        self.key = array("q")
        self.freed = array("i")
        self.version, self.bytes = array("q"), array("q")
        self.dtype, self.shape, self.storage = array("i"), array("i"), array("i")
        self.dtypes, self.shapes = Numbered(), Numbered()
        self.detached: dict[int, str] = {}  # node -> slot name
        self.packed: dict[int, list[Any]] = {}  # node -> unpack hooks of its packed slots
        self.empty_after_release: set[int] = set()  # nodes that were released but show no slot
        self.unreadable: dict[str, int] = {}  # node name -> how many
        if previous is not None:  # the last one of each at -1: not there
            self._was = previous.slot_state + bytes([UNKNOWN])
            self._freed_before = previous.slot_freed_by + array("i", [-1])
            self._looked = memo.look + array("i", [NOTHING])
            self._keyed = memo.key + array("q", [-1])
            self._sizes, self._stored = previous.storages.bytes + array("q", [-1]), previous.slot_storage
            self._ended = previous.slot_state.translate(ENDED)
            self._sure = previous.slot_state.translate(_SURE)
            for position in positions(previous.slot_state, FREED) if freed_by else ():
                self._sure[position] = previous.slot_freed_by[position] >= 0  # who freed it may be known now
        self._lost: list[int] = []  # nodes with a slot that could not be read
        self._rows: list[Look] = []  # looks by number
        self._doubtful: set[int] = set()  # numbers of looks that tell too little
        self._walk: Walk | None = None
        self._nodes: Sequence[Any] = ()
        self._uids: Sequence[int] = ()
        self._shown: list[str] = []  # slot names by number
        self._chunk = Chunk(0, 0)  # of the nodes that are being read

    def skip(self, count: int) -> None:
        """Nodes whose slots are not asked for."""
        self.start = self.start + array("i", [len(self.state)]) * count

    def reading(self, walk: Walk) -> Iterator[int]:
        """Read the slots of all nodes, in pieces; yields how many nodes are left.

        Never raises: a node that cannot be read gets one UNKNOWN slot.
        """
        self._walk, self._nodes, self._uids, names = walk, walk.nodes, walk.uid, tuple(walk.names)
        gatherer = Gatherer(self.tables, self.previous, walk)
        self.empty_after_release = gatherer.empty_after_release
        new, rest = _chunks(0, walk.new), _chunks(walk.new, len(walk.nodes))
        same = yield from self._all_as_before(gatherer, rest)
        known = self.previous if walk.whole and len(same) == len(rest) else None
        if known is not None:
            self._go_on_numbering(known)
        for done, (first, last) in enumerate(new if known is not None else (*new, *rest), 1):
            if first in same:
                self._copy(first, last)
            else:
                self._read(gatherer.gather(first, last, len(self.state)))
            if not done % PIECE:
                yield len(walk.nodes) - last
        self._walk, self._nodes = None, ()
        for index in (*gatherer.unreadable, *self._lost):
            name = names[walk.name[index]]
            self.unreadable[name] = self.unreadable.get(name, 0) + 1
        yield 0
        if known is None:
            self._number_storages()
        yield from self._describe()
        if known is not None:
            yield 0
            self._append(known)

    def _read(self, chunk: Chunk) -> None:
        self.start.extend(chunk.starts())
        if not chunk.slots:
            return
        if self.previous is None:
            chunk.before = None
        self._chunk, self._shown = chunk, list(self.tables.slot_names)
        self.name.fromlist(chunk.names)
        self._begin_as_before(chunk)
        for position in chunk.lost:
            self.state[position], self.look[position], self.key[position] = UNKNOWN, NOTHING, -1
        if chunk.released:
            self._freed(chunk.released)
        self._read_gathered()
        self._chunk = Chunk(0, 0)

    def _all_as_before(self, gatherer: Gatherer, chunks: Sequence[tuple[int, int]]) -> Generator[int, None, set[int]]:
        """The first nodes of the chunks of which the slots are what they were.

        Changes come in rows (a call has freed all), and where there is one, the look at it was in vain. So after each
        failure in a row twice as many chunks are passed over, unseen.
        """
        same, failures, chunk, paused = set[int](), 0, 0, 0
        while chunk < len(chunks):
            if chunk >= paused + PIECE:
                paused = chunk
                yield len(self._nodes)
            first, last = chunks[chunk]
            if self._as_before(gatherer, first, last):
                same.add(first)
                failures = 0
            else:
                chunk += min(1 << failures, MOST_UNSEEN)
                failures += 1
            chunk += 1
        return same

    def _as_before(self, gatherer: Gatherer, first: int, last: int) -> bool:
        """Whether the slots of some nodes are what they were.

        A slot that was held still is if its tensor looks as it did: modified, it would be at another version.
        """
        begin, end = self._slots_before(first, last)
        if begin < 0 or 0 in self._sure[begin:end]:
            return False
        ended = self._ended[begin:end]
        try:
            tensors = gatherer.tensors(first, last, ended)
        except Exception:  # the careful way will tell
            return False
        if tensors is None or type(None) in set(map(type, tensors)):
            return False
        losers = noted.losers()
        if losers and not losers.isdisjoint(map(id, tensors)):
            return False
        held = ended.translate(_NOT)
        if self.tables.looks_of(tensors) != list(compress(self._looked[begin:end], held)):
            return False
        sizes = map(self._sizes.__getitem__, compress(self._stored[begin:end], held))
        return self.tables.sizes_of(tensors, list(compress(self._keyed[begin:end], held))) == list(sizes)

    def _slots_before(self, first: int, last: int) -> tuple[int, int]:
        """Where in the earlier snapshot the slots of these nodes begin and end; -1: it does not have them in a row."""
        before = None if self._walk is None else self._walk.before(first, last)
        if before is None or self.previous is None:
            return -1, -1
        return self.previous.slot_start[before.start], self.previous.slot_start[before.stop]

    def _copy(self, first: int, last: int) -> None:
        """Write down the slots of nodes that are as they were."""
        begin, end = self._slots_before(first, last)
        before, old = self._walk.before(first, last), self.previous  # type: ignore[union-attr]
        assert before is not None and old is not None
        shift = len(self.state) - begin
        self.start.extend(map(shift.__add__, old.slot_start[before.start + 1 : before.stop + 1]))
        self.name += old.slot_name[begin:end]
        self.state += self._was[begin:end]
        self.look += self._looked[begin:end]
        self.key += self._keyed[begin:end]
        self.freed += self._freed_before[begin:end]

    def _begin_as_before(self, chunk: Chunk) -> None:
        """The slots as the earlier snapshot has them. Those that will not change any more are done with that."""
        slots, before = len(chunk.slots), chunk.before
        if before is None:
            self.state += bytes(slots)
            self.look += _NOTHING * slots
            self.key += _NO_KEY * slots
            self.freed += _NOBODY * slots
            return
        if type(before) is range:
            first, last = before.start, before.stop
            self.state += self._was[first:last]
            self.look += self._looked[first:last]
            self.key += self._keyed[first:last]
            self.freed += self._freed_before[first:last]
        else:
            self.state.extend(map(self._was.__getitem__, before))
            self.look.extend(map(self._looked.__getitem__, before))
            self.key.extend(map(self._keyed.__getitem__, before))
            self.freed.extend(map(self._freed_before.__getitem__, before))
        if self.freed_by and chunk.ended and 1 in chunk.ended:
            self._freed_by_whom(list(compress(range(chunk.base, len(self.state)), chunk.ended)))

    def _freed_by_whom(self, ended: Sequence[int]) -> None:
        """Who freed a slot may be known only now."""
        for position in ended:
            if self.freed[position] < 0 and self.state[position] == FREED:
                self.freed[position] = self._who_freed(self._node_at(position))

    def _number_storages(self) -> None:
        """Number those of slots that are as they were: nobody has asked for them again."""
        if self.previous is not None:
            old, known = self.previous.storages, self.tables.storages
            sizes = dict(zip(old.key, old.bytes, strict=True))
            new = [key for key in dict.fromkeys(self.key) if key not in known and key >= 0]
            self.tables.storage_bytes.extend(map(sizes.__getitem__, new))
            known.update(zip(new, count(len(known)), strict=False))

    def _go_on_numbering(self, old: Snapshot) -> None:
        """With the numbers that the earlier snapshot gave: all its slots are as they were."""
        self.dtypes.update(zip(old.dtypes, count(), strict=False))
        self.shapes.update(zip(old.shapes, count(), strict=False))
        met = max(old.slot_storage, default=-1) + 1  # the first numbers are those of slots
        self.tables.storages.update(zip(old.storages.key[:met], count(), strict=False))
        self.tables.storage_bytes.extend(old.storages.bytes[:met])

    def _append(self, old: Snapshot) -> None:
        """The slots of the earlier snapshot behind those of new nodes."""
        slots = len(self.state)
        starts = old.slot_start if not slots else array("i", [slots + start for start in old.slot_start])
        self.start = joined(self.start[:-1], starts)
        self.name, self.state = joined(self.name, old.slot_name), joined(self.state, old.slot_state)
        self.freed = joined(self.freed, old.slot_freed_by)
        self.look, self.key = joined(self.look, self._looked[:-1]), joined(self.key, self._keyed[:-1])
        self.version, self.bytes = joined(self.version, old.slot_version), joined(self.bytes, old.slot_bytes)
        self.dtype, self.shape = joined(self.dtype, old.slot_dtype), joined(self.shape, old.slot_shape)
        self.storage = joined(self.storage, old.slot_storage)

    def _describe(self) -> Iterator[int]:
        """The columns that describe the tensors. Types and shapes are numbered in the order in which they are met."""
        yield 0
        rows = self._known_rows()
        dtypes, shapes = [-1] * len(rows), [-1] * len(rows)
        for number in dict.fromkeys(self.look):
            dtype, shape = rows[number].dtype, rows[number].shape
            if dtype is not None:
                dtypes[number] = self.dtypes[str(dtype).removeprefix("torch.")]
            if shape is not None:
                shapes[number] = self.shapes[ti.as_integers(shape)]
        look = self.look.tolist()  # lists, because making arrays from anything else takes twice as long
        self.version = array("q", list(map([row.version for row in rows].__getitem__, look)))
        self.bytes = array("q", list(map([row.bytes for row in rows].__getitem__, look)))
        yield 0
        self.dtype = array("i", list(map(dtypes.__getitem__, look)))
        self.shape = array("i", list(map(shapes.__getitem__, look)))
        self.storage = array("i", list(map(self.tables.storages.get, self.key, repeat(-1))))
        for position in positions(self.state, STALE):
            self.version[position] = -1

    # ------------------------------------------------------------ all slots at once

    def _read_gathered(self) -> None:
        found, base = self._chunk.slots, self._chunk.base
        where: Sequence[int] = range(base, base + len(found))
        if self._chunk.blank:
            where, found = _only(found, is_not, where, found)
        hooks, datas = zip(*found, strict=True) if found else ((), ())
        if found and set(map(type, hooks)) != _NO_HOOK:
            self._look_at(self._packed, _only(hooks, is_not, where, datas)[0])
            where, datas = _only(hooks, is_, where, datas)
        if any(map(is_, datas, repeat(None))):
            self._read_gone(_only(datas, is_, where, datas)[0])
            where, datas = _only(datas, is_not, where, datas)
        if datas:
            self._write(where, datas)

    def _write(self, where: Sequence[int], tensors: Sequence[Any]) -> None:
        """Looks and memory; the state is HELD unless a closer look tells otherwise."""
        looks, keys = self.tables.looks_of(tensors), self.tables.storages_of(tensors)
        losers = noted.losers()
        lost = {p for p, t in zip(where, tensors, strict=True) if id(t) in losers} if losers else set[int]()
        if self._chunk.before is not None:
            # A slot that was held still is if its tensor looks as it did: modified, it would be at another version.
            was, states = list(map(self.look.__getitem__, where)), list(map(self.state.__getitem__, where))
            if looks == was and not any(states) and not lost:
                self._put(self.key, where, keys)
                return
            seen = zip(where, looks, was, states, strict=True)
            changed = [a != b or s != HELD or position in lost for position, a, b, s in seen]
            self._put(self.look, where, looks)
            self._put(self.key, where, keys)
            where, looks = list(compress(where, changed)), list(compress(looks, changed))
            self._put(self.state, where, bytes([HELD]) * len(where))
        else:
            self._put(self.look, where, looks)
            self._put(self.key, where, keys)
        self._known_rows()
        if lost or not self._doubtful.isdisjoint(looks):
            pairs = zip(where, looks, strict=True)
            self._check([position for position, look in pairs if look in self._doubtful or position in lost])

    def _known_rows(self) -> list[Look]:
        """The looks by number. A tensor that was modified at some time, or requires no grad, has to be asked more."""
        rows = self._rows
        for row in islice(self.tables.looks, len(rows), None):
            look = Look(*row)
            if look.version or not look.wants_grad:
                self._doubtful.add(len(rows))
            rows.append(look)
        return rows

    def _put(self, column: array[int] | bytearray, where: Sequence[int], values: Sequence[int]) -> None:
        if len(values) == len(column) - self._chunk.base:  # in all of the chunk
            column[self._chunk.base :] = values if type(column) is bytearray else array(column.typecode, values)
        else:
            for position, value in zip(where, values, strict=True):
                column[position] = value

    # ------------------------------------------------------------ slots without data

    def _read_gone(self, positions: list[int]) -> None:
        """Slots that show no data: was there any? What an earlier snapshot saw there tells, or else the node."""
        if self._chunk.before is not None:
            was = list(map(self.state.__getitem__, positions))
            self._freed(list(compress(positions, map(_HAD.__getitem__, was))))
            positions = list(compress(positions, map(UNKNOWN.__eq__, was)))
        if self._chunk.plain:
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
            self._unsaved(position)
        return list(compress(positions, map(is_not, values, repeat(None))))

    def _gone(self, position: int) -> None:
        node, shown = self._nodes[self._node_at(position)], self._shown[self.name[position]]
        if ti.was_never_saved(node, shown):
            self._unsaved(position)
        else:
            self._freed([position])

    def _unsaved(self, position: int) -> None:
        self.state[position], self.look[position], self.key[position] = UNSAVED, NOTHING, -1

    def _who_freed(self, index: int) -> int:
        """The call that freed a node, -1: unknown."""
        n = self.freed_by.of(self._uids[index], self._walk.seq[index])  # type: ignore[union-attr]
        return -1 if n is None else n

    def _freed(self, positions: list[int]) -> None:
        """Write freed slots. What an earlier snapshot knew of them stays: type, shape and bytes."""
        self._put(self.freed, positions, list(map(self._who_freed, map(self._node_at, positions))))
        self._put(self.state, positions, bytes([FREED]) * len(positions))
        self._put(self.key, positions, [-1] * len(positions))
        looks = list(map(self.look.__getitem__, positions))
        rows = self._known_rows()
        gone = {look: self.tables.looks[rows[look]._replace(version=-1, wants_grad=True)] for look in set(looks)}
        self._put(self.look, positions, list(map(gone.__getitem__, looks)))

    # ------------------------------------------------------------ a closer look at some

    def _look_at(self, look: Callable[[int], None], positions: Iterable[int]) -> None:
        for position in positions:
            try:
                look(position)
            except Exception:
                self.state[position] = UNKNOWN
                self._lost.append(self._node_at(position))

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
        rows, names, closer = self._rows, self.name, list[int]()
        for position in doubtful:
            if rows[self.look[position]].version > 0:
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

    def _held(self, index: int, position: int, data: Any, shown: str) -> int:
        node, version = self._nodes[index], self._rows[self.look[position]].version
        wants, custom = ti.requires_grad(data), ti.is_custom_function(type(node))
        if id(data) in noted.losers() and not custom and not ti.is_output_slot(shown) and not ti.maybe_stale_view(data):
            state = unpack_slot(ti.slot_of(node, shown))
            if state != UNKNOWN:
                return state
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
        self.state[position], self.look[position], self.key[position] = PACKED, NOTHING, -1
        tensors = [t for t in (data if type(data) in (tuple, list) else (data,)) if ti.is_tensor(t)]
        look = self.tables.careful_look(tensors[0]) if len(tensors) == 1 else Look()
        look = look._replace(version=-1, wants_grad=True, bytes=sum(map(ti.bytes_of, tensors)))
        self.look[position] = self.tables.looks[look]
        if len(tensors) == 1:
            self.key[position] = self.tables.storage_key(tensors[0])


def _chunks(first: int, last: int) -> list[tuple[int, int]]:
    return [(at, min(at + CHUNK, last)) for at in range(first, last, CHUNK)]


def _only(
    values: Iterable[Any], test: Callable[[Any, Any], bool], where: Iterable[int], items: Iterable[Any]
) -> tuple[list[int], list[Any]]:
    """Positions and items of which the value is None (`is_`) or is not (`is_not`). Foreign `__eq__` is never asked."""
    chosen = list(map(test, values, repeat(None)))
    return list(compress(where, chosen)), list(compress(items, chosen))
