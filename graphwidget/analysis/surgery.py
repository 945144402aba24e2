"""What if: copies of a snapshot with one thing changed. Fixes are verified by forecasting on them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from graphwidget.model import SlotState, Snapshot


def with_states(snapshot: Snapshot, change: Callable[[int, int], int]) -> Snapshot:
    """A copy in which slot `s` in state `x` is in state `change(s, x)`."""
    states = bytearray(change(slot, state) for slot, state in enumerate(snapshot.slot_state))
    return replace(snapshot, slot_state=states)


def with_nodes_held(snapshot: Snapshot, indices: Iterable[int]) -> Snapshot:
    """As if no call had freed what these nodes saved."""
    slots = {slot for index in indices for slot in snapshot.slots_of(index)}
    facts = {i: replace(f, released=False) if f.released else f for i, f in snapshot.facts.items()}
    held = with_states(
        snapshot, lambda slot, state: SlotState.HELD if slot in slots and state == SlotState.FREED else state
    )
    return replace(held, facts=facts)


def with_nothing_stale(snapshot: Snapshot) -> Snapshot:
    """As if no saved tensor had been modified in place."""
    facts = {i: replace(f, inner_stale=False, detached_slot=None) for i, f in snapshot.facts.items()}
    fresh = with_states(snapshot, lambda _, state: SlotState.HELD if state == SlotState.STALE else state)
    return replace(fresh, facts=facts)


def cut(snapshot: Snapshot, into: Collection[int]) -> Snapshot:
    """As if every tensor that leads from the rest into the nodes `into` (indices) had been detached."""
    targets = set(into)
    start, to, nr = array("i", [0]), array("i"), array("i")
    for index in range(len(snapshot)):
        for edge in range(snapshot.edge_start[index], snapshot.edge_start[index + 1]):
            if index in targets or snapshot.edge_to[edge] not in targets:
                to.append(snapshot.edge_to[edge])
                nr.append(snapshot.edge_nr[edge])
        start.append(len(to))
    return replace(snapshot, edge_start=start, edge_to=to, edge_nr=nr)


def reachable(snapshot: Snapshot, starts: Iterable[int]) -> set[int]:
    """Indices of the nodes that a gradient from `starts` can get to, `starts` included."""
    seen = {index for index in starts if index >= 0}
    stack = list(seen)
    while stack:
        for following in snapshot.next(stack.pop()):
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return seen
