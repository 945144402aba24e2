"""Where the new part of a graph meets the old one: the dashed line of the picture, and the carriers on it."""

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
    return [
        (snapshot.uid[target], snapshot.uid[index], _carrier(failed, snapshot, target))
        for index in range(len(snapshot))
        if seq[index] >= newest and index not in kept
        for target in dict.fromkeys(snapshot.next(index))
        if target in kept
    ]


def _carrier(call: BackwardCall, snapshot: Snapshot, old: int) -> str | None:
    """The carrier that names `old`; a single carrier needs no such proof."""
    labels = snapshot.labels.get(old, ())
    named = next((path for path in call.carriers if path in labels), None)
    return named or (call.carriers[0] if len(call.carriers) == 1 else None)
