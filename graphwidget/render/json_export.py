"""A snapshot as JSON for other programs: one object per node, in words instead of columns.

The message to the front end is `wire`; this form is for other programs, such as `jq` or a script.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from graphwidget.model import Node, Place, SavedTensor, Snapshot

__all__ = ["SCHEMA", "node_record", "to_json"]

SCHEMA = 1


def to_json(snapshot: Snapshot, *, indent: int | None = None) -> str:
    """JSON text with ``schema``, ``nodes``, ``roots``, ``owners``, ``held_bytes`` and ``notes``.

    Nodes are named by uid everywhere, calls (``freed_by``) by number from 1, as in the text; bytes are bytes; what is
    unknown is null.
    """
    document = {
        "schema": SCHEMA,
        "held_bytes": snapshot.held_bytes(),
        "roots": [
            {
                "path": ref.path,
                "node": snapshot.uid[ref.node] if ref.node >= 0 else None,
                "output_nr": ref.output_nr,
                "dtype": ref.dtype,
                "shape": list(ref.shape),
            }
            for ref in snapshot.roots
        ],
        "nodes": [
            node_record(node) | {"next": [[snapshot.uid[to], nr] for to, nr in _edges(snapshot, node.index)]}
            for node in snapshot.nodes
        ],
        "owners": [
            {"path": owner.path, "node": snapshot.uid[owner.node], "output_nr": owner.output_nr, "kind": owner.kind}
            for owner in snapshot.owners
        ],
        "notes": list(snapshot.notes),
    }
    return json.dumps(document, indent=indent)


def node_record(node: Node) -> dict[str, Any]:
    """The properties of a node, without its edges. Several exports use them."""
    module, leaf = node.module, node.leaf
    return {
        "uid": node.uid,
        "name": node.name,
        "sequence_nr": node.sequence_nr if node.sequence_nr >= 0 else None,
        "kind": node.kind.name.lower(),
        "labels": list(node.labels),
        "place": _place(node.place),
        "module": {"path": module.path, "class": module.class_name, "call": module.call} if module else None,
        "ghost": node.is_ghost,
        "leaf": {"shape": list(leaf.shape), "dtype": leaf.dtype, "has_grad": leaf.has_grad} if leaf else None,
        "saved": [_saved(saved) for saved in node.saved],
    }


def _saved(saved: SavedTensor) -> dict[str, Any]:
    storage = saved.storage
    return {
        "name": saved.name,
        "state": saved.state.word,
        "dtype": saved.dtype,
        "shape": None if saved.shape is None else list(saved.shape),
        "bytes": saved.bytes,
        "storage": storage.key if storage else None,
        "freed_by": saved.freed_by + 1 if saved.freed_by is not None else None,
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else asdict(place)


def _edges(snapshot: Snapshot, index: int) -> list[tuple[int, int]]:
    row = slice(snapshot.edge_start[index], snapshot.edge_start[index + 1])
    return list(zip(snapshot.edge_to[row], snapshot.edge_nr[row]))
