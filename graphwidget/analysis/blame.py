"""Which lines modified what a node had saved, and what stays modified if some of them had not done so."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from graphwidget.analysis.story import lasting_name
from graphwidget.model import NodeFacts, Place, Record, SlotState, Snapshot, Write


def culprit(record: Record, graph: Snapshot, index: int, n: int) -> tuple[str | None, tuple[Write, ...]]:
    """The user's name of the stale tensor that a node had saved, and the lines that modified it since, in order."""
    slots = [slot for slot in graph.slots_of(index) if graph.slot_state[slot] == SlotState.STALE]
    facts = graph.facts.get(index)
    found: tuple[str | None, tuple[Write, ...]] = (None, ())
    for at in (*(graph.slot_storage[slot] for slot in slots[:1]), *(facts.operands if facts and not slots else ())):
        if at < 0:
            continue
        storage = graph.storages[at]
        since = of_storage(record, graph, index, storage.key, n)
        name = lasting_name(record, storage.owners) if storage.owners else None
        if since and not name:
            position = since[-1].storages.index(storage.key)
            name = since[-1].paths[position] if position < len(since[-1].paths) else None
        found = (name, since)
        if since:
            break
    return found


def of_storage(record: Record, graph: Snapshot, index: int, key: int, n: int) -> tuple[Write, ...]:
    """The writes to a storage before call `n` and after a node had saved it; if none is known to be, the last."""
    writes = [w for w in record.writes if key in w.storages and w.after_calls <= n]
    return tuple(write for write in writes if _since(write.place, graph.place_of(index))) or tuple(writes[-1:])


def without(record: Record, graph: Snapshot, n: int, undone: Callable[[tuple[Write, ...]], bool]) -> Snapshot:
    """As if what only these writes modified, between being saved and call `n`, had not been modified.

    Parameters
    ----------
    undone
        Whether nothing is left of these writes, in order, which are all that modified one saved tensor.
    """

    def cured(index: int, storages: tuple[int, ...]) -> bool:
        found = [of_storage(record, graph, index, graph.storages.key[at], n) for at in storages if at >= 0]
        return bool(found) and all(writes and undone(writes) for writes in found)

    def hidden(index: int) -> tuple[int, ...]:
        """What is saved inside a node where nobody can look may be anything that was modified since."""
        known = {key: at for at, key in enumerate(graph.storages.key)}
        made = graph.place_of(index)
        keys = {key for w in record.writes if w.after_calls <= n and _since(w.place, made) for key in w.storages}
        return tuple(known[key] for key in keys & known.keys())

    states = bytearray(graph.slot_state)
    for slot, state in enumerate(graph.slot_state):
        if state == SlotState.STALE:
            index = bisect_right(graph.slot_start, slot) - 1
            if cured(index, (graph.slot_storage[slot],)):
                states[slot] = SlotState.HELD
    facts: dict[int, NodeFacts] = dict(graph.facts)
    for index, fact in graph.facts.items():
        if fact.inner_stale is not False and cured(index, fact.operands or hidden(index)):
            facts[index] = replace(fact, inner_stale=False)
    return replace(graph, slot_state=states, facts=facts)


def _since(write: Place, made: Place | None) -> bool:
    """Whether a write was later than a node was made, as far as their lines tell."""
    if made is None or write.run is None or made.run is None:
        return True
    if write.run != made.run or write.iteration != made.iteration:
        return (write.run, write.iteration or 0) > (made.run, made.iteration or 0)
    if write.outer_line != made.outer_line:
        return (write.outer_line or 0) > (made.outer_line or 0)
    return write.cell != made.cell or (write.line or 0) >= (made.line or 0)
