"""Checks that the columns of a snapshot fit together: whoever reads one follows its indices without a further look."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from graphwidget.model import Kind, SlotState, Snapshot
from graphwidget.record.problems import UnreadableRecord

__all__ = ["check"]


def check(graph: Snapshot) -> None:
    """Check every index of a snapshot that was read from a file.

    Raises
    ------
    UnreadableRecord
        If one leads nowhere, if columns have different lengths, or if there is a circle.
    """
    nodes, slots, edges, storages = len(graph.uid), len(graph.slot_state), len(graph.edge_to), len(graph.storages)
    per_node = (graph.name, graph.seq, graph.kind, graph.place, graph.module, graph.ghost)
    per_slot = (
        graph.slot_name,
        graph.slot_dtype,
        graph.slot_shape,
        graph.slot_bytes,
        graph.slot_storage,
        graph.slot_freed_by,
        graph.slot_version,
    )
    _hold(all(len(column) == nodes for column in per_node) and len(graph.output) in (0, nodes))
    _hold(all(len(column) == slots for column in per_slot) and len(graph.edge_nr) == edges)
    _starts(graph.edge_start, nodes, edges)
    _starts(graph.slot_start, nodes, slots)
    _hold(len(set(graph.uid)) == nodes)
    _within(graph.name, len(graph.names), first=0)
    _within(graph.kind, len(Kind), first=0)
    _within(graph.ghost, 2, first=0)
    _within(graph.place, len(graph.places))
    _within(graph.module, len(graph.modules))
    _within(graph.output, len(graph.outputs))
    _within(graph.edge_to, nodes, first=0)
    _within(graph.slot_name, len(graph.slot_names), first=0)
    _within(graph.slot_state, len(SlotState), first=0)
    _within(graph.slot_dtype, len(graph.dtypes))
    _within(graph.slot_shape, len(graph.shapes))
    _within(graph.slot_storage, storages)
    _within(graph.storages.owners, storages, first=0)
    _within(graph.leaves, nodes, first=0)
    _within(graph.facts, nodes, first=0)
    _within((leaf.grad_storage for leaf in graph.leaves.values()), storages)
    _within((at for facts in graph.facts.values() for at in (*facts.operands, *facts.nested_grads)), storages, first=0)
    _within((ref.node for ref in (*graph.roots, *graph.inputs)), nodes)
    _within((owner.node for owner in graph.owners), nodes, first=0)
    _has_no_circle(graph)


def _hold(fits: bool) -> None:
    if not fits:
        raise UnreadableRecord("a graph in it does not fit together")


def _within(column: Iterable[int], end: int, first: int = -1) -> None:
    numbers = column if isinstance(column, (array, bytearray)) else list(column)
    _hold(not numbers or (min(numbers) >= first and max(numbers) < end))


def _starts(starts: Sequence[int], rows: int, end: int) -> None:
    _hold(len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == end)
    _hold(all(one <= following for one, following in zip(starts, starts[1:])))


def _has_no_circle(graph: Snapshot) -> None:
    waiting = [0] * len(graph.uid)
    for target in graph.edge_to:
        waiting[target] += 1
    free = [node for node, left in enumerate(waiting) if not left]
    for node in free:  # grows while it is read
        for target in graph.next(node):
            waiting[target] -= 1
            if not waiting[target]:
                free.append(target)
    _hold(len(free) == len(waiting))
