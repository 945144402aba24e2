"""Operations that have no derivative in PyTorch, or only a first one."""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.gradients import given_out, second_derivatives
from graphwidget.diagnosis.findings.refusals.gradients.applied_at import lines_that_apply
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Snapshot, torch_messages

__all__ = ["of_call", "of_cell"]

_BACKWARD = re.compile(r"(?:_for_[a-z]+)?_backward$")


def of_call(record: Record, call: BackwardCall) -> Finding:
    """A call that came to such an operation, or to a gradient of one."""
    graph, operation = call.graph, _operation(call.error or "")[0]
    nodes = _nodes(call, graph) if graph is not None else []
    uid = graph.uid[nodes[0]] if graph is not None and len(nodes) == 1 else None
    if _BACKWARD.search(operation):
        forward, places = _BACKWARD.sub("", operation), second_derivatives.applied_by(record, call, operation)
        (headline, why), fix = _once(forward), second_derivatives.fix_of(record, forward, places)
        first = second_derivatives.first_derivative(record, call)
        chosen = second_derivatives.chosen_at(record, forward, places)
        second = chosen + (f" {second_derivatives.told(first)}" if first is not None else "")
    else:
        found = {graph.place_of(node) for node in nodes} if graph is not None else set[Place | None]()
        places = [place for place in found if place is not None] if len(found) == 1 else []
        if not places:
            places = lines_that_apply(record, call, operation, nodes[0] if len(nodes) == 1 else None)
        headline, why, fix = _what(call.error or "", at(places[0]) if places else None)
        second = ""
    lines = [f"{short(place.source)} ({where(place)})" for place in places if place.source]
    several = len(lines) > 1 and not _BACKWARD.search(operation)  # of which only one is known to have done it
    by = f"One of {', '.join(lines)}" if several else " and ".join(lines)
    line = f" {by} applied it." if lines and len(lines) == len(places) else ""
    return Finding(
        "refused",
        "error",
        f"{why}{line}{second}",
        headline,
        call.n,
        node=graph.name_of(nodes[0]) if graph is not None and len(nodes) == 1 else "",
        node_uid=uid,
        made_at=(places[0] if places else None) or recorded_at(call, uid) or call.place,
        failed_at=call.place,
        uids=(uid,) if uid is not None else (),
        fixes=(fix,),
    )


def _once(forward: str) -> tuple[str, str]:
    """The headline, and what PyTorch lacks."""
    headline = f"`{forward}` can be differentiated only once."
    return headline, f"PyTorch has the derivative of `{forward}`, and no derivative of that."


def of_cell(failure: Failure) -> Finding | None:
    """A line that applied such an operation, and was refused; None: it was a call, which is told itself."""
    if any(call.error == failure.run.error for call in failure.record.calls if call.result == "raised"):
        return None
    message = failure.run.error or ""
    if "out=" in message:
        return given_out.of_given_out(failure, _operation(message)[0])
    operation = _operation(message)[0]
    headline, why, fix = _what(message, at(failure.place))
    if _BACKWARD.search(operation):
        forward = _BACKWARD.sub("", operation)
        (headline, why), fix = _once(forward), second_derivatives.fix_of(failure.record, forward, [])
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
    shown = f"`{operation}`" if operation else "An operation"
    if "forward AD" in message:
        text = "Take the derivative backwards: `torch.func.vjp`, `jacrev`, or `backward`."
        fix = Fix("differentiable_op", text, False, spot)
        return f"{shown} has no forward derivative.", f"PyTorch has no formula to push a tangent through {shown}.", fix
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
