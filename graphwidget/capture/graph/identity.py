"""One number per node from first sight to death, although Python wrappers of nodes come and go.

A node is told by its sequence number and its name: within one thread no number is given twice. An
AccumulateGrad node has no number of its own and may be made anew for every forward pass; it is told by its
leaf, and the leaf by the address of the tensor together with a weak reference to its memory. (A weak
reference to the tensor would make `torch.utils.swap_tensors`, and with it some `module.to()`, refuse.)

Numbers count per thread, so two threads can make nodes of the same number and name; a new thread begins at 0. Whoever
notices a second thread says how far it has counted (`tell_apart`): nodes below that number are told by a mark in
`node.metadata`, a dict that lives with the node. Others get no mark, because it costs a dict each. If two nodes of one
number and name are seen in one walk although nobody has noticed threads, these are marked.

What remains: a node that another thread makes before it is noticed can get the uid of one that has died. A leaf whose
`.data` was replaced counts as new.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from operator import or_
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.model import Snapshot

__all__ = ["Identity"]

_tokens = itertools.count()
_UNMARKED = -1
_NAME = 1 << 48  # a key is a number with the name's above it: with names below, all keys would collide in dicts


class Identity:
    """Hands out uids. Keep one per tracker; it holds no tensor and no node."""

    def __init__(self) -> None:
        self._next = 0
        self._token = f"uid{next(_tokens)}"  # under which our marks are
        self.apart_below = 0  # nodes with lower numbers may be of several threads
        self._names: dict[str, int] = {}  # name -> what a key has above the number
        self._known: dict[int, int] = {}
        self._leaves: dict[int, tuple[int, Any]] = {}  # address of the leaf -> (uid, weak reference to its memory)
        self._shared_keys: set[int] = set()  # keys that two living nodes had: ask the mark
        self._twins = False  # whether a leaf was seen to have two nodes: then one of them bears a mark
        self._home = threading.get_ident()

    @property
    def given(self) -> int:
        """More than all uids so far: the same before and after a walk that met nothing new."""
        return self._next

    def tell_apart(self, below: int) -> None:
        """Another thread has made nodes, too, with numbers below this one: those numbers tell nothing from now on."""
        self.apart_below = max(self.apart_below, below)

    def __len__(self) -> int:
        return len(self._known) + len(self._leaves)

    def _known_leaf(self, variable: Any) -> int | None:
        entry = self._leaves.get(id(variable))
        return entry[0] if entry is not None and ti.is_memory_of(entry[1], variable) else None

    def assign(
        self,
        nodes: Sequence[Any],
        numbers: Sequence[int],
        names: Sequence[str],
        edges: tuple[Sequence[int], Sequence[int]] | None = None,
        previous: Snapshot | None = None,
    ) -> list[int]:
        """Uids of the nodes of one walk.

        Parameters
        ----------
        nodes, numbers, names
            The nodes with their sequence numbers and names. All must be alive together.
        edges
            Where each node leads, in compressed rows (starts, targets): decides which of two equal keys is the one
            that is known already.
        previous
            The last snapshot, for the same purpose.
        """
        above, known = self._names, self._known
        for name in dict.fromkeys(names):
            above.setdefault(name, len(above) * _NAME)
        keys = list(map(or_, numbers, map(above.__getitem__, names)))
        first, there = self._next, len(known)
        # Before any is given out: should this come to no end, none of them is given out again.
        self._next += len(keys)
        uids = list(map(known.setdefault, keys, itertools.count(first)))  # two of one key may be new in one walk
        special = [i for i, number in enumerate(numbers) if number == ti.NO_SEQUENCE]
        apart = [i for i, number in enumerate(numbers) if number < self.apart_below] if self.apart_below else []
        for i in (*special, *apart):  # their keys tell nothing
            if known.get(keys[i], -1) >= first:
                del known[keys[i]]
        if len(known) == there:
            self._next = first
        for i in special:
            uids[i] = self.unnumbered(nodes[i])
        if len(special) > 1:
            self._tell_twins(special, nodes, uids)
        for i in apart:
            uids[i] = ti.memory_of_node(nodes[i]).get(self._token, _UNMARKED)
        if apart:
            self._mark([i for i in apart if uids[i] == _UNMARKED], nodes, numbers, keys, uids, edges, previous)
        if self._shared_keys or len(set(uids)) < len(uids):
            self._tell_apart(nodes, keys, uids, set(special), edges, previous)
        return uids

    def unnumbered(self, node: Any) -> int:
        """Uid of a node without number: a leaf's, or one that always raises."""
        variable = ti.accumulated_variable(node)
        if variable is None or (self._twins and self._token in ti.memory_of_node(node)):
            return self._marked(node)
        return self.leaf(variable)

    def _tell_twins(self, special: Sequence[int], nodes: Sequence[Any], found: list[int]) -> None:
        """A leaf has two nodes while a graph lives that was made before its type changed (`model.double()`)."""
        first: dict[int, int] = {}
        for i in special:
            if first.setdefault(found[i], i) != i:
                self._twins = True
                found[i] = self._marked(nodes[i])

    def leaf(self, variable: Any) -> int:
        """Uid of the AccumulateGrad node of a leaf, whether torch has made that node yet or not."""
        uid = self._known_leaf(variable)
        if uid is None:
            uid = self._next
            self._next += 1
            self._leaves[id(variable)] = (uid, ti.weak_memory(variable))
        return uid

    def _marked(self, node: Any) -> int:
        memory = ti.memory_of_node(node)
        uid: int | None = memory.get(self._token)
        if uid is None:
            uid = memory[self._token] = self._next
            self._next += 1
        return uid

    def _mark(
        self,
        unmarked: Sequence[int],
        nodes: Sequence[Any],
        numbers: Sequence[int],
        keys: Sequence[int],
        uids: list[int],
        edges: tuple[Sequence[int], Sequence[int]] | None,
        previous: Snapshot | None,
    ) -> None:
        """Mark nodes for the first time: as new, unless the previous snapshot shows one with the same edges.

        What this thread has made since it began is new in any case: it was not there before the thread.
        """
        own = ti.sequence_nr() if threading.get_ident() != self._home else 0
        for i in sorted(unmarked, key=numbers.__getitem__):  # edges lead to lower numbers: the targets come first
            old = self._known.get(keys[i]) if numbers[i] >= own else None
            if old is not None and _same_edges(i, old, uids, edges, previous):
                ti.memory_of_node(nodes[i])[self._token] = self._known.pop(keys[i])
            uids[i] = self._marked(nodes[i])

    def _tell_apart(
        self,
        nodes: Sequence[Any],
        keys: list[int],
        uids: list[int],
        skip: set[int],
        edges: tuple[Sequence[int], Sequence[int]] | None,
        previous: Snapshot | None,
    ) -> None:
        groups: dict[int, list[int]] = {}
        for i, key in enumerate(keys):
            if i not in skip:
                groups.setdefault(key, []).append(i)
        for key, members in groups.items():
            if len(members) < 2 and key not in self._shared_keys:
                continue
            fresh = [i for i in members if self._token not in ti.memory_of_node(nodes[i])]
            if key not in self._shared_keys:
                self._shared_keys.add(key)
                old = self._known[key]
                if fresh:
                    first = next((i for i in fresh if _same_edges(i, old, uids, edges, previous)), fresh[0])
                    ti.memory_of_node(nodes[first])[self._token] = old
            for i in members:
                uids[i] = self._marked(nodes[i])

    def forget_missing(self, alive_uids: Collection[int]) -> None:
        """Drop what is remembered of nodes that are no longer alive."""
        alive = alive_uids if isinstance(alive_uids, (set, frozenset)) else set(alive_uids)
        self._known = {key: uid for key, uid in self._known.items() if uid in alive or key in self._shared_keys}
        self._leaves = {at: entry for at, entry in self._leaves.items() if entry[0] in alive}


def _same_edges(
    i: int,
    uid: int,
    uids: list[int],
    edges: tuple[Sequence[int], Sequence[int]] | None,
    previous: Snapshot | None,
) -> bool:
    """Whether node `i` leads to the same nodes as `uid` did in the previous snapshot: edges never change."""
    at = None if previous is None else previous.index_of.get(uid)
    if previous is None or at is None or edges is None:
        return False
    before = [previous.uid[j] for j in previous.next(at)]
    starts, targets = edges
    return before == [uids[j] for j in targets[starts[i] : starts[i + 1]]]
