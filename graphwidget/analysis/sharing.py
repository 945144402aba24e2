"""Which roots reach which nodes, and where an old part of the graph meets a new one.

All walks are iterative and go once over the edges; sets of roots are Python integers used as bitsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from graphwidget.model import Kind, Snapshot

__all__ = ["border", "boundary", "path", "path_labels", "reach", "root_nodes", "shared", "topological"]


def root_nodes(snapshot: Snapshot) -> list[int]:
    """Indices of the distinct nodes of the snapshot's roots, in order."""
    return list(dict.fromkeys(root.node for root in snapshot.roots if root.node >= 0))


def topological(snapshot: Snapshot, starts: Iterable[int]) -> list[int]:
    """Nodes reachable from `starts`, every node before those that it hands gradients to."""
    edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
    entered = bytearray(len(snapshot))
    finished: list[int] = []
    for start in starts:
        if entered[start]:
            continue
        entered[start] = 1
        stack = [(start, edge_start[start])]
        while stack:
            node, edge = stack.pop()
            end = edge_start[node + 1]
            while edge < end and entered[edge_to[edge]]:
                edge += 1
            if edge == end:
                finished.append(node)
                continue
            stack.append((node, edge + 1))
            following = edge_to[edge]
            entered[following] = 1
            stack.append((following, edge_start[following]))
    finished.reverse()
    return finished


def reach(snapshot: Snapshot, roots: Sequence[int] | None = None) -> list[int]:
    """For each node the roots that reach it: bit `i` for ``roots[i]``.

    Parameters
    ----------
    roots
        Node indices; by default `root_nodes` of the snapshot.
    """
    starts = root_nodes(snapshot) if roots is None else roots
    bits = [0] * len(snapshot)
    for i, node in enumerate(starts):
        bits[node] |= 1 << i
    edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
    for node in topological(snapshot, starts):
        own = bits[node]
        for edge in range(edge_start[node], edge_start[node + 1]):
            bits[edge_to[edge]] |= own
    return bits


def shared(snapshot: Snapshot, roots: Sequence[int] | None = None) -> list[int]:
    """Indices of the nodes that two or more roots reach."""
    return [node for node, bits in enumerate(reach(snapshot, roots)) if bits & (bits - 1)]


def border(snapshot: Snapshot, part: Collection[int]) -> list[int]:
    """Nodes of `part` that a node outside hands gradients to: where one enters it from the roots."""
    inside = bytearray(len(snapshot))
    for node in part:
        inside[node] = 1
    found: set[int] = set()
    edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
    for node in range(len(snapshot)):
        if not inside[node]:
            found.update(t for t in edge_to[edge_start[node] : edge_start[node + 1]] if inside[t])
    return sorted(found)


def boundary(snapshot: Snapshot, roots: Sequence[int], old: Collection[int]) -> list[tuple[int, int, int]]:
    """Where the part below `roots` that is new meets nodes that were there before.

    Parameters
    ----------
    roots
        Node indices of the call's roots.
    old
        uids of the old nodes (those an earlier call executed).

    Returns
    -------
    (old index, input of the old node that the gradient goes to, new index) for every meeting edge;
    the new index is -1 for a root that is old itself. Leaves are never a boundary.
    """
    uid, kind = snapshot.uid, snapshot.kind
    edge_start, edge_to, edge_nr = snapshot.edge_start, snapshot.edge_to, snapshot.edge_nr
    found: dict[tuple[int, int, int], None] = {}
    seen = bytearray(len(snapshot))
    work: list[int] = []
    for position, root in enumerate(roots):
        if uid[root] in old:
            found[root, _output_nr(snapshot, position, root), -1] = None
        elif not seen[root]:
            seen[root] = 1
            work.append(root)
    while work:
        node = work.pop()
        for edge in range(edge_start[node], edge_start[node + 1]):
            following = edge_to[edge]
            if kind[following] == Kind.ACCUMULATE:
                continue
            if uid[following] in old:
                found[following, edge_nr[edge], node] = None
            elif not seen[following]:
                seen[following] = 1
                work.append(following)
    return list(found)


def _output_nr(snapshot: Snapshot, position: int, node: int) -> int:
    if position < len(snapshot.roots) and snapshot.roots[position].node == node:
        return snapshot.roots[position].output_nr
    return 0


def path(snapshot: Snapshot, root: int, target: int) -> list[int]:
    """A shortest way from `root` to `target`, both included; empty when there is none."""
    before = {root: root}
    queue = deque([root])
    edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
    while queue and target not in before:
        node = queue.popleft()
        for following in edge_to[edge_start[node] : edge_start[node + 1]]:
            if following not in before:
                before[following] = node
                queue.append(following)
    if target not in before:
        return []
    way = [target]
    while way[-1] != root:
        way.append(before[way[-1]])
    way.reverse()
    return way


def path_labels(snapshot: Snapshot, root: int, target: int) -> list[str]:
    """The variables met on a shortest way from `root` to `target`, and at its end the node's name."""
    labels = snapshot.labels
    words = [labels[node][0] for node in path(snapshot, root, target) if node in labels]
    return [*words, snapshot.name_of(target)]
