"""Operations that have no derivative in PyTorch, or only a first one."""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.gradients import given_out
from graphwidget.diagnosis.wording import at, opening, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Snapshot, torch_messages

__all__ = ["first_derivative", "of_call", "of_cell", "told_derivative"]

_BACKWARD = re.compile(r"(?:_for_[a-z]+)?_backward$")
_FUSED = "scaled_dot_product"


def of_call(record: Record, call: BackwardCall) -> Finding:
    """A call that came to such an operation."""
    graph = call.graph
    nodes = _nodes(call, graph) if graph is not None else []
    places = {graph.place_of(node) for node in nodes} if graph is not None else set[Place | None]()
    place = places.pop() if len(places) == 1 else None
    uid = graph.uid[nodes[0]] if graph is not None and len(nodes) == 1 else None
    line = f" {short(place.source)} ({where(place)}) applied it." if place is not None and place.source else ""
    headline, why, fix = _what(call.error or "", at(place))
    first = first_derivative(record, call) if _BACKWARD.search(_operation(call.error or "")[0]) else None
    second = f" {told_derivative(first)}" if first is not None else ""
    return Finding(
        "refused",
        "error",
        f"{why}{line}{second}",
        headline,
        call.n,
        node=graph.name_of(nodes[0]) if graph is not None and len(nodes) == 1 else "",
        node_uid=uid,
        made_at=place or recorded_at(call, uid) or call.place,
        failed_at=call.place,
        uids=(uid,) if uid is not None else (),
        fixes=(fix,),
    )


def first_derivative(record: Record, call: BackwardCall) -> BackwardCall | None:
    """The last call before one that made a graph for the gradients that it computed."""
    earlier = [one for one in record.calls if one.n < call.n and one.create_graph]
    return earlier[-1] if earlier else None


def told_derivative(first: BackwardCall) -> str:
    """A sentence about the call that made the gradient which is differentiated."""
    return f"{opening(first.n)} {short(first.place.source)} ({where(first.place)}) took the first derivative."


def of_cell(failure: Failure) -> Finding | None:
    """A line that applied such an operation, and was refused; None: it was a call, which is told itself."""
    if any(call.error == failure.run.error for call in failure.record.calls if call.result == "raised"):
        return None
    message = failure.run.error or ""
    if "out=" in message:
        return given_out.of_given_out(failure, _operation(message)[0])
    headline, why, fix = _what(message, at(failure.place))
    given = failure.given
    return failure.finding(
        headline, f"{short(failure.text)} ({where(failure.place)}) applied it. {why}{' ' if given else ''}{given}", fix
    )


def _operation(message: str) -> tuple[str, str]:
    """The operation that a message names, and the argument; empty: none."""
    found = torch_messages.UNDIFFERENTIABLE.search(message)
    parts = [one for one in found.groups() if one] if found is not None else []
    return (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")


def _what(message: str, spot: tuple[int, int] | None) -> tuple[str, str, Fix]:
    """The headline, what PyTorch lacks, and what helps."""
    operation, argument = _operation(message)
    forward = _BACKWARD.sub("", operation)
    shown = f"`{forward}`" if operation else "An operation"
    if "forward AD" in message:
        text = "Take the derivative backwards: `torch.func.vjp`, `jacrev`, or `backward`."
        fix = Fix("differentiable_op", text, False, spot)
        return f"{shown} has no forward derivative.", f"PyTorch has no formula to push a tangent through {shown}.", fix
    if forward != operation:
        math = (
            "Use attention that is made of plain operations there: `with "
            "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`."
            if _FUSED in operation
            else f"Compute {shown} from operations that have second derivatives, or take no derivative of a gradient "
            "that goes through it."
        )
        return (
            f"{shown} can be differentiated only once.",
            f"PyTorch has the derivative of {shown}, and no derivative of that.",
            Fix("differentiable_op", math, False, spot),
        )
    which = f" by `{argument}`" if argument else ""
    text = (
        "Use an operation that has one, or pass the operation what is `.detach()`ed, if no gradient should come back."
    )
    if not operation:
        return (
            "An operation has no derivative here.",
            message.strip().split(". ")[0] + ".",
            Fix("differentiable_op", text, False, spot),
        )
    return (
        f"{shown} has no derivative{which}.",
        f"PyTorch has no formula for the derivative of {shown}{which}.",
        Fix("differentiable_op", text, False, spot),
    )


def _nodes(call: BackwardCall, graph: Snapshot) -> list[int]:
    """The nodes that may have raised: where the call stopped, else those with the operation's name."""
    uids = (call.failed_uid,) if call.failed_uid is not None else call.stopped_at
    stopped = [graph.index_of[uid] for uid in uids if uid in graph.index_of]
    wanted = _operation(call.error or "")[0].replace("_", "").lower()
    every = range(len(graph))
    named = [
        node
        for node in every
        if wanted and graph.name_of(node).lower().rstrip("0123456789") in (wanted, f"{wanted}backward")
    ]
    missing = [node for node in every if graph.name_of(node) == "NotImplemented"]
    return [node for node in stopped if node in named] or named or (missing if len(missing) == 1 else []) or stopped[:1]
