"""Gradients unlike what they belong to: of PyTorch's own operations, ``scatter_add`` for one, or given to a call."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.findings.refusals.checks.edits import Site
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, lasting_name, names, place_of, short, when, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Scene

__all__ = ["of_given", "of_operation"]

_NODE = re.compile(r"[Ff]unction (\w+) returned an invalid gradient at index (\d+)")
_GIVEN = re.compile(r"^invalid gradient at index (\d+) - expected device (\S+) but got (\S+)")
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


def of_given(record: Record, call: BackwardCall) -> Finding | None:
    """``y.backward(gradient=torch.ones(3))`` where `y` is on another device."""
    found = _GIVEN.search(call.error or "")
    if found is None:
        return None
    number, wanted, got = int(found[1]), found[2], found[3]
    site = Site(record, call.place, (), record.scenes.get(call.n, Scene()).value)
    root, given = _root_and_gradient(site, number)
    name = ast.unparse(root) if root is not None else None
    shown = f"`{name}`" if name else f"root {number + 1}" if len(call.roots) > 1 else "the root"
    where_to = f"{name}.device" if name else repr(wanted)
    edits: Edits = ()
    if given is not None and name:
        edits = site.written(given, f"{source.in_brackets(given)}.to({where_to})")
    return Finding(
        "refused",
        "error",
        f"{short(call.place.source or '')} ({when(record, call.place)}) was given a gradient on {got}"
        f"{f', {short(ast.unparse(given))}' if given is not None else ''}, and {shown} is on {wanted}. It says how "
        "much each value counts, so it is where what the backward starts from is.",
        f"The gradient that was given is on another device than {shown}.",
        call.n,
        tensor=name,
        made_at=call.place,
        failed_at=call.place,
        fixes=(Fix("pass_gradient", f"Bring it there: `.to({where_to})`.", False, at(call.place), edits=edits),),
    )


def _root_and_gradient(site: Site, number: int) -> tuple[ast.expr | None, ast.expr | None]:
    """A root of the line's only call, and the gradient given for it, as they are written."""
    calls = site.calls("backward", "grad")
    if len(calls) != 1 or any(isinstance(one, ast.Starred) for one in calls[0].args):
        return None, None
    (call,) = calls
    owner, _, name = ast.unparse(call.func).rpartition(".")
    own = name == "backward" and source.last_name(owner) != "autograd"
    behind = 0 if own else 1 if name == "backward" else 2
    words = ("gradient", "grad_tensors", "grad_outputs")
    given = next((one.value for one in call.keywords if one.arg in words), None)
    given = given or next(iter(call.args[behind : behind + 1]), None)
    if own and isinstance(call.func, ast.Attribute):
        return call.func.value, given
    roots = next(iter(call.args[:1]), None)
    roots = roots or next((one.value for one in call.keywords if one.arg in ("tensors", "outputs")), None)
    return _part(roots, number), _part(given, number)


def _part(value: ast.expr | None, number: int) -> ast.expr | None:
    """An element of a list as it is written; what is no list stands for its only element."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts[number] if number < len(value.elts) else None
    return value if number == 0 and isinstance(value, (ast.Attribute, ast.Call, ast.Name)) else None


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
