"""Gradients of PyTorch's own operations that are not like what they belong to: ``scatter_add`` with too few indices."""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record

__all__ = ["of_operation"]

_NODE = re.compile(r"[Ff]unction (\w+) returned an invalid gradient at index (\d+)")
_SHAPES = re.compile(r"got (\[[\d, ]*\]) but expected shape compatible with (\[[\d, ]*\])")
_DEVICES = re.compile(r"expected device (\S+) but got (\S+)")
_LAYOUTS = re.compile(r"expected (?:type|layout|dtype) (\S+) but got (\S+)")


def of_operation(_: Record, call: BackwardCall) -> Finding | None:
    """A node of PyTorch's own whose gradient has another shape, type or device than the input it is for."""
    message, graph = call.error or "", call.graph
    found = _NODE.search(message)
    if found is None:
        return None
    nodes = [node for node in range(len(graph)) if graph.name_of(node) == found[1]] if graph is not None else []
    places = {graph.place_of(node) for node in nodes} if graph is not None else set[Place | None]()
    place = places.pop() if len(places) == 1 else None
    uid = graph.uid[nodes[0]] if graph is not None and len(nodes) == 1 else None
    operation = found[1].split("Backward", 1)[0]
    line = f"{short(place.source)} ({where(place)})" if place is not None else f"`{operation}`"
    shapes, other = _SHAPES.search(message), _DEVICES.search(message) or _LAYOUTS.search(message)
    if shapes is not None:
        what, got, wanted = "shape", shapes[1], shapes[2]
    elif other is not None:
        what, got, wanted = "device" if "device" in other[0] else "type", other[2], other[1]
    else:
        return None
    advice = (
        f"Give the operation only what it uses: a part of shape {got}, or indices for all of {wanted}."
        if what == "shape"
        else f"Bring all tensors of that line to {wanted} before: `.to({wanted!r})`."
    )
    return Finding(
        "refused",
        "error",
        f"{line} was given an input of {what} {wanted}, its tensor input {int(found[2]) + 1}. Its gradient came out as "
        f"{got}: the operation has accepted inputs that do not fit each other, which shows only on the way back.",
        f"`{found[1]}` returns a gradient of another {what} than its input.",
        call.n,
        node=found[1],
        node_uid=uid,
        made_at=place or recorded_at(call, uid) or call.place,
        failed_at=call.place,
        uids=(uid,) if uid is not None else (),
        fixes=(Fix("matching_gradient", advice, False, at(place)),),
    )
