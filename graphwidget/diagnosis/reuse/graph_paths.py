"""The shortest path through a graph from the roots of a call to a node."""

from __future__ import annotations

from collections.abc import Iterable

from graphwidget.model import BackwardCall, Snapshot, TensorRef

__all__ = ["Tensor", "path_to", "path_to_failure"]

Tensor = tuple[int, int]  # index of the node that made it, and which of the node's outputs it is


def path_to_failure(graph: Snapshot, call: BackwardCall) -> tuple[Tensor, ...]:
    """A shortest path from a call's roots to the node at which it failed; empty where that node is unknown."""
    index = graph.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    return path_to(graph, call.roots, index) if index is not None else ()


def path_to(graph: Snapshot, roots: Iterable[TensorRef], goal: int) -> tuple[Tensor, ...]:
    """The tensors along a shortest path from a root to the node `goal` (index); empty when there is none."""
    came_from: dict[int, Tensor | None] = {}
    queue: list[Tensor] = []
    for root in roots:
        if root.node >= 0 and root.node not in came_from:
            came_from[root.node] = None
            queue.append((root.node, root.output_nr))
    for tensor in queue:
        index = tensor[0]
        if index == goal:
            found = [tensor]
            while (before := came_from[found[-1][0]]) is not None:
                found.append(before)
            return tuple(reversed(found))
        for edge in range(graph.edge_start[index], graph.edge_start[index + 1]):
            to = graph.edge_to[edge]
            if to not in came_from:
                came_from[to] = tensor
                queue.append((to, graph.edge_nr[edge]))
    return ()
