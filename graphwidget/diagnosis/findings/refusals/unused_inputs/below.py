"""Nodes behind the roots of a call, and a tensor that two calls know."""

from __future__ import annotations

from collections.abc import Iterable

from graphwidget.model import BackwardCall, Record, Snapshot, TensorRef

__all__ = ["below", "below_nodes", "node_then", "same_name"]


def below(graph: Snapshot, call: BackwardCall) -> set[int]:
    """The nodes that the roots of a call lead to, and their own."""
    return below_nodes(graph, (ref.node for ref in call.roots if ref.node >= 0))


def below_nodes(graph: Snapshot, nodes: Iterable[int]) -> set[int]:
    """The nodes that some nodes lead to, and these themselves."""
    stack, seen = list(nodes), set[int]()
    while stack:
        index = stack.pop()
        if index not in seen:
            seen.add(index)
            stack.extend(graph.next(index))
    return seen


def same_name(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two tensors have a name in common. Those in frames count only where one has no other: a helper's are of
    whatever it is given.
    """
    lasting, others = ({path for path in paths if ":" not in path} for paths in (one, other))
    return bool(lasting & others) if lasting and others else bool(set(one) & set(other))


def node_then(record: Record, earlier: BackwardCall, call: BackwardCall, asked: TensorRef) -> int | None:
    """The node of an input in the graph of an earlier call, if it surely was the same tensor."""
    then, now = earlier.graph, call.graph
    if then is None or now is None:
        return None
    if asked.node >= 0:
        return then.index_of.get(now.uid[asked.node])
    found = [index for index, leaf in then.leaves.items() if same_name(leaf.paths, asked.paths)]
    if len(found) != 1:
        return None
    alive = record.snapshot.index_of.get(then.uid[found[0]])
    if alive is not None:
        leaf = record.snapshot.leaves.get(alive)
        return found[0] if leaf is not None and same_name(leaf.paths, asked.paths) else None
    passes = [(one.place.run, one.place.iteration) for one in (earlier, call)]
    return found[0] if passes[0] == passes[1] else None
