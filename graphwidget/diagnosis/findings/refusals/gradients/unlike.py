"""Gradients of PyTorch's own operations that are not like what they belong to: ``scatter_add`` with too few indices."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, lasting_name, names, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record

__all__ = ["of_operation"]

_NODE = re.compile(r"[Ff]unction (\w+) returned an invalid gradient at index (\d+)")
_SHAPES = re.compile(r"got (\[[\d, ]*\]) but expected shape compatible with (\[[\d, ]*\])")
_DEVICES = re.compile(r"expected device (\S+) but got (\S+)")
_LAYOUTS = re.compile(r"expected (?:type|layout|dtype) (\S+) but got (\S+)")


def of_operation(record: Record, call: BackwardCall) -> Finding | None:
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
    replaced = _replaced(record, call, nodes)
    if replaced is not None:
        return replaced
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


def _replaced(record: Record, call: BackwardCall, nodes: list[int]) -> Finding | None:
    """A leaf behind the node that got values of another shape: ``fc.bias.data = torch.zeros(3)``."""
    graph = call.graph
    leaves = [graph.leaves[to] for node in nodes for to in graph.next(node) if to in graph.leaves] if graph else []
    found = list(dict.fromkeys(lasting_name(record, one.paths) for one in leaves if one.reshaped and one.paths))
    if not found:
        return None
    last = found[0].rsplit(".", 1)[-1]
    writes = [
        place_of(run, one.lineno)
        for run in Cells.of(record).latest
        for one in source.nodes_of(run.source)
        if isinstance(one, ast.Assign) and any(ast.unparse(t).endswith(f"{last}.data") for t in one.targets)
    ]
    cause = writes[0] if len(writes) == 1 else None
    by = f" by {short(cause.source)} ({where(cause)})" if cause is not None else ""
    shown = names(tuple(found))
    return Finding(
        "refused",
        "error",
        f"{shown} got values of another shape{by}, and is the same leaf still. PyTorch has kept what its gradient is "
        "to be like from its first use, and checks each gradient against that.",
        f"{shown} has another shape than when it was first used.",
        call.n,
        tensor=found[0],
        names=tuple(found),
        made_at=cause or call.place,
        failed_at=call.place,
        cause=cause,
        fixes=(
            Fix(
                "leaf",
                "Make a new leaf in place of it, `nn.Parameter(values)`, and a new optimizer of the parameters as they "
                "are then.",
                False,
                at(cause),
            ),
        ),
    )
