"""The nodes of one snapshot: found along `next_functions`, described in columns, held for as long as it is taken.

A node's edges never change, so below a node that the previous snapshot has, the graph is what it was: there the nodes
are only picked up, to stand beside the columns that are known, and nothing is asked of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, islice, repeat
from operator import attrgetter, is_not, sub
from typing import Any, NamedTuple, TypeVar

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.deep import UNMET, make_safe_to_drop, making_safe_to_drop
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.pieces import AtLeast, completed
from graphwidget.capture.graph.tables import Numbered, Translation
from graphwidget.model import Kind, Snapshot

__all__ = ["Walk", "joined", "positions"]

PIECE = 4096  # nodes that are found without a pause
_NOTHING = Snapshot()
_Column = TypeVar("_Column", "array[int]", bytearray)
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


class _Rest(NamedTuple):
    """What is left of the previous snapshot: its live nodes, with columns of their own."""

    nodes: list[Any]
    uid: array[int]
    seq: array[int]
    name: array[int]
    names: Sequence[str]
    kind: bytearray
    heights: array[int]
    edge_start: array[int]
    edge_to: array[int]
    edge_nr: array[int]


class Walk:
    """All nodes that can be reached from some: first the new ones, breadth first, then those of the previous snapshot.

    They are found by `finding`; before that there is nothing.

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
        self._seeds, self._identity, self._previous, self._old_heights = seeds, identity, previous, heights

    def finding(self) -> Iterator[int]:
        """Find the nodes and describe them, in pieces; yields how many there are, as far as is known.

        Edges never change, so what happens between two pieces makes no difference. Nodes that were met die
        differently, and so do those behind their edges (see `deep`): if there is no end to it, because somebody closes
        it or interrupts, they are made safe all the same before they are let go.
        """
        given = self._identity.given
        previous = _NOTHING if self._previous is None or self._identity.doubtful else self._previous
        try:
            for old in (previous, _NOTHING):
                try:
                    yield from self._run(old)
                    break
                except _Differs:
                    continue
            if self._identity.given > given:  # what was walked before was made safe then
                for _ in making_safe_to_drop(self.nodes, self.seq, self.edge_start, self.edge_to, self.heights):
                    yield len(self.nodes)
        except BaseException:
            self._make_safe()
            raise

    def _make_safe(self) -> None:
        """Make all that can be reached safe to drop, whatever of it was met: nothing else is known any more."""
        self._begin(_NOTHING)
        new = _New()
        completed(self._find_new(new))
        numbers = ti.sequence_numbers(new.nodes, list(map(type, new.nodes)))
        make_safe_to_drop(new.nodes, numbers, new.starts, new.edge_to)

    @property
    def followed(self) -> bool:
        """Whether the previous snapshot was followed: if not, all nodes count as new."""
        return self._old is self._previous

    @property
    def whole(self) -> bool:
        """Whether all nodes of the previous snapshot are there. Then they are the last ones, in its order."""
        return self.followed and len(self._picked) == len(self._there)

    def before(self, first: int, last: int) -> range | None:
        """Indices in the previous snapshot of the nodes from `first` up to `last`, if there they follow each other."""
        if first < self.new:
            return None
        begin, end = self._kept[first - self.new], self._kept[last - 1 - self.new] + 1
        return range(begin, end) if end - begin == last - first else None

    def at(self, node: Any) -> int | None:
        """Index of a node; None: it was not met."""
        found = self._met.get(node)
        if found is None:
            before = self._before(node)
            if before < 0 or self._there[before] is not node:
                return None
            found = -1 - before
        return found if found >= 0 else self.new + self._place[-1 - found]

    def _run(self, old: Snapshot) -> Iterator[int]:
        self._begin(old)
        new = _New()
        yield from self._find_new(new)
        yield from self._pick_up(len(new.nodes))
        for _ in self._describe(new):
            yield len(new.nodes) + len(self._picked)

    def _begin(self, old: Snapshot) -> None:
        self._old = old
        self._there: list[Any] = [None] * len(old)  # its nodes, as far as they were met
        self._picked: list[int] = []  # their indices, in the order in which they were met
        self._met: dict[Any, int] = {}  # node -> index; -1 - index in `old`
        self._place: Sequence[int] = ()
        self._kept: Sequence[int] = ()

    # ------------------------------------------------------------ finding nodes

    def _find_new(self, new: _New) -> Generator[int, None, None]:
        seeds, follows = self._seeds, bool(self._there)
        newest, none, number_of = max(self._old.seq, default=-1), ti.NO_SEQUENCE, _Numbers()
        nodes, starts, edge_to, further = new.nodes, new.starts, new.edge_to, new.further
        find, known = self._met.setdefault, 0
        # The seeds are found first, as edges of a node that does not exist. `nodes` grows while it is read.
        rows = chain([[(seed, 0) for seed in seeds]], map(_edges_of, nodes))
        while len(starts) <= len(nodes):
            if starts:
                yield AtLeast(known + len(self._picked))
            for edges in islice(rows, PIECE):
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

    def _before(self, node: Any) -> int:
        """Index of a node in `old`, -1: it is new."""
        uid = self._identity.known(node) if self._there else None
        return -1 if uid is None else self._old.index_of.get(uid, -1)

    def _pick(self, before: int, node: Any) -> None:
        if self._there[before] is not None:
            raise _Differs
        self._there[before] = node
        self._picked.append(before)

    def _pick_up(self, new: int) -> Iterator[int]:
        """The nodes of `old` below those that were met. `new`: how many others there are."""
        starts, targets = self._old.edge_start.tolist(), self._old.edge_to.tolist()  # quicker to index than arrays
        there, picked = self._there, self._picked
        pick, following = picked.append, iter(picked)  # they grow meanwhile
        done = 0
        while done < len(picked):
            if done:
                yield AtLeast(new + len(picked))
            done += PIECE
            for before in islice(following, PIECE):
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

    def _describe(self, new: _New) -> Iterator[None]:
        """The columns: those of the new nodes, then what is left of those of `old`."""
        yield
        rest = yield from self._rest()
        yield
        self.new, edges = len(new.nodes), len(new.edge_to)
        self.names = Numbered(zip(rest.names, count()))
        types = list(map(type, new.nodes))
        names, kinds = self._names_and_kinds(new.nodes, types)
        numbers = ti.sequence_numbers(new.nodes, types)
        yield
        targets = new.edge_to
        if self._picked:
            targets = [at if at >= 0 else self.new + self._place[-1 - at] for at in targets]
        inputs = array("i", [0]) * edges  # nearly all gradients go to the first input
        for edge, nr in new.further.items():
            inputs[edge] = nr
        yield
        uids = self._identity.assign(new.nodes, numbers, names, (new.starts, targets), self._previous)
        yield
        self.nodes = new.nodes + rest.nodes
        self.uid = joined(array("q", uids), rest.uid)
        # NO_SEQUENCE, all bits set, becomes -1.
        self.seq = joined(array("q", array("Q", numbers).tobytes()), rest.seq)
        self.name = joined(array("i", list(map(self.names.__getitem__, names))), rest.name)
        self.kind = joined(bytearray(kinds), rest.kind)
        self.heights = joined(array("i", [UNMET]) * self.new, rest.heights)
        starts = rest.edge_start if not edges else array("i", [edges + start for start in rest.edge_start])
        self.edge_start = joined(array("i", new.starts[:-1]), starts)
        following = rest.edge_to if not self.new else array("i", [self.new + at for at in rest.edge_to])
        self.edge_to = joined(array("i", targets), following)
        self.edge_nr = joined(inputs, rest.edge_nr)
        yield
        self._name_old_leaves()

    def _names_and_kinds(self, nodes: Sequence[Any], types: list[type]) -> tuple[list[str], Iterable[int]]:
        readers = {cls: ti.node_readers(cls) for cls in dict.fromkeys(types)}
        shared = {cls: name for cls, (_, _, name, _) in readers.items()}
        kinds = {cls: kind for cls, (_, _, _, kind) in readers.items()}
        names = list(map(shared.__getitem__, types))
        if None in shared.values():
            names = [ti.name_of(n) if name is None else name for n, name in zip(nodes, names, strict=True)]
        return names, map(kinds.__getitem__, types)  # type: ignore[return-value]

    def _rest(self) -> Generator[None, None, _Rest]:
        """The part of `old` that is alive. `_place`: the index in it of each node of `old`; `_kept`: the reverse."""
        old, there, heights = self._old, self._there, self._old_heights
        if len(heights) != len(old):
            heights = array("i", [UNMET]) * len(old)
        if len(self._picked) == len(there):
            self._place = self._kept = range(len(there))
            edges = old.edge_start, old.edge_to, old.edge_nr
            return _Rest(there, old.uid, old.seq, old.name, old.names, old.kind, heights, *edges)
        yield
        alive = bytes(map(is_not, there, repeat(None)))
        self._place = place = list(accumulate(alive, initial=0))
        self._kept = list(compress(range(len(there)), alive))
        names = Numbered()
        name = list(map(Translation(names, old.names).__getitem__, compress(old.name, alive)))
        counts = array("i", map(sub, islice(old.edge_start, 1, None), old.edge_start))  # edges of each node
        yield
        edge_alive = bytes(chain.from_iterable(map(repeat, alive, counts)))
        yield
        return _Rest(
            list(compress(there, alive)),
            array("q", compress(old.uid, alive)),
            array("q", compress(old.seq, alive)),
            array("i", name),
            tuple(names),
            bytearray(compress(old.kind, alive)),
            array("i", compress(heights, alive)),
            array("i", accumulate(compress(counts, alive), initial=0)),
            array("i", list(map(place.__getitem__, compress(old.edge_to, edge_alive)))),
            array("i", compress(old.edge_nr, edge_alive)),
        )

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

    def add_leaf(self, variable: Any) -> int:
        """The AccumulateGrad node of a leaf for which torch has made none yet. Returns its index."""
        self.uid = self.uid + array("q", [self._identity.leaf(variable)])
        self.name = self.name + array("i", [self.names["AccumulateGrad"]])
        self.seq = self.seq + array("q", [-1])
        self.kind = self.kind + bytes([Kind.ACCUMULATE])
        self.edge_start = self.edge_start + array("i", [len(self.edge_to)])
        return len(self.uid) - 1


def joined(first: _Column, then: _Column) -> _Column:
    """One column after the other. Snapshots share columns where they can: they are never written to."""
    return first + then if first else then


def positions(column: bytearray, value: int, first: int = 0) -> Iterator[int]:
    """Where a value stands in a column, from `first` on."""
    at = column.find(value, first)
    while at >= 0:
        yield at
        at = column.find(value, at + 1)
