"""Which slots the nodes of a walk have and what lies in them, for a chunk of nodes at a time.

Nearly all nodes are of types whose slots are known from the type alone: those of a chunk are read by one
comprehension. Lists of slots and custom Functions are asked node by node.

Torch makes an object for a slot whenever one is asked for. It is dropped as soon as it has told its hook and its data:
then the next one takes its memory while the processor's cache has it, which saves a third of the time.

A slot that an earlier snapshot saw FREED or UNSAVED stays so for ever: it is not even asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, count, islice, repeat
from operator import attrgetter, sub
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.slot_states import never_saves
from graphwidget.capture.graph.tables import Tables, Translation
from graphwidget.capture.graph.walk import Walk
from graphwidget.model import SlotState, Snapshot

__all__ = ["Chunk", "Gatherer"]

ENDED = bytes(state in (SlotState.FREED, SlotState.UNSAVED) for state in range(256))  # no slot leaves these again
_hook_of, _data_of = ti.hook_of_slot, ti.data_of_slot
_Reads = tuple[Callable[[Any], Any], ...]  # the getters of a node's slots


class Chunk:
    """The slots of some nodes that follow each other. Holds live objects: drop it soon."""

    def __init__(self, first: int, base: int) -> None:
        self.first, self.base = first, base  # index of the first node; position of the first slot
        self.counts: list[int] = []  # slots of each node
        self.names: list[int] = []
        self.slots: list[tuple[Any, Any] | None] = []  # (unpack hook, what it holds), None where nothing is to be read
        self.blank = 0  # how many are None
        self.before: Sequence[int] | None = None  # positions in the earlier snapshot, -1: not there
        self.ended: bytes | bytearray | None = None  # 1: not to be read but to be copied from there
        self.plain = True  # whether all slots were known from the types
        self.released: list[int] = []  # positions of slots of lists that were freed
        self.lost: list[int] = []  # positions that stand for nodes that could not be read

    def starts(self) -> islice[int]:
        """Where the slots of the nodes after the first begin, and where the last ones end."""
        return islice(accumulate(self.counts, initial=self.base), 1, None)


class Gatherer:
    """Lists the slots of `nodes`.

    Parameters
    ----------
    tables
        Where slot names are numbered.
    previous
        An earlier snapshot.
    walk
        The nodes.
    """

    def __init__(self, tables: Tables, previous: Snapshot | None, walk: Walk) -> None:
        self.tables, self.previous = tables, previous
        self.empty_after_release: set[int] = set()  # nodes that were released but show no slot
        self.unreadable: list[int] = []  # nodes
        self._walk, self._nodes, self._uids = walk, walk.nodes, walk.uid
        self._reads: dict[type, _Reads | None] = {}  # None: ask each node
        self._names: dict[type, tuple[int, ...]] = {}
        self._careful = False
        self._ended: bytes | bytearray = b""  # by position in the earlier snapshot; one more at the end, for -1
        if previous is not None:
            if walk.new < len(walk.nodes):
                tables.slot_names.update(zip(previous.slot_names, count()))
            self._translated = Translation(tables.slot_names, previous.slot_names)
            ended = previous.slot_state.translate(ENDED)
            self._ended = ended + b"\0" if 1 in ended else b""

    def tensors(self, first: int, last: int, ended: Sequence[int]) -> list[Any] | None:
        """What lies in slots that have not `ended`, without those behind hooks. None: the types do not tell which."""
        nodes = self._nodes[first:last]
        reads = self._reads_of(list(map(type, nodes)), nodes)
        if None in reads:
            return None
        if 0 not in ended:
            return []
        if 1 not in ended:
            pairs = zip(nodes, reads, strict=True)
            return [_data_of(slot) for node, read in pairs for get in read if _hook_of(slot := get(node)) is None]  # type: ignore[union-attr]
        wanted = self._wanted(nodes, reads, ended)
        return [_data_of(slot) for node, get, over in wanted if not over and _hook_of(slot := get(node)) is None]

    def gather(self, first: int, last: int, base: int) -> Chunk:
        """The slots of nodes `first` to `last`; the first of them will be at position `base`."""
        try:
            return self._gather(first, last, base)
        except Exception:  # a type was not as its first node let expect
            self._careful = True
            self._reads.clear()
            return self._gather(first, last, base)

    def _gather(self, first: int, last: int, base: int) -> Chunk:
        chunk, nodes = Chunk(first, base), self._nodes[first:last]
        types = list(map(type, nodes))
        reads = self._reads_of(types, nodes)
        if None in reads:
            self._one_by_one(chunk, nodes, reads)
        else:
            self._all_at_once(chunk, nodes, types, reads)  # type: ignore[arg-type]
        return chunk

    def _reads_of(self, types: list[type], nodes: Sequence[Any]) -> list[_Reads | None]:
        for cls in set(types).difference(self._reads):
            self._learn(cls, nodes[types.index(cls)])
        return list(map(self._reads.__getitem__, types))

    def _learn(self, cls: type, node: Any) -> None:
        """How nodes of one type are read. What is a list is a list in all of them, and only lists ever raise."""
        self._reads[cls] = None
        if self._careful or ti.is_custom_function(cls):
            return
        found = ti.slot_names(cls)
        try:
            plain = all(ti.is_saved_tensor_type(type(getattr(node, raw))) for raw, _, _ in found)
        except RuntimeError:
            return
        if plain:
            self._reads[cls] = tuple(cls.__dict__[raw].__get__ for raw, _, _ in found)
            self._names[cls] = tuple(self.tables.slot_names[shown] for _, _, shown in found)

    # ------------------------------------------------------------ slots that are known from the types

    def _all_at_once(self, chunk: Chunk, nodes: Sequence[Any], types: list[type], reads: list[_Reads]) -> None:
        chunk.counts = list(map(len, reads))
        chunk.names = list(chain.from_iterable(map(self._names.__getitem__, types)))
        chunk.before = self._before(chunk.first, chunk.counts)
        ended = b"" if chunk.before is None or not self._ended else self._ended_of(chunk.before)
        chunk.slots = self._slots(nodes, reads, ended)
        if 1 in ended:
            chunk.ended, chunk.blank = ended, sum(ended)

    def _slots(self, nodes: Sequence[Any], reads: list[_Reads], ended: Sequence[int]) -> list[tuple[Any, Any] | None]:
        """What lies in the slots, None where they have ended."""
        if 1 not in ended:
            pairs = zip(nodes, reads, strict=True)
            return [(_hook_of(slot := get(node)), _data_of(slot)) for node, read in pairs for get in read]
        if 0 not in ended:
            return [None] * len(ended)
        wanted = self._wanted(nodes, reads, ended)
        return [None if over else (_hook_of(slot := get(node)), _data_of(slot)) for node, get, over in wanted]

    def _wanted(self, nodes: Sequence[Any], reads: list[Any], ended: Sequence[int]) -> Iterator[tuple[Any, Any, int]]:
        """Of each slot: its node, its getter, whether it has ended."""
        owners = chain.from_iterable(map(repeat, nodes, map(len, reads)))
        return zip(owners, chain.from_iterable(reads), ended, strict=True)

    def _ended_of(self, before: Sequence[int]) -> bytes:
        if type(before) is range:
            return self._ended[before.start : before.stop]
        return bytes(map(self._ended.__getitem__, before))

    def _before(self, first: int, counts: list[int]) -> Sequence[int] | None:
        """Where the slots of nodes from `first` on were in the earlier snapshot, if they were as many then."""
        old, last, new = self.previous, first + len(counts), self._walk.new
        if old is None or (last <= new and self._walk.followed):
            return None
        uids, starts = self._uids[first:last], old.slot_start
        at = first - new if old.uid[first - new : last - new] == uids else old.index_of.get(uids[0], -1)
        end = at + len(counts)
        if at >= 0 and old.uid[at:end] == uids and list(map(sub, starts[at + 1 : end + 1], starts[at:end])) == counts:
            return range(starts[at], starts[end])
        found: list[int] = []
        for index, slots in zip(map(old.index_of.get, uids, repeat(-1)), counts, strict=True):
            start = starts[index]
            known = index >= 0 and starts[index + 1] - start == slots
            found.extend(range(start, start + slots) if known else repeat(-1, slots))
        return found

    # ------------------------------------------------------------ lists and custom Functions

    def _one_by_one(self, chunk: Chunk, nodes: Sequence[Any], reads: list[_Reads | None]) -> None:
        chunk.plain = False
        chunk.before, chunk.ended = before, ended = [], bytearray()
        for index, (node, read) in enumerate(zip(nodes, reads, strict=True), chunk.first):
            count = len(chunk.slots)
            if read != () and not self._copied(chunk, index):
                if read is None:
                    self._carefully(chunk, index)
                else:
                    chunk.slots.extend([(_hook_of(slot := get(node)), _data_of(slot)) for get in read])
                    chunk.names.extend(self._names[type(node)])
            chunk.counts.append(len(chunk.slots) - count)
            before.extend(self._before_one(index, chunk.names[count:]))
            ended.extend(repeat(0, len(chunk.slots) - len(ended)))

    def _copied(self, chunk: Chunk, index: int) -> bool:
        """Whether no slot of a node will change any more; they then need not be read."""
        old = self.previous
        at = old.index_of.get(self._uids[index]) if old is not None and self._ended else None
        if old is None or at is None:
            return False
        first, last = old.slot_start[at], old.slot_start[at + 1]
        if first == last or self._ended.find(0, first, last) >= 0:
            return False
        chunk.slots.extend(repeat(None, last - first))
        chunk.names.extend(map(self._translated.__getitem__, old.slot_name[first:last]))
        chunk.ended.extend(repeat(1, last - first))  # type: ignore[union-attr]
        chunk.blank += last - first
        return True

    def _before_one(self, index: int, names: list[int]) -> list[int]:
        """The same as `_before` for one node, whose slots may have become more or fewer."""
        old = self.previous
        at = None if old is None else old.index_of.get(self._uids[index])
        if old is None or at is None:
            return [-1] * len(names)
        first, last = old.slot_start[at], old.slot_start[at + 1]
        there = [self._translated[name] for name in old.slot_name[first:last]] + [-1] * len(names)
        return [first + i if name == there[i] else -1 for i, name in enumerate(names)]

    def _carefully(self, chunk: Chunk, index: int) -> None:
        node, first, released = self._nodes[index], len(chunk.slots), len(chunk.released)
        try:
            if ti.is_custom_function(type(node)):
                self._list(chunk, index, first, "saved_tensors", ti.saved_by_custom)
            else:
                for raw, _, shown in ti.slot_names(type(node)):
                    self._list(chunk, index, first, shown, attrgetter(raw))
        except Exception:
            chunk.blank -= chunk.slots[first:].count(None)
            del chunk.slots[first:], chunk.names[first:], chunk.released[released:]
            chunk.lost.append(chunk.base + first)
            self._add(chunk, "?", None)
            self.unreadable.append(index)

    def _list(self, chunk: Chunk, index: int, first: int, shown: str, read: Callable[[Any], Any]) -> None:
        try:
            slots = read(self._nodes[index])
        except RuntimeError:
            self._released_list(chunk, index, first, shown)
            return
        if type(slots) is tuple:
            for i, slot in enumerate(slots):
                self._add(chunk, f"{shown}[{i}]", slot)
        elif slots is not None:
            self._add(chunk, shown, slots)

    def _add(self, chunk: Chunk, shown: str, slot: Any) -> None:
        chunk.slots.append(None if slot is None else (_hook_of(slot), _data_of(slot)))
        chunk.names.append(self.tables.slot_names[shown])
        chunk.blank += slot is None

    def _released_list(self, chunk: Chunk, index: int, first: int, shown: str) -> None:
        """The slots of a list that raises because it was released: how many there were, only an earlier look knows."""
        old, node = self.previous, self._nodes[index]
        at = None if old is None else old.index_of.get(self._uids[index])
        custom = ti.is_custom_function(type(node))
        if old is None or at is None:
            if custom and never_saves(ti.function_with_context(node)):
                self.empty_after_release.add(index)
            else:
                chunk.released.append(chunk.base + len(chunk.slots))
                self._add(chunk, shown, None)
            return
        count = len(chunk.slots)
        for before in range(old.slot_start[at] + count - first, old.slot_start[at + 1]):
            name = old.slot_names[old.slot_name[before]]
            if name != shown and not name.startswith(shown + "["):
                break
            chunk.released.append(chunk.base + len(chunk.slots))
            self._add(chunk, name, None)
        if custom and len(chunk.slots) == count:
            self.empty_after_release.add(index)
