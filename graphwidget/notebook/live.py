"""Snapshots of given tensors: their graphs and no others, with the names the user has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from graphwidget import torch_internals as internals
from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.owners import search as owners
from graphwidget.capture.owners.reading import locals_of
from graphwidget.model import Kind, Snapshot

if TYPE_CHECKING:
    import torch

    from graphwidget.capture.graph.identity import Identity
    from graphwidget.capture.owners.search import Holding
    from graphwidget.capture.tracker import Tracker

__all__ = ["leaves_below", "take_graphs", "take_named"]

SEARCH_S = 0.1


def take_graphs(
    tensors: Sequence[Any],
    tracker: Tracker | None,
    namespace: Mapping[str, Any],
    *,
    inputs: Sequence[Any] = (),
    identity: Identity | None = None,
    asked_from: FrameType | None = None,
) -> Snapshot:
    """The graphs of `tensors`, which become the snapshot's roots.

    Parameters
    ----------
    tensors, inputs
        Tensors or GradientEdges.
    tracker
        Knows where nodes were made and who freed what; None: unknown.
    namespace
        The user's variables, for names.
    identity
        Gives out uids where no tracker does.
    asked_from
        The frame that asks for a forecast: then everything that can be found out is read.
    """
    search = owners.find(dict(namespace), budget_s=SEARCH_S)
    names = _names_inside(search.holdings, tensors)
    refuses = internals.refuses_reentrant_checkpoints()
    thorough, around = asked_from is not None, _tensors_above(asked_from)
    if tracker is None:
        return take(
            tensors,
            inputs=inputs,
            owners=names,
            identity=identity,
            refuses_inputs=refuses,
            thorough=thorough,
            around=around,
            outputs=thorough,
        )
    with tracker.lock:
        return take(
            tensors,
            inputs=inputs,
            owners=names,
            identity=tracker.identity,
            places=tracker.provenance,
            freed_by=tracker.log.freed,
            watched_from=tracker.log.watched_from,
            refuses_inputs=refuses,
            thorough=thorough,
            around=around,
            outputs=thorough,
        )


def _tensors_above(frame: FrameType | None) -> list[Any]:
    """The tensors among the variables of a frame, its callers and their modules."""
    namespaces: dict[int, Mapping[str, Any]] = {}
    while frame is not None:
        namespaces[id(frame.f_globals)] = frame.f_globals
        namespaces[id(frame)] = dict(locals_of(frame))
        frame = frame.f_back
    values = (value for names in namespaces.values() for value in list(names.values()))
    return [value for value in values if internals.is_tensor(value)]


def take_named(namespace: Mapping[str, Any]) -> Snapshot:
    """Everything that the variables of a namespace keep alive; roots are the tensors on which no other builds."""
    search = owners.find(dict(namespace), budget_s=SEARCH_S)
    whole = take((), owners=search.holdings)
    built_on = set(whole.edge_to)
    ends = [o.path for o in whole.owners if o.node not in built_on and whole.kind[o.node] != Kind.ACCUMULATE]
    roots = {id(tensor): tensor for path in ends if (tensor := search.tensor_at(path)) is not None}
    return replace(take(list(roots.values()), owners=search.holdings), notes=(*whole.notes, *search.notes))


def _names_inside(holdings: Sequence[Holding], tensors: Sequence[Any]) -> list[Holding]:
    """The paths that name a part of the graphs of `tensors`."""
    nodes, leaves = _below(tensors)
    given = {id(tensor) for tensor in tensors}
    inside = []
    for holding in holdings:
        tensor = holding.tensor
        if id(tensor) in given or id(tensor) in leaves:
            inside.append(holding)
        elif not internals.maybe_stale_view(tensor) and internals.grad_fn(tensor) in nodes:
            inside.append(holding)
    return inside


def leaves_below(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The leaves that a tensor's backward writes a `.grad` to."""
    return list(_below([tensor])[1].values())


def _below(tensors: Sequence[Any]) -> tuple[set[Any], dict[int, Any]]:
    """All nodes that gradients from `tensors` reach, and the leaves by id."""
    leaves: dict[int, Any] = {}
    work = []
    for tensor in tensors:
        node, problem = getattr(tensor, "node", None), None
        if internals.is_tensor(tensor):
            node, _, problem = internals.history(tensor, asked=True)
        if node is not None:
            work.append(node)
        elif problem is None:
            leaves[id(tensor)] = tensor
    nodes = set(work)
    while work:
        node = work.pop()
        leaf = internals.accumulated_variable(node)
        if leaf is not None:
            leaves[id(leaf)] = leaf
        for following, _ in node.next_functions:
            if following is not None and following not in nodes:
                nodes.add(following)
                work.append(following)
    return nodes, leaves
