"""The node at which a call failed: the line that made it, and the path from the root to it."""

from __future__ import annotations

import re

from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.graph_paths import Tensor, path_to_failure
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.model import BackwardCall, Place, Snapshot

__all__ = ["made_at", "nodes_stopped_at", "path", "recorded_at", "uids"]

_NAMED = re.compile(r"\b(\w+Backward\d*)\b")
_OPERATION = re.compile(r"\b([a-z]\w+_backward)\b")  # svd_backward, of LinalgSvdBackward0


def made_at(graph: Snapshot, call: BackwardCall) -> Place | None:
    """Return the place where the failed node was made."""
    index = graph.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    return (graph.place_of(index) if index is not None else None) or call.failed_place


def recorded_at(call: BackwardCall, uid: int | None) -> Place | None:
    """Return the place of a node that only anomaly mode's record tells: that of the node at which the call stopped."""
    return call.failed_place if uid is not None and uid == call.stopped_uid else None


def nodes_stopped_at(call: BackwardCall) -> list[int]:
    """Return the nodes at one of which the call stopped; empty: unknown. A name in the message decides between them."""
    graph = call.graph
    if graph is None:
        return []
    uids = (call.failed_uid,) if call.failed_uid is not None else call.stopped_at
    nodes = [graph.index_of[uid] for uid in uids if uid in graph.index_of]
    named = set(_NAMED.findall(call.error or ""))
    own = [one.replace("_", "") for one in _OPERATION.findall(call.error or "")]
    meant = [
        node
        for node in nodes or range(len(graph))
        if graph.name_of(node) in named or any(one in graph.name_of(node).lower() for one in own)
    ]
    return meant if meant else nodes


def uids(graph: Snapshot, call: BackwardCall) -> tuple[int, ...]:
    """Return the uids of the nodes on the path, to show when the finding is selected."""
    return tuple(graph.uid[index] for index, _ in path_to_failure(graph, call))


def path(graph: Snapshot, call: BackwardCall, setting: Setting | None = None) -> tuple[str, ...]:
    """Return the variables on the path from the root to the failed node, and the node's name.

    The path enters the part from before the freeing call through the carrier, even if that variable has been reassigned
    since.
    """
    shown: list[str] = []
    newest = freed_after = setting.reuse.earlier.newest_seq if setting is not None else 0
    carrying = [path] if setting is not None and (path := Carrier(setting).path) in call.carriers else []
    names: dict[Tensor, list[str]] = {}
    for owner in graph.owners:
        names.setdefault((owner.node, owner.output_nr), []).append(owner.path)
    for tensor in path_to_failure(graph, call):
        labels = names.get(tensor, ())
        seq = graph.seq[tensor[0]]
        carried = carrying if newest >= freed_after > seq else ()
        newest = seq
        best = [carrier for carrier in (*carrying, *call.carriers) if carrier in labels]
        label = next(iter((*best, *labels, *carried)), None)
        if label and label not in shown:
            shown.append(label)
    return (*shown, call.failed_node or "")
