"""The nodes of one snapshot: found along `next_functions`, described in columns, held for as long as it is taken.

A node's edges never change, so below a node that the previous snapshot has, the graph is what it was: there the nodes
are only picked up, to stand beside the columns that are known, and nothing is asked of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, islice, repeat
from operator import attrgetter, is_not, sub
from typing import Any

from graphwidget.model import Kind, Snapshot

from . import torch_internals as ti
from .deep import UNMET, make_safe_to_drop
from .identity import Identity
from .tables import Numbered, Translation

__all__ = ["Walk", "positions"]

_NOTHING = Snapshot()
_edges_of: Callable[[Any], Sequence[tuple[Any, int]]] = attrgetter("next_functions")


class _Differs(Exception):
    """The graph is not what the previous snapshot lets expect: two nodes were taken for one."""


class _Numbers(dict[type, Callable[[Any], int]]):
    """Type of a node -> what reads its sequence number."""

    def __missing__(self, cls: type) -> Callable[[Any], int]:
        read = self[cls] = ti.node_readers(cls)[1]
        return read


class _New:
    """The nodes that the previous snapshot lacks, breadth first, and where the edges of each of them begin and end.

    An edge to a node of the previous snapshot has -1 - its index as target.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.starts: list[int] = []
        self.edge_to: list[int] = []
        self.further: dict[int, int] = {}  # edge -> which input of the target; not here: the first


