"""Copies of a snapshot with one change. Fixes are verified by forecasts on them."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from dataclasses import replace

from graphwidget.model import KEEPS_MEMORY, SlotState, Snapshot


def with_nodes_held(snapshot: Snapshot, indices: Iterable[int]) -> Snapshot:
    """The snapshot as if no call had freed the saved tensors of these nodes."""
    states = bytearray(snapshot.slot_state)
    held = set(indices)
    for index in held:
        for slot in snapshot.slots_of(index):
            if states[slot] == SlotState.FREED:
                states[slot] = SlotState.HELD
    facts = {i: replace(f, released=False) if f.released and i in held else f for i, f in snapshot.facts.items()}
    return replace(snapshot, slot_state=states, facts=facts)


def anything_stale(snapshot: Snapshot) -> bool:
    """Whether a saved tensor was modified in place, or may have been."""
    odd = any(f.inner_stale is not False or f.detached_slot is not None for f in snapshot.facts.values())
    return odd or SlotState.STALE in snapshot.slot_state


def with_nothing_stale(snapshot: Snapshot) -> Snapshot:
    """The snapshot as if no saved tensor had been modified in place."""
    if not anything_stale(snapshot):
        return snapshot
    facts = {i: replace(f, inner_stale=False, detached_slot=None) for i, f in snapshot.facts.items()}
    states = snapshot.slot_state.replace(bytes([SlotState.STALE]), bytes([SlotState.HELD]))
    return replace(snapshot, slot_state=states, facts=facts)


def cut(snapshot: Snapshot, edges: Collection[int]) -> Snapshot:
    """The snapshot as if the tensors behind these edges (positions in `edge_to`) had been detached."""
    gone = set(edges)
    start, to, nr = array("i", [0]), array("i"), array("i")
    for index in range(len(snapshot)):
        for edge in range(snapshot.edge_start[index], snapshot.edge_start[index + 1]):
            if edge not in gone:
                to.append(snapshot.edge_to[edge])
                nr.append(snapshot.edge_nr[edge])
        start.append(len(to))
    return replace(snapshot, edge_start=start, edge_to=to, edge_nr=nr)


def reachable(snapshot: Snapshot, starts: Iterable[int]) -> set[int]:
    """Indices of the nodes that a gradient from `starts` can reach, `starts` included."""
    seen = {index for index in starts if index >= 0}
    stack = list(seen)
    start, to = snapshot.edge_start, snapshot.edge_to
    while stack:
        index = stack.pop()
        for following in to[start[index] : start[index + 1]]:
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return seen


def bytes_held(graph: Snapshot, nodes: Iterable[int]) -> int:
    """Bytes of saved tensors that these nodes hold, once per storage."""
    seen: set[int] = set()
    total = 0
    for index in nodes:
        for slot in graph.slots_of(index):
            storage = graph.slot_storage[slot]
            if KEEPS_MEMORY[graph.slot_state[slot]] and storage not in seen:
                total += graph.slot_bytes[slot] if storage < 0 else graph.storages.bytes[storage]
                if storage >= 0:
                    seen.add(storage)
    return total
