"""The border between the new and the old part of a graph: the dashed line of the picture, and its carriers."""

from __future__ import annotations

from graphwidget.model import BackwardCall, Drawing, Snapshot

__all__ = ["boundary"]


def boundary(drawing: Drawing) -> list[tuple[int, int, str | None]]:
    """Where the newest call's new part, if it raised, meets what is kept from before: (kept uid, new uid, carrier).

    Kept is what was made before the freeing call and leads to what that call freed. The carrier need not have been
    executed itself: ``h`` of ``out, h = rnn(x, h)`` where the loss is made of ``out``.
    """
    failed = drawing.calls[-1] if drawing.calls else None
    if failed is None or failed.result != "raised" or failed.freed_by is None:
        return []
    snapshot = drawing.snapshot
    earlier = next((call for call in drawing.calls if call.n == failed.freed_by), None)
    newest = earlier.newest_seq if earlier else -1
    seq = snapshot.seq
    kept = {snapshot.index_of[uid] for uid in failed.boundary if uid in snapshot.index_of}
    # In the order in which they were made: what a node leads to is older than the node.
    for index in sorted((i for i in range(len(snapshot)) if 0 <= seq[i] < newest), key=seq.__getitem__):
        if not kept.isdisjoint(snapshot.next(index)):
            kept.add(index)
    names = {**_names_then(earlier, snapshot), **_names(failed, snapshot)}
    only = failed.carriers[0] if len(failed.carriers) == 1 else None  # a single carrier needs no proof
    return [
        (snapshot.uid[target], snapshot.uid[index], names.get((target, number), only))
        for index in range(len(snapshot))
        if seq[index] >= newest and index not in kept
        for target, number in _edges(snapshot, index).items()
        if target in kept
    ]


def _names(call: BackwardCall, snapshot: Snapshot) -> dict[tuple[int, int], str]:
    """(node, number of its output) -> the carrier that holds this output."""
    rank = {path: at for at, path in enumerate(call.carriers)}
    held = sorted((owner for owner in snapshot.owners if owner.path in rank), key=lambda owner: -rank[owner.path])
    return {(owner.node, owner.output_nr): owner.path for owner in held}  # the first in rank comes last, and stays


def _names_then(earlier: BackwardCall | None, snapshot: Snapshot) -> dict[tuple[int, int], str]:
    """(node, number of its output) -> the name that held this output at the call that freed; it may be gone since."""
    if earlier is None or earlier.graph is None:
        return {}
    graph = earlier.graph
    found = ((snapshot.index_of.get(graph.uid[o.node], -1), o.output_nr, o.path) for o in graph.shown_owners)
    return {(node, number): path for node, number, path in reversed([*found]) if node >= 0}


def _edges(snapshot: Snapshot, index: int) -> dict[int, int]:
    """The next nodes of a node, each with the number of an output that the node uses."""
    edges = range(snapshot.edge_start[index], snapshot.edge_start[index + 1])
    return {snapshot.edge_to[edge]: snapshot.edge_nr[edge] for edge in reversed(edges)}