class Walk:
    """All nodes that can be reached from some: first the new ones, breadth first, then those of the previous snapshot.

    Parameters
    ----------
    seeds
        Nodes to start from, each once.
    identity
        Who gives out uids.
    previous, heights
        An earlier snapshot with uids of the same `identity`, and the heights of its nodes.

    Attributes
    ----------
    nodes
        The live nodes. Drop them soon.
    new
        How many of them, from the first on, the previous snapshot lacks.
    uid, seq, name, names, kind, edge_start, edge_to, edge_nr
        Columns as in `Snapshot`; `names` is the table as a dict.
    heights
        How high the nodes stand above the leaves, for the next walk. See `deep`.
    """

    nodes: list[Any]
    uid: array[int]

    def __init__(
        self, seeds: Sequence[Any], identity: Identity, previous: Snapshot | None, heights: array[int]
    ) -> None:
        self._identity, self._previous = identity, previous
        given = identity.given
        try:
            self._run(seeds, _NOTHING if previous is None or identity.doubtful else previous, heights)
        except _Differs:
            self._run(seeds, _NOTHING, array("i"))
        if identity.given > given:  # what was walked before was made safe then
            make_safe_to_drop(self.nodes, self.seq, self.edge_start, self.edge_to, self.heights)

    @property
    def followed(self) -> bool:
        """Whether the previous snapshot was followed: if not, all nodes count as new."""
        return self._old is self._previous

    @property
    def whole(self) -> bool:
        """Whether all nodes of the previous snapshot are there. Then they are the last ones, in its order."""
        return self.followed and len(self._picked) == len(self._there)

    def at(self, node: Any) -> int | None:
        """Index of a node; None: it was not met."""
        found = self._met.get(node)
        if found is None:
            before = self._before(node)
            if before < 0 or self._there[before] is not node:
                return None
            found = -1 - before
        return found if found >= 0 else self._shift[-1 - found]

    def _run(self, seeds: Sequence[Any], old: Snapshot, heights: array[int]) -> None:
        self._old = old
        self._there: list[Any] = [None] * len(old)  # its nodes, as far as they were met
        self._picked: list[int] = []  # their indices, in the order in which they were met
        self._met: dict[Any, int] = {}  # node -> index; -1 - index in `old`
        self._shift: Sequence[int] = ()  # index in `old` -> index now
        new = self._find_new(seeds)
        self._pick_up()
        self._describe(new, heights)

    # ------------------------------------------------------------ finding nodes

    def _find_new(self, seeds: Sequence[Any]) -> _New:
        new, follows = _New(), bool(self._there)
        newest, none, number_of = max(self._old.seq, default=-1), ti.NO_SEQUENCE, _Numbers()
        nodes, starts, edge_to, further = new.nodes, new.starts, new.edge_to, new.further
        find, known = self._met.setdefault, 0
        # The seeds are found first, as edges of a node that does not exist. `nodes` grows while it is read.
        for edges in chain([[(seed, 0) for seed in seeds]], map(_edges_of, nodes)):
            for after, nr in edges:
                if after is not None:
                    at = find(after, known)
                    if at == known:
                        if (
                            not follows
                            or newest < number_of[type(after)](after) < none
                            or (before := self._before(after)) < 0
                        ):
                            nodes.append(after)
                            known += 1
                        else:
                            at = self._met[after] = -1 - before
                            self._pick(before, after)
                    if nr:
                        further[len(edge_to) - len(seeds)] = nr
                    edge_to.append(at)
            starts.append(len(edge_to) - len(seeds))
        del edge_to[: len(seeds)]
        return new

    def _before(self, node: Any) -> int:
        """Index of a node in `old`, -1: it is new."""
        uid = self._identity.known(node) if self._there else None
        return -1 if uid is None else self._old.index_of.get(uid, -1)

    def _pick(self, before: int, node: Any) -> None:
        if self._there[before] is not None:
            raise _Differs
        self._there[before] = node
        self._picked.append(before)

    def _pick_up(self) -> None:
        """The nodes of `old` below those that were met."""
        starts, targets = self._old.edge_start.tolist(), self._old.edge_to.tolist()  # quicker to index than arrays
        there, picked = self._there, self._picked
        pick = picked.append
        for before in picked:  # they grow meanwhile
            edge, end = starts[before], starts[before + 1]
            for after, _ in there[before].next_functions:
                if after is not None:
                    if edge == end:
                        raise _Differs
                    to = targets[edge]
                    edge += 1
                    known = there[to]
                    if known is None:
                        there[to] = after
                        pick(to)
                    elif known is not after:
                        raise _Differs
            if edge != end:
                raise _Differs
        # A dead node's number and name may be those of a living one, of a thread that nobody has noticed yet.
        for cls, at in set(zip(map(type, there), self._old.name, strict=False)):
            name = None if cls is type(None) else ti.node_readers(cls)[2]
            if name is not None and name != self._old.names[at]:
                raise _Differs

    # ------------------------------------------------------------ describing them

    def _describe(self, new: _New, heights: array[int]) -> None:
        """The columns: those of the new nodes, then those of `old` as far as its nodes are alive."""
        self.new = len(new.nodes)
        heights = heights if len(heights) == len(self._old) else array("i", [UNMET]) * len(self._old)
        if not self.new and self.whole:
            self._describe_as_before(heights)
        else:
            self._describe_anew(new, heights)
        self._name_old_leaves()

    def _describe_as_before(self, heights: array[int]) -> None:
        """Snapshots share columns: they are never written to."""
        old = self._old
        self.nodes, self._shift, self.heights = self._there, range(len(old)), heights
        self.uid, self.seq, self.kind, self.name = old.uid, old.seq, old.kind, old.name
        self.names = Numbered(zip(old.names, count()))
        self.edge_start, self.edge_to, self.edge_nr = old.edge_start, old.edge_to, old.edge_nr

    def _describe_anew(self, new: _New, heights: array[int]) -> None:
        old, there = self._old, self._there
        numbers, names = self._describe_new(new)
        alive = bytes(map(is_not, there, repeat(None)))
        self._shift = list(accumulate(alive, initial=self.new))
        self.nodes = new.nodes + list(compress(there, alive))
        self.name.extend(map(Translation(self.names, old.names).__getitem__, compress(old.name, alive)))
        self.seq.extend(compress(old.seq, alive))
        self.kind.extend(compress(old.kind, alive))
        self.heights = array("i", [UNMET]) * self.new
        self.heights.extend(compress(heights, alive))

        edges = array("i", map(sub, islice(old.edge_start, 1, None), old.edge_start))  # of each node
        self.edge_start = array("i", new.starts)
        last = self.edge_start[-1]
        self.edge_start.extend(islice(accumulate(compress(edges, alive), initial=last), 1, None))
        edge_alive = bytes(chain.from_iterable(map(repeat, alive, edges)))
        targets = new.edge_to
        if self._picked:
            targets = [at if at >= 0 else self._shift[-1 - at] for at in targets]
        self.edge_to = array("i", targets)
        self.edge_to.extend(map(self._shift.__getitem__, compress(old.edge_to, edge_alive)))
        self.edge_nr = array("i", [0]) * last  # nearly all gradients go to the first input
        for edge, nr in new.further.items():
            self.edge_nr[edge] = nr
        self.edge_nr.extend(compress(old.edge_nr, edge_alive))

        rows = (self.edge_start, self.edge_to)
        self.uid = array("q", self._identity.assign(new.nodes, numbers, names, rows, self._previous))
        self.uid.extend(compress(old.uid, alive))

    def _name_old_leaves(self) -> None:
        """Leaves of `old` whose `.data` was replaced count as new."""
        leaves = list(positions(self.kind, Kind.ACCUMULATE))
        now = {at: self._identity.unnumbered(self.nodes[at]) for at in leaves if at >= self.new}
        if now and len({*now.values(), *(self.uid[at] for at in leaves if at < self.new)}) < len(leaves):
            raise _Differs  # one was taken for new already, or has two nodes
        if any(self.uid[at] != uid for at, uid in now.items()):
            self.uid = self.uid[:]
            for at, uid in now.items():
                self.uid[at] = uid

    def _describe_new(self, new: _New) -> tuple[list[int], list[str]]:
        """Begin the columns that tell a node by itself. Returns the sequence numbers and the names."""
        types = list(map(type, new.nodes))
        readers = {cls: ti.node_readers(cls) for cls in dict.fromkeys(types)}
        shared = {cls: name for cls, (_, _, name, _) in readers.items()}
        kinds = {cls: kind for cls, (_, _, _, kind) in readers.items()}
        names = list(map(shared.__getitem__, types))
        if None in shared.values():
            names = [ti.name_of(n) if name is None else name for n, name in zip(new.nodes, names, strict=True)]
        self.names = Numbered()
        self.name = array("i", list(map(self.names.__getitem__, names)))
        numbers = ti.sequence_numbers(new.nodes, types)
        self.seq = array("q", array("Q", numbers).tobytes())  # NO_SEQUENCE, all bits set, becomes -1
        self.kind = bytearray(map(kinds.__getitem__, types))
        return numbers, names  # type: ignore[return-value]

    def add_leaf(self, variable: Any) -> int:
        """The AccumulateGrad node of a leaf for which torch has made none yet. Returns its index."""
        self.uid = self.uid + array("q", [self._identity.leaf(variable)])
        self.name = self.name + array("i", [self.names["AccumulateGrad"]])
        self.seq = self.seq + array("q", [-1])
        self.kind = self.kind + bytes([Kind.ACCUMULATE])
        self.edge_start = self.edge_start + array("i", [len(self.edge_to)])
        return len(self.uid) - 1


def positions(column: bytearray, value: int, first: int = 0) -> Iterator[int]:
    """Where a value stands in a column, from `first` on."""
    at = column.find(value, first)
    while at >= 0:
        yield at
        at = column.find(value, at + 1)
