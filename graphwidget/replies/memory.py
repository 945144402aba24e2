"""Who keeps memory alive: of one node, and at the stored moments."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from graphwidget.engine import keepers, memory
from graphwidget.model import Drawing, Snapshot, bytes_text
from graphwidget.render.words import count

__all__ = ["inspection", "keeping"]

MAX_KEPT_BY = 20
KEEPING_S = 1.0  # time for dividing the memory of stored moments among names


def inspection(snapshot: Snapshot, index: int) -> dict[str, Any]:
    """What the inspector asks about a node: who keeps it alive, and who else holds the memory of its saved tensors."""
    kept_by = [
        {
            "path": kept.path,
            "kind": kept.kind,
            "releases": f"releases {count(kept.nodes, 'node')}, {bytes_text(kept.bytes)}"
            if kept.nodes
            else "alone releases nothing",
        }
        for kept in memory.kept_by(snapshot, index)[:MAX_KEPT_BY]
    ]
    slots = snapshot.slots_of(index)
    storages = [
        {"slot": slot - slots.start, "owners": list(snapshot.storages.owners.get(snapshot.slot_storage[slot], ()))}
        for slot in slots
        if snapshot.slot_storage[slot] >= 0
    ]
    return {"keptBy": kept_by, "storages": storages}


def keeping(drawing: Drawing) -> dict[str, Any]:
    """Who kept which bytes of saved tensors at the stored moments, the newest first as far as the time goes."""
    deadline = perf_counter() + KEEPING_S
    ids: list[int] = []
    moments: list[Mapping[str, int]] = []
    for event in reversed(drawing.events):
        # Without the bytes held, not all that was alive is in the snapshot.
        if event.snapshot is None or event.held_bytes is None or perf_counter() > deadline:
            continue
        found = keepers.keepers(event.snapshot)
        if found is not None:
            ids.append(event.id)
            moments.append(found)
    names, rows = keepers.bands(moments[::-1])
    return {"names": list(names), "moments": [[id, row] for id, row in zip(ids[::-1], rows)]}
