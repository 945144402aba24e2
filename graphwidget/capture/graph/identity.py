"""One uid per node, from the first walk that meets it to its death, although Python wrappers of nodes come and go.

A node is identified by its sequence number and its name: one thread never gives a number twice. An AccumulateGrad node
has no number, and torch may make a new one for every forward pass. It is identified by its leaf; the leaf by the
address of the tensor and a weak reference to its memory. (With a weak reference to the tensor itself,
`torch.utils.swap_tensors` would raise, and so would `module.to()` where it swaps tensors.)

Each thread counts its own numbers, from 0, so two threads can make nodes with the same number and name. Code that
notices a second thread calls `tell_apart` with the number that thread has reached: nodes below it are identified
by a mark in `node.metadata`, a dict that lives with the node. Other nodes get no mark, because each mark costs a dict.
If one walk meets two nodes with the same number and name although no thread was noticed, both are marked.

Known limits: a node that another thread makes before that thread is noticed can get the uid of a dead node. A leaf
whose `.data` was replaced counts as new.
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
_NAME = 1 << 48  # a key has the name in its high bits: in the low bits it would make all keys collide in dicts


class Identity:
    """Assigns uids. Keep one per tracker; it holds no tensor and no node."""

    def __init__(self) -> None:
        self._next = 0
        self._token = f"uid{next(_tokens)}"  # key of our marks in `node.metadata`
        self.apart_below = 0  # nodes with lower numbers may come from several threads
        self._names: dict[str, int] = {}  # name -> the high bits of its keys
        self._known: dict[int, int] = {}  # key -> uid
        self._leaves: dict[int, tuple[int, Any]] = {}  # address of the leaf -> (uid, weak reference to its memory)
        self._shared_keys: set[int] = set()  # keys that two living nodes had: their marks decide
        self._twins = False  # whether a leaf was seen with two nodes: then one of them has a mark
        self._first_thread = threading.get_ident()

    @property
    def given(self) -> int:
        """The next uid, greater than all given so far. A walk that meets nothing new does not change it."""
        return self._next

    def tell_apart(self, below: int) -> None:
        """Record that another thread made nodes with numbers below this one: such numbers no longer identify a node."""
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
            The edges of the nodes in compressed rows (starts, targets). They decide which of two nodes with one key is
            the known one.
        previous
            The last snapshot, for the same purpose.
        """
        above, known = self._names, self._known
        for name in dict.fromkeys(names):
            above.setdefault(name, len(above) * _NAME)
        keys = list(map(or_, numbers, map(above.__getitem__, names)))
        first, there = self._next, len(known)
        # Reserved first: if an interrupt ends this early, no uid is given twice.
        self._next += len(keys)
        uids = list(map(known.setdefault, keys, itertools.count(first)))  # two new nodes of one walk may share a key
        special = [i for i, number in enumerate(numbers) if number == ti.NO_SEQUENCE]
        apart = [i for i, number in enumerate(numbers) if number < self.apart_below] if self.apart_below else []
        for i in (*special, *apart):  # their keys do not identify them
            if known.get(keys[i], -1) >= first:
                del known[keys[i]]
        if len(known) == there:
            self._next = first
        for i in special:
            uids[i] = self.unnumbered(nodes[i])
        if len(special) > 1:
            self._separate_twins(special, nodes, uids)
        for i in apart:
            uids[i] = ti.memory_of_node(nodes[i]).get(self._token, _UNMARKED)
        if apart:
            self._mark([i for i in apart if uids[i] == _UNMARKED], nodes, numbers, keys, uids, edges, previous)
        if self._shared_keys or len(set(uids)) < len(uids):
            self._separate_shared_keys(nodes, keys, uids, set(special), edges, previous)
        return uids

    def unnumbered(self, node: Any) -> int:
        """Uid of a node without a sequence number: an AccumulateGrad, or a node that always raises."""
        variable = ti.accumulated_variable(node)
        if variable is None or (self._twins and self._token in ti.memory_of_node(node)):
            return self._marked(node)
        return self.leaf(variable)

    def _separate_twins(self, special: Sequence[int], nodes: Sequence[Any], found: list[int]) -> None:
        """Separate two nodes of one leaf: a graph from before `model.double()` keeps the node of the old dtype."""
        first: dict[int, int] = {}
        for i in special:
            if first.setdefault(found[i], i) != i:
                self._twins = True
                found[i] = self._marked(nodes[i])

    def leaf(self, variable: Any) -> int:
        """Uid of the AccumulateGrad node of a leaf, even before torch has made that node."""
        uid = self._known_leaf(variable)
        if uid is None:
            uid = self._next
            self._next += 1
            self._leaves[id(variable)] = (uid, ti.weak_memory(variable))
        return uid

    def _marked(self, node: Any) -> int:
        """The uid in the mark of a node; a node without a mark gets one with a new uid."""
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
        """Mark nodes for the first time: as new, unless the previous snapshot has a node with the same key and edges.

        If this runs in a second thread, the nodes made by it are always new: they did not exist before the thread.
        """
        own = ti.sequence_nr() if threading.get_ident() != self._first_thread else 0
        for i in sorted(unmarked, key=numbers.__getitem__):  # edges lead to lower numbers, so targets are marked first
            old = self._known.get(keys[i]) if numbers[i] >= own else None
            if old is not None and _same_edges(i, old, uids, edges, previous):
                ti.memory_of_node(nodes[i])[self._token] = self._known.pop(keys[i])
            uids[i] = self._marked(nodes[i])

    def _separate_shared_keys(
        self,
        nodes: Sequence[Any],
        keys: list[int],
        uids: list[int],
        skip: set[int],
        edges: tuple[Sequence[int], Sequence[int]] | None,
        previous: Snapshot | None,
    ) -> None:
        """Identify nodes that share a key by marks, from now on."""
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
        """Drop the entries of nodes that are no longer alive."""
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
    """Whether node `i` has the edges that `uid` had in the previous snapshot. The edges of a node never change."""
    at = None if previous is None else previous.index_of.get(uid)
    if previous is None or at is None or edges is None:
        return False
    before = [previous.uid[j] for j in previous.next(at)]
    starts, targets = edges
    return before == [uids[j] for j in targets[starts[i] : starts[i + 1]]]
