"""The nodes that a call can reach, their sequence numbers, and the numbers of named tensors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.deep import make_safe_to_drop
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.owners.search import Holding

__all__ = ["MAX_HOLDINGS", "grads_now", "numbers_by_path", "reachable_nodes", "root_node"]

DEEP = 2_000  # nodes above which a walked graph may need to be made safe to drop
MAX_HOLDINGS = 30_000  # remembered (path, node) pairs of all earlier calls together


def reachable_nodes(outputs: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Return the nodes below the roots and their sequence numbers. It takes half a microsecond a node."""
    nodes: list[Any] = []
    found: set[Any] = set()
    for output in outputs:
        node = root_node(output)
        if node is not None and node not in found:
            found.add(node)
            nodes.append(node)
    next_of = {}
    number_of = {}
    numbers: list[int] = []
    for node in nodes:  # grows while it is read
        cls = type(node)
        if cls not in next_of:
            next_of[cls], number_of[cls] = ti.node_readers(cls)[:2]
        numbers.append(number_of[cls](node))
        for after, _ in next_of[cls](node):
            if after is not None and after not in found:
                found.add(after)
                nodes.append(after)
    if len(nodes) > DEEP:
        _make_safe(nodes, numbers, next_of)
    return nodes, numbers


def _make_safe(nodes: list[Any], numbers: list[int], next_of: dict[type, Any]) -> None:
    """Make a deep graph safe to drop after a walk in Python: see `deep`."""
    index = {node: i for i, node in enumerate(nodes)}
    start, to = array("i", [0]), array("i")
    for node in nodes:
        to.extend(index[after] for after, _ in next_of[type(node)](node) if after is not None)
        start.append(len(to))
    make_safe_to_drop(nodes, numbers, start, to)


def root_node(output: Any) -> Any:
    """Return the node behind a tensor or an edge; None if there is none."""
    if ti.is_tensor(output):
        return ti.history(output, asked=True)[0]
    edge = ti.as_edge(output)
    return None if edge is None else edge[0]


def grads_now(outputs: Iterable[Any], identity: Identity) -> tuple[dict[int, bool], set[int]]:
    """Return, for the leaves below the roots, uid of the leaf's node -> whether the leaf has a `.grad`.

    The `.grad` is read, not inferred from the nodes that ran: a hook may have removed it, a Function may return None.
    With them stand the uids of leaves without hooks.
    """
    nodes, numbers = reachable_nodes(outputs)
    leaves = {}
    for node, number in zip(nodes, numbers):
        if number == ti.NO_SEQUENCE and (variable := ti.accumulated_variable(node)) is not None:
            leaves[identity.unnumbered(node)] = variable
    for output in outputs:
        if ti.is_tensor(output) and root_node(output) is None:
            leaves[identity.leaf(output)] = output
    grads = {uid: ti.leaf_and_grad(variable)[1] is not None for uid, variable in leaves.items()}
    return grads, {uid for uid, has_grad in grads.items() if has_grad or not ti.hooks_of(leaves[uid])}


def numbers_by_path(holdings: Sequence[Holding]) -> dict[str, int]:
    """Return path -> sequence number of the tensor's node, without leaves and possibly stale views."""
    found: dict[str, int] = {}
    for holding in holdings:
        if len(found) >= MAX_HOLDINGS // 10:
            break
        if holding.is_leaf or ti.maybe_stale_view(holding.tensor):
            continue
        node = ti.grad_fn(holding.tensor)
        if node is not None:
            found[holding.path] = ti.node_readers(type(node))[1](node)
    return found
