"""Make a deep graph that was walked in Python safe to drop.

Since torch 2.13 the Python wrapper of a node, once made, lives as long as the node, and a node with a wrapper is
freed from inside the freeing of the node before it: dropping a chain of 50,000 nodes that was walked
in Python overflows the C stack and kills the process. Nodes without wrappers are freed in a loop.

So the walk of a deep graph leaves *breaks* behind, about one in a thousand nodes of any path. A break is an object
in the metadata of a node; it holds the next node down. It keeps nothing alive, because its own node holds the next
one too. When the node dies, the break hands the next node to a thread, which drops it from a shallow stack: the
cascade ends there and goes on in the thread. The memory of a deep graph is therefore released a few milliseconds
after its last owner has gone. Graphs with paths of less than 2,000 nodes get no break.
"""

from __future__ import annotations

import atexit
import functools
import queue
import sys
import threading
from collections.abc import Generator, Sequence
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.pieces import at_once

__all__ = ["make_safe_to_drop", "making_safe_to_drop"]

SEGMENT = 1000  # nodes; a level of the cascade takes some 200 bytes of stack, threads may have only 512 KiB
_KEY = "breaks"
PIECE = 16_384  # nodes whose heights are found without a pause
_UNKNOWN = -1  # height of a node

_dropped: queue.SimpleQueue[Any] = queue.SimpleQueue()


class _Break:
    """Holds the nodes after its own, and hands them to the thread when its own dies."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Any]) -> None:
        self.nodes = nodes

    def __del__(self) -> None:
        put = getattr(_dropped, "put", None)  # None while the interpreter goes down
        if put is not None:
            put(self.nodes)


def making_safe_to_drop(
    nodes: Sequence[Any],
    numbers: Sequence[int],
    edge_start: Sequence[int],
    edge_to: Sequence[int],
) -> Generator[None, None, int]:
    """Put breaks into the graph of one walk where a path is longer than two segments.

    Parameters
    ----------
    nodes, numbers
        The nodes of the walk and their sequence numbers.
    edge_start, edge_to
        Its edges in compressed rows.

    Yields
    ------
    None
        Between two pieces. If the generator is closed before its end, nothing has been made safe.

    Returns
    -------
    int
        How many breaks were added.
    """
    if len(nodes) < 2 * SEGMENT or not _wrappers_last():
        return 0
    after = yield from _edges_to_break(numbers, list(edge_start), list(edge_to))
    count = 0
    for index, targets in after.items():
        memory = ti.memory_of_node(nodes[index])
        if _KEY not in memory:  # edges never change, and neither does the depth below a node
            memory[_KEY] = _Break([nodes[target] for target in targets])
            count += 1
    if count:
        _start_thread()
    return count


make_safe_to_drop = at_once(making_safe_to_drop)


def _edges_to_break(
    numbers: Sequence[int], edge_start: Sequence[int], edge_to: Sequence[int]
) -> Generator[None, None, dict[int, list[int]]]:
    """Edges that every long path must take once in a segment: those between two floors of the graph.

    Nodes are visited by number: a node is younger than those that it leads to. An edge that breaks this rule (two
    threads) gets its own break.
    """
    count = len(numbers)
    height = [0 if edge_start[i] == edge_start[i + 1] else _UNKNOWN for i in range(count)]
    broken: dict[int, list[int]] = {}
    order = sorted(range(count), key=list(numbers).__getitem__)
    for at in range(0, len(order), PIECE):
        yield
        _rise(order[at : at + PIECE], edge_start, edge_to, height, broken)
    return broken


def _rise(
    order: Sequence[int],
    edge_start: Sequence[int],
    edge_to: Sequence[int],
    height: list[int],
    broken: dict[int, list[int]],
) -> None:
    """Find the heights of the nodes in `order`, and their edges from floor to floor. Lower nodes must come first.

    The floor of a node is its height above the leaves in segments.
    """
    for i in order:
        first, end = edge_start[i], edge_start[i + 1]
        if first == end:
            continue
        highest = lowest = height[edge_to[first]]
        at = first + 1
        while at < end:  # a slice would take longer: most nodes have one edge or two
            below = height[edge_to[at]]
            if below > highest:
                highest = below
            elif below < lowest:
                lowest = below
            at += 1
        height[i] = highest + 1
        if lowest < 0:
            broken[i] = list(edge_to[first:end])
        elif highest >= 2 * SEGMENT - 1 and lowest < (floor := (highest + 1) // SEGMENT * SEGMENT):
            over = [j for j in edge_to[first:end] if SEGMENT <= height[j] < floor]
            if over:
                broken[i] = over


@functools.lru_cache(maxsize=1)
def _wrappers_last() -> bool:
    """Whether this torch keeps a node's wrapper for as long as the node: then the node holds a reference to it."""
    if sys.is_finalizing():
        return True  # too late to find out, and breaks do no harm
    found: list[bool] = []

    def count_references() -> None:
        above = ti.node_that_saved_a_view()
        node = above.next_functions[0][0]
        fresh = object()
        found.append(sys.getrefcount(node) > sys.getrefcount(fresh))

    thread = threading.Thread(target=count_references, name="graphwidget-look")
    thread.start()
    thread.join()
    return found != [False]


def _drop() -> None:
    while True:
        nodes = _dropped.get()
        if nodes is None:
            return
        del nodes


_thread: threading.Thread | None = None


def _start_thread() -> None:
    """Start the thread before any node dies: none can be started while one is dying."""
    global _thread
    if sys.is_finalizing():
        return  # nor can it be started then: what is handed over lives until the process ends
    if _thread is None or not _thread.is_alive():
        if _thread is None:
            atexit.register(_stop_thread)
        _thread = threading.Thread(target=_drop, name="graphwidget-drop", daemon=True)
        _thread.start()


def _stop_thread() -> None:
    """End the thread at exit: if it were stopped inside torch's destructors, the process would abort."""
    _dropped.put(None)
    if _thread is not None:
        _thread.join(timeout=30)
