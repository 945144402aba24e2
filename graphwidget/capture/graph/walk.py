"""The nodes of one snapshot: found along `next_functions`, described in columns, held while the snapshot is taken."""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.deep import making_safe_to_drop
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.pieces import AtLeast, completed
from graphwidget.capture.graph.tables import Numbered
from graphwidget.model import Kind, Snapshot

__all__ = ["Walk", "live_nodes", "positions"]

PIECE = 4096  # nodes that are found without a pause


class Walk:
    """All nodes that can be reached from `seeds`, breadth first. `finding` finds them.

    Parameters
    ----------
    seeds
        Nodes to start from, each once.
    identity
        Assigns uids.
    previous
        An earlier snapshot with uids of the same `identity`.

    Attributes
    ----------
    nodes
        The live nodes. Drop them soon.
    uid, seq, name, names, kind, edge_start, edge_to, edge_nr
        Columns as in `Snapshot`; `names` is the table as a dict.
    """

    def __init__(self, seeds: Sequence[Any], identity: Identity, previous: Snapshot | None) -> None:
        self._seeds, self._identity, self._previous = seeds, identity, previous
        self._begin()

    def _begin(self) -> None:
        self.nodes: list[Any] = list(self._seeds)
        self._index: dict[Any, int] = {node: i for i, node in enumerate(self._seeds)}
        self.uid = array("q")
        self.seq = array("q")
        self.name = array("i")
        self.names = Numbered()
        self.kind = bytearray()
        self.edge_start = array("i", [0])
        self.edge_to = array("i")
        self.edge_nr = array("i")

    def finding(self) -> Iterator[int]:
        """Find the nodes and describe them, in pieces; yields how many nodes are known so far.

        Edges never change, so what happens between two pieces makes no difference. Nodes that were found die
        differently from others, and so do the nodes behind their edges (see `deep`). If this is closed or interrupted
        before its end, they are still made safe before they are released.
        """
        given = self._identity.given
        try:
            yield from self._find()
            for _ in self._describe():
                yield len(self.nodes)
            if self._identity.given > given:  # nodes that have a uid were made safe when they got it
                for _ in self._making_safe():
                    yield len(self.nodes)
        except BaseException:
            self._begin()
            completed(self._find())
            self.seq = self._numbers(list(map(type, self.nodes)))[1]
            completed(self._making_safe())
            raise

    def at(self, node: Any) -> int | None:
        """Index of a node; None: not among those found."""
        return self._index.get(node)

    def _find(self) -> Generator[int, None, None]:
        nodes, index = self.nodes, self._index
        starts, targets, inputs = self.edge_start, self.edge_to, self.edge_nr
        following = iter(nodes)  # `nodes` grows while it is read
        while len(starts) <= len(nodes):
            for node in islice(following, PIECE):
                for after, nr in node.next_functions:
                    if after is not None:
                        to = index.setdefault(after, len(nodes))
                        if to == len(nodes):
                            nodes.append(after)
                        targets.append(to)
                        inputs.append(nr)
                starts.append(len(targets))
            if len(starts) <= len(nodes):
                yield AtLeast(len(nodes))

    def _describe(self) -> Iterator[None]:
        """Fill the columns that are not about edges."""
        types = list(map(type, self.nodes))
        yield
        names = self._names(types)
        numbers, self.seq = self._numbers(types)
        yield
        kinds = {cls: ti.node_readers(cls).kind for cls in set(types)}
        self.kind = bytearray(map(kinds.__getitem__, types))
        self.name = array("i", map(self.names.__getitem__, names))
        yield
        edges = self.edge_start, self.edge_to
        self.uid = array("q", self._identity.assign(self.nodes, numbers, names, edges, self._previous))
        yield

    def _names(self, types: list[type]) -> list[str]:
        shared = {cls: ti.node_readers(cls).name for cls in set(types)}
        return [shared[cls] or ti.name_of(node) for node, cls in zip(self.nodes, types, strict=True)]

    def _numbers(self, types: list[type]) -> tuple[list[int], array[int]]:
        """The sequence numbers as torch gives them, and as a column, in which `NO_SEQUENCE` (all bits set) is -1."""
        numbers = ti.sequence_numbers(self.nodes, types)
        return numbers, array("q", array("Q", numbers).tobytes())

    def _making_safe(self) -> Generator[None, None, int]:
        return making_safe_to_drop(self.nodes, self.seq, self.edge_start, self.edge_to)

    def add_leaf(self, variable: Any) -> int:
        """Add the AccumulateGrad node of a leaf for which torch has made none yet. Returns its index."""
        self.uid.append(self._identity.leaf(variable))
        self.name.append(self.names["AccumulateGrad"])
        self.seq.append(-1)
        self.kind.append(Kind.ACCUMULATE)
        self.edge_start.append(len(self.edge_to))
        return len(self.uid) - 1


def live_nodes(starts: Iterable[tuple[Any, int]], graph: Snapshot) -> Iterator[tuple[int, Any]]:
    """The indices of a snapshot with their live nodes, found from live nodes whose indices are known.

    Edges never change, so those of the snapshot are those of the live nodes, in the same order.
    """
    stack = [(node, index) for node, index in starts if node is not None and index >= 0]
    seen = {index for _, index in stack}
    while stack:
        node, index = stack.pop()
        yield index, node
        behind = [after for after, _ in node.next_functions if after is not None]
        for after, at in zip(behind, graph.next(index), strict=False):
            if at not in seen:
                seen.add(at)
                stack.append((after, at))


def positions(column: bytearray, value: int) -> Iterator[int]:
    """The indices at which a column has this value."""
    at = column.find(value)
    while at >= 0:
        yield at
        at = column.find(value, at + 1)
