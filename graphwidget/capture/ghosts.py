"""Adds the dead nodes of past graphs to a snapshot, as ghosts."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain, compress, islice, repeat
from operator import sub
from typing import Any

from graphwidget.model import BackwardCall, Leaf, NodeFacts, Snapshot, TensorRef

__all__ = ["graphs_that_matter", "merged"]

# Column -> the table that it points into.
_NODE_TABLES = {"name": "names", "place": "places", "module": "modules"}
_SLOT_TABLES = {"slot_name": "slot_names", "slot_dtype": "dtypes", "slot_shape": "shapes"}


class _Table:
    """A table of a snapshot that grows: values keep their index."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)
        self.index = {value: i for i, value in enumerate(values)}

    def numbers(self, values: Sequence[Any]) -> list[int]:
        """Return the index of each value, and -1 as the last element, so that index -1 maps to -1. Adds new values."""
        for value in values:
            if value not in self.index:
                self.index[value] = len(self.values)
                self.values.append(value)
        return [*map(self.index.__getitem__, values), -1]


def merged(live: Snapshot, past: Sequence[Snapshot]) -> Snapshot:
    """Return `live` with the dead nodes of `past` graphs as ghosts, and their edges.

    Parameters
    ----------
    past
        Graphs with uids of the same tracker, oldest first. If two contain the same dead node, the newer one is used.
    """
    newest = {uid: graph for graph in past for uid in graph.uid}
    for uid in live.uid:
        newest.pop(uid, None)
    if not newest:
        return live
    merge = _Merge(live)
    for graph in past:
        merge.add(graph, bytes(newest.get(uid) is graph for uid in graph.uid))
    drawn = merge.result()
    return replace(drawn, roots=(*live.roots, *_dead_roots(drawn, past)))


def _dead_roots(drawn: Snapshot, past: Sequence[Snapshot]) -> list[TensorRef]:
    """Return the roots of the past calls whose nodes are ghosts now."""
    found = {}
    for graph in past:
        for root in graph.roots:
            at = drawn.index_of[graph.uid[root.node]] if root.node >= 0 else -1
            if at >= 0 and drawn.ghost[at]:
                found[at, root.output_nr] = replace(root, node=at)
    return list(found.values())


class _Merge:
    """Copies of the live columns, to which ghosts are appended."""

    def __init__(self, live: Snapshot) -> None:
        self.live = live
        self.columns: dict[str, Any] = {
            name: value[:] for name, value in vars(live).items() if isinstance(value, (array, bytearray))
        }
        self.tables = {
            table: _Table(getattr(live, table)) for table in (*_NODE_TABLES.values(), *_SLOT_TABLES.values())
        }
        self.leaves: dict[int, Leaf] = dict(live.leaves)
        self.facts: dict[int, NodeFacts] = dict(live.facts)
        self._index = dict(live.index_of)  # uid -> index
        self._edges: list[tuple[Snapshot, bytes]] = []  # edges to add once all nodes have an index

    def add(self, graph: Snapshot, chosen: bytes) -> None:
        """Add the `chosen` nodes of a graph. The targets of their edges must be present before `result`."""
        columns = self.columns
        uids = list(compress(graph.uid, chosen))
        self._index.update(zip(uids, range(len(self._index), len(self._index) + len(uids)), strict=True))
        self._edges.append((graph, chosen))
        columns["uid"].extend(uids)
        columns["ghost"].extend(repeat(1, len(uids)))
        self._copy(graph, ("seq", "kind"), _NODE_TABLES, chosen)
        # A dead node keeps nothing alive: its slots have no storage, but still show their last state.
        counts = array("i", map(sub, islice(graph.slot_start, 1, None), graph.slot_start))
        slots = bytes(chain.from_iterable(map(repeat, chosen, counts)))
        self._copy(graph, ("slot_state", "slot_freed_by", "slot_version"), _SLOT_TABLES, slots)
        columns["slot_bytes"].extend(repeat(0, sum(slots)))
        columns["slot_storage"].extend(repeat(-1, sum(slots)))
        _extend_starts(columns["slot_start"], compress(counts, chosen))
        for at in filter(chosen.__getitem__, graph.leaves):
            self.leaves[self._index[graph.uid[at]]] = replace(graph.leaves[at], grad_storage=-1)
        for at in filter(chosen.__getitem__, graph.facts):
            self.facts[self._index[graph.uid[at]]] = graph.facts[at]

    def _copy(self, graph: Snapshot, plain: Iterable[str], numbered: dict[str, str], chosen: bytes) -> None:
        for column in plain:
            self.columns[column].extend(compress(getattr(graph, column), chosen))
        for column, table in numbered.items():
            numbers = self.tables[table].numbers(getattr(graph, table))
            self.columns[column].extend(map(numbers.__getitem__, compress(getattr(graph, column), chosen)))

    def result(self) -> Snapshot:
        """Return the snapshot with the added nodes and edges."""
        for graph, chosen in self._edges:
            counts = array("i", map(sub, islice(graph.edge_start, 1, None), graph.edge_start))
            edges = bytes(chain.from_iterable(map(repeat, chosen, counts)))
            there = list(map(self._index.__getitem__, graph.uid))
            self.columns["edge_to"].extend(map(there.__getitem__, compress(graph.edge_to, edges)))
            self.columns["edge_nr"].extend(compress(graph.edge_nr, edges))
            _extend_starts(self.columns["edge_start"], compress(counts, chosen))
        tables: dict[str, Any] = {name: tuple(table.values) for name, table in self.tables.items()}
        return replace(self.live, **self.columns, **tables, leaves=self.leaves, facts=self.facts)


def _extend_starts(starts: array[int], counts: Iterable[int]) -> None:
    """Append the end positions of further rows with these lengths."""
    starts.extend(islice(accumulate(counts, initial=starts[-1]), 1, None))


def graphs_that_matter(
    live: Snapshot, calls: dict[int, BackwardCall], graph_after: Callable[[BackwardCall], Snapshot | None]
) -> list[Snapshot]:
    """Return the graphs whose dead nodes a picture should show.

    If the last call failed: its graph, and the graph of the call that freed its nodes. If it succeeded: its graph, once
    all its nodes are dead.

    Parameters
    ----------
    calls
        n -> call, the oldest first.
    graph_after
        Returns the graph after a call.
    """
    last = next(reversed(calls.values()), None)
    if last is None:
        return []
    wanted = [last] if last.result == "raised" else []
    if wanted and last.freed_by is not None and last.freed_by in calls:
        wanted.insert(0, calls[last.freed_by])
    if not wanted and last.graph is not None and not any(uid in live.index_of for uid in last.graph.uid):
        wanted = [last]
    return [graph for call in wanted if (graph := graph_after(call)) is not None]
