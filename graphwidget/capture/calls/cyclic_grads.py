"""Leaves that refer to themselves: `backward(create_graph=True)` gives a leaf a `.grad` whose graph leads back to it.

Python's garbage collector cannot free such a cycle, which C++ holds. It ends where `.grad` is set to None, whatever
does that. So it is not read in the code, but measured: of the first calls of each line, are the gradients still there?
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.pending import PendingCall
from graphwidget.capture.calls.reachable import reachable_nodes
from graphwidget.capture.graph.identity import Identity
from graphwidget.model import Snapshot

__all__ = ["CyclicGrads"]

MOST_LINES = 100
MOST_CALLS = 16  # of each line
MOST_LEAVES = 64  # of each call


class CyclicGrads:
    """The gradients of leaves after calls with `create_graph`. `identity` knows the numbers of nodes."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._seen: dict[Any, dict[int, list[_Seen]]] = {}

    def called(self, pending: PendingCall, outputs: Sequence[Any]) -> None:
        """Note a call that has ended well."""
        if not pending.create or pending.api != "backward":
            return
        line = pending.line_key or pending.place
        calls = self._seen.setdefault(line, {}) if len(self._seen) < MOST_LINES else self._seen.get(line)
        if calls is None or len(calls) >= MOST_CALLS:
            return
        seen = calls[pending.n] = []
        for node in reachable_nodes(outputs)[0]:
            leaf = ti.accumulated_variable(node)
            grad = ti.leaf_and_grad(leaf)[1] if leaf is not None else None
            if grad is not None and not grad.is_leaf and len(seen) < MOST_LEAVES:
                seen.append(_Seen(self._path(pending.graph, node), weakref.ref(leaf), weakref.ref(grad)))

    def _path(self, graph: Snapshot | None, node: Any) -> str:
        """What the leaf of a node was called at the call; empty: it had no name, or was not looked for."""
        index = graph.index_of.get(self.identity.unnumbered(node)) if graph is not None else None
        leaf = graph.leaves.get(index) if graph is not None and index is not None else None
        return leaf.paths[0] if leaf is not None and leaf.paths else ""

    def alive(self) -> dict[int, tuple[str, ...]]:
        """The n of a call -> names of the leaves that have kept their first gradient of that line since then."""
        found: dict[int, tuple[str, ...]] = {}
        for calls in self._seen.values():
            known: set[int] = set()
            for n, seen in calls.items():
                leaves = {id(leaf): one for one in seen if (leaf := one.leaf()) is not None}
                kept = [one.path for key, one in leaves.items() if key not in known and one.holds()]
                known |= set(leaves)
                if kept:
                    found[n] = tuple(kept)
        return found


class _Seen(NamedTuple):
    """A leaf with its name, and its gradient after a call."""

    path: str
    leaf: weakref.ref[Any]
    grad: weakref.ref[Any]

    def holds(self) -> bool:
        """Whether the leaf still has this gradient."""
        leaf, grad = self.leaf(), self.grad()
        return leaf is not None and grad is not None and ti.leaf_and_grad(leaf)[1] is grad
