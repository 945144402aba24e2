"""What saved tensors keep, and what deleting a variable would release.

Retained size as in a heap profiler: a path retains everything that could not be reached without it,
that is, what it dominates in the graph variable -> path -> node -> saved storage. Of two paths to one
tensor, neither retains the tensor, because the other path still holds it.

Autograd graphs have no cycles, so one pass in topological order finds every immediate dominator as
the nearest common ancestor of the predecessors in the dominator tree built so far. Jump pointers make
that logarithmic, even in a chain of a hundred thousand nodes that all use one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from graphwidget.model import KEEPS_MEMORY, Snapshot

__all__ = ["Dominators", "Retained", "kept_by", "retained", "topological", "variable_of"]


@dataclass(frozen=True, slots=True)
class Retained:
    """What `del path` would release: the number of nodes, and the bytes of saved tensors, once per storage.

    `also` lists other paths to the same node: while one of them exists, deleting this one releases
    little or nothing. A path that is a whole container (`temp` for `temp[0]`, `temp[1]`) has kind
    ``container``; its figures hold if no second name for the container exists.
    """

    path: str
    kind: str
    nodes: int
    bytes: int
    also: tuple[str, ...] = ()


class Dominators:
    """Dominator tree of a graph without cycles whose vertices are added in topological order.

    Vertex 0 is the root. Call `reach` for each edge into a vertex, then `settle` it once.
    """

    def __init__(self, size: int) -> None:
        self.idom = [-1] * size
        self.depth = [0] * size
        self.jump = [0] * size
        self.idom[0] = 0

    def reach(self, source: int, target: int) -> None:
        known = self.idom[target]
        if known < 0:
            self.idom[target] = source
        elif known != source:
            self.idom[target] = self.ancestor(known, source)

    def settle(self, vertex: int) -> None:
        """Set the depth and the jump pointer of a vertex. All its predecessors must be settled."""
        parent = self.idom[vertex]
        far = self.jump[parent]
        self.depth[vertex] = self.depth[parent] + 1
        even = self.depth[parent] - self.depth[far] == self.depth[far] - self.depth[self.jump[far]]
        self.jump[vertex] = self.jump[far] if even else parent

    def ancestor(self, a: int, b: int) -> int:
        """The nearest common ancestor of two vertices."""
        idom, depth, jump = self.idom, self.depth, self.jump
        if depth[a] < depth[b]:
            a, b = b, a
        level = depth[b]
        while depth[a] > level:
            a = jump[a] if depth[jump[a]] >= level else idom[a]
        while a != b:
            if jump[a] != jump[b]:
                a, b = jump[a], jump[b]
            else:
                a, b = idom[a], idom[b]
        return a


_cache: WeakKeyDictionary[Snapshot, dict[str, Retained]] = WeakKeyDictionary()


def retained(snapshot: Snapshot) -> Mapping[str, Retained]:
    """Path -> what deleting it would release, for the path of every owner and for each variable that is a container."""
    found = _cache.get(snapshot)
    if found is None:
        found = _cache[snapshot] = _Heap(snapshot).retained()
    return found


def kept_by(snapshot: Snapshot, index: int) -> list[Retained]:
    """The paths that keep a node alive. Those whose deletion would release most come first."""
    holders = _reached_from(snapshot, index)
    figures = retained(snapshot)
    paths = dict.fromkeys(owner.path for owner in snapshot.owners if owner.node in holders)
    return sorted((figures[path] for path in paths), key=lambda r: (-r.bytes, -r.nodes, len(r.path), r.path))


def _reached_from(snapshot: Snapshot, index: int) -> set[int]:
    """Nodes from which `index` can be reached, itself included."""
    before: dict[int, list[int]] = {}
    edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
    for node in range(len(snapshot)):
        for following in edge_to[edge_start[node] : edge_start[node + 1]]:
            before.setdefault(following, []).append(node)
    found, work = {index}, [index]
    while work:
        for node in before.get(work.pop(), ()):
            if node not in found:
                found.add(node)
                work.append(node)
    return found


def variable_of(path: str) -> str:
    """The variable to delete to remove a path: `temp` for `temp[0]`, `Out[3]` for `Out[3][0]`."""
    whole = re.match(r"Out\[[^]]*\]|sys\.last_\w+|get_ipython\(\)[\w.]*|globals\(\)\[[^]]*\]|\w+:\w+", path)
    if whole:
        return whole.group()
    inner = re.sub(r"^(?:(?:list|vars)\()+", "", path)
    name = re.match(r"\w+", inner)
    return name.group() if name else path


class _Heap:
    """The graph root -> variable -> path -> node -> storage, with one number per vertex."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        kinds = {owner.path: owner.kind for owner in snapshot.owners}
        for paths in snapshot.storages.owners.values():
            for path in paths:
                kinds.setdefault(path, "")
        self.kinds = kinds
        # `del x` does not release the graph of `x.grad`, because that graph holds the leaf.
        self.variable = {path: path if path.endswith(".grad") else variable_of(path) for path in kinds}
        names = dict.fromkeys([*self.variable.values(), *kinds])  # a variable before the paths in it
        self.number = {name: i + 1 for i, name in enumerate(names)}
        self.first_node = len(names) + 1
        self.first_storage = self.first_node + len(snapshot)
        self.size = self.first_storage + len(snapshot.storages)

    def retained(self) -> dict[str, Retained]:
        tree = Dominators(self.size)
        order = self._names(tree) + self._nodes(tree) + self._storages(tree)
        nodes, weight = self._own()
        for vertex in reversed(order):
            parent = tree.idom[vertex]
            nodes[parent] += nodes[vertex]
            weight[parent] += weight[vertex]
        same: dict[int, list[str]] = {}
        node_of: dict[str, int] = {}
        for owner in self.snapshot.owners:
            same.setdefault(owner.node, []).append(owner.path)
            node_of[owner.path] = owner.node
        result = {}
        for name, number in self.number.items():
            also = tuple(p for p in same.get(node_of.get(name, -1), ()) if p != name)
            result[name] = Retained(name, self.kinds.get(name, "container"), nodes[number], weight[number], also)
        return result

    def _names(self, tree: Dominators) -> list[int]:
        for name, number in self.number.items():
            variable = self.number[self.variable.get(name, name)]
            tree.reach(0 if variable == number else variable, number)
            tree.settle(number)
        return list(self.number.values())

    def _nodes(self, tree: Dominators) -> list[int]:
        snapshot, offset = self.snapshot, self.first_node
        edge_start, edge_to = snapshot.edge_start, snapshot.edge_to
        for owner in snapshot.owners:
            if not snapshot.ghost[owner.node]:
                tree.reach(self.number[owner.path], offset + owner.node)
        for node in self._held_by_unknown():
            tree.reach(0, offset + node)
        starts = [n for n in range(len(snapshot)) if tree.idom[offset + n] >= 0]
        order = topological(snapshot, starts)
        for node in order:
            tree.settle(offset + node)
            for edge in range(edge_start[node], edge_start[node + 1]):
                tree.reach(offset + node, offset + edge_to[edge])
        return [offset + node for node in order]

    def _held_by_unknown(self) -> Iterable[int]:
        """Living nodes that no path and no other node holds: an owner that is not visible does."""
        snapshot = self.snapshot
        accounted = bytearray(snapshot.ghost)
        for owner in snapshot.owners:
            accounted[owner.node] = 1
        for node in range(len(snapshot)):
            if not snapshot.ghost[node]:
                for following in snapshot.next(node):
                    accounted[following] = 1
        return (node for node, known in enumerate(accounted) if not known)

    def _storages(self, tree: Dominators) -> list[int]:
        snapshot, offset = self.snapshot, self.first_storage
        for node in range(len(snapshot)):
            vertex = self.first_node + node
            if tree.idom[vertex] < 0:
                continue
            for slot in snapshot.slots_of(node):
                storage = snapshot.slot_storage[slot]
                if storage >= 0 and KEEPS_MEMORY[snapshot.slot_state[slot]]:
                    tree.reach(vertex, offset + storage)
        for at, paths in snapshot.storages.owners.items():
            for path in paths:
                tree.reach(self.number[path], offset + at)
        order = [offset + at for at in range(len(snapshot.storages)) if tree.idom[offset + at] >= 0]
        for vertex in order:
            tree.settle(vertex)
        return order

    def _own(self) -> tuple[list[int], list[int]]:
        """(number of nodes, bytes) of each vertex alone, without the vertices it dominates."""
        snapshot = self.snapshot
        nodes, weight = [0] * self.size, [0] * self.size
        nodes[self.first_node : self.first_storage] = [1] * len(snapshot)
        weight[self.first_storage :] = snapshot.storages.bytes
        for node in range(len(snapshot)):
            for slot in snapshot.slots_of(node):
                if snapshot.slot_storage[slot] < 0 and KEEPS_MEMORY[snapshot.slot_state[slot]]:
                    weight[self.first_node + node] += snapshot.slot_bytes[slot]
        return nodes, weight


def topological(snapshot: Snapshot, starts: Iterable[int]) -> list[int]:
    """Nodes reachable from `starts`, every node before the nodes that it sends gradients to."""
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
