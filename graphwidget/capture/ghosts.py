"""Draw the dead beside the living: add nodes of past graphs to a snapshot as ghosts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphwidget.model import Leaf, NodeFacts, Snapshot, TensorRef

__all__ = ["merged"]


class _Table:
    """A table of a snapshot that grows: values keep their index."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)
        self.index = {value: i for i, value in enumerate(values)}

    def __call__(self, values: Sequence[Any], at: int) -> int:
        if at < 0:
            return -1
        value = values[at]
        found = self.index.get(value)
        if found is None:
            found = self.index[value] = len(self.values)
            self.values.append(value)
        return found


def merged(live: Snapshot, past: Sequence[Snapshot]) -> Snapshot:
    """`live` with the nodes of `past` graphs that have died, as ghosts, and the edges they had.

    Parameters
    ----------
    past
        Graphs with uids of the same tracker, oldest first. Where two hold the same dead node the newer one counts.
    """
    known = set(live.uid)
    chosen: dict[int, tuple[Snapshot, int]] = {}
    for graph in past:
        for index, uid in enumerate(graph.uid):
            if uid not in known:
                chosen[uid] = (graph, index)
    if not chosen:
        return live
    drawn = _Merge(live).add(chosen)
    return replace(drawn, roots=(*live.roots, *_dead_roots(drawn, past, chosen)))


def _dead_roots(drawn: Snapshot, past: Sequence[Snapshot], chosen: dict[int, tuple[Snapshot, int]]) -> list[TensorRef]:
    """The tensors that the past calls were made on, where their nodes are ghosts now."""
    found = {}
    for graph in past:
        for root in graph.roots:
            uid = graph.uid[root.node] if root.node >= 0 else -1
            if uid in chosen:
                found[uid, root.output_nr] = replace(root, node=drawn.index_of[uid])
    return list(found.values())


class _Merge:
    """Copies of the live columns, to which ghosts are appended."""

    def __init__(self, live: Snapshot) -> None:
        self.live = live
        self.columns: dict[str, Any] = {
            name: value[:] for name, value in vars(live).items() if isinstance(value, (array, bytearray))
        }
        self.names, self.places, self.modules = _Table(live.names), _Table(live.places), _Table(live.modules)
        self.slot_names, self.dtypes, self.shapes = _Table(live.slot_names), _Table(live.dtypes), _Table(live.shapes)
        self.leaves: dict[int, Leaf] = dict(live.leaves)
        self.facts: dict[int, NodeFacts] = dict(live.facts)

    def add(self, chosen: dict[int, tuple[Snapshot, int]]) -> Snapshot:
        index = dict(self.live.index_of)
        for uid in chosen:
            index[uid] = len(index)
        for uid, (graph, at) in chosen.items():
            self._node(uid, graph, at)
            self._edges(graph, at, index)
            self._slots(graph, at)
            if at in graph.leaves:
                self.leaves[index[uid]] = replace(graph.leaves[at], grad_storage=-1)
            if at in graph.facts:
                self.facts[index[uid]] = graph.facts[at]
        return replace(
            self.live,
            **self.columns,
            names=tuple(self.names.values),
            places=tuple(self.places.values),
            modules=tuple(self.modules.values),
            slot_names=tuple(self.slot_names.values),
            dtypes=tuple(self.dtypes.values),
            shapes=tuple(self.shapes.values),
            leaves=self.leaves,
            facts=self.facts,
        )

    def _node(self, uid: int, graph: Snapshot, at: int) -> None:
        columns = self.columns
        columns["uid"].append(uid)
        columns["name"].append(self.names(graph.names, graph.name[at]))
        columns["seq"].append(graph.seq[at])
        columns["kind"].append(graph.kind[at])
        columns["place"].append(self.places(graph.places, graph.place[at]))
        columns["module"].append(self.modules(graph.modules, graph.module[at]))
        columns["ghost"].append(1)

    def _edges(self, graph: Snapshot, at: int, index: dict[int, int]) -> None:
        columns = self.columns
        for edge in range(graph.edge_start[at], graph.edge_start[at + 1]):
            to = index.get(graph.uid[graph.edge_to[edge]])
            if to is not None:
                columns["edge_to"].append(to)
                columns["edge_nr"].append(graph.edge_nr[edge])
        columns["edge_start"].append(len(columns["edge_to"]))

    def _slots(self, graph: Snapshot, at: int) -> None:
        """A dead node keeps nothing alive: its slots have no storage, but still show what they held."""
        columns = self.columns
        for slot in graph.slots_of(at):
            columns["slot_name"].append(self.slot_names(graph.slot_names, graph.slot_name[slot]))
            columns["slot_state"].append(graph.slot_state[slot])
            columns["slot_dtype"].append(self.dtypes(graph.dtypes, graph.slot_dtype[slot]))
            columns["slot_shape"].append(self.shapes(graph.shapes, graph.slot_shape[slot]))
            columns["slot_bytes"].append(0)
            columns["slot_storage"].append(-1)
            columns["slot_freed_by"].append(graph.slot_freed_by[slot])
            columns["slot_version"].append(graph.slot_version[slot])
        columns["slot_start"].append(len(columns["slot_state"]))
