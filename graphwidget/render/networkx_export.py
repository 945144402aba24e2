"""A snapshot as a networkx graph, for computations on it."""

from __future__ import annotations

from typing import Any

from graphwidget.model import Snapshot
from graphwidget.render.json_export import node_record

__all__ = ["to_networkx"]


def to_networkx(snapshot: Snapshot) -> Any:
    """A `networkx.MultiDiGraph`: uids as nodes, edges in the direction of gradients (loss to leaves).

    Node attributes are those of the JSON export (``name``, ``sequence_nr``, ``kind``, ``labels``,
    ``place``, ``module``, ``ghost``, ``leaf``, ``saved``); an edge has ``input_nr``, the input of the
    next node that the gradient goes to. ``graph.graph["roots"]`` maps paths to uids.
    """
    import networkx

    graph = networkx.MultiDiGraph(
        roots={ref.path: snapshot.uid[ref.node] for ref in snapshot.roots if ref.node >= 0 and ref.path},
        notes=list(snapshot.notes),
    )
    for node in snapshot.nodes:
        record = node_record(node)
        graph.add_node(record.pop("uid"), **record)
    for index, uid in enumerate(snapshot.uid):
        for edge in range(snapshot.edge_start[index], snapshot.edge_start[index + 1]):
            graph.add_edge(uid, snapshot.uid[snapshot.edge_to[edge]], input_nr=snapshot.edge_nr[edge])
    return graph
