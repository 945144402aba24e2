"""Errors of the user's own Python code that a backward ran: a Function's backward, a hook, an unpack hook."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.unexplained import FROM_OUTSIDE
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.functions import defined
from graphwidget.diagnosis.wording import at, described, place_of, root_name, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Kind, Record, Scene, Sight, Value

__all__ = ["REGISTERING", "handed_to", "of_call"]

REGISTERING = (
    "register_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
    "register_post_accumulate_grad_hook",
    "register_prehook",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
)


def of_call(record: Record, call: BackwardCall, *, caught: bool) -> Finding | None:
    """A call in which code of the user's own raised; None: it was PyTorch's, or is not known."""
    scene = record.scenes.get(call.n, Scene())
    if call.error_type in FROM_OUTSIDE or scene.raised_in != "python" or not scene.inside:
        return None
    inner, outer = scene.inside[0], scene.inside[-1]
    function = outer.place.function or "code of its own"
    what = _what(record, function)
    line = f"{short(inner.place.source)} ({where(inner.place)})"
    applied, node = _applied(call, function)
    first = call.error.strip().split("\n", 1)[0] if call.error else ""
    said = f": {first}" if first else ""
    given = described(_read(record, inner))
    names = tuple(dict.fromkeys(part for part in function.split(".") if part.isidentifier() and part != "backward"))
    graph = call.graph
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{short(call.place.source or root_name(call))} ({where(call.place)}) ran {what}, and {line} raised "
        f"{call.error_type}{said}.{' The program has caught it.' * caught} {given} PyTorch only passes the error on: "
        "it is "
        f"one of that code, and not of the graph.{applied}".replace("  ", " "),
        f"`{function}` raised {call.error_type} while the gradients were computed.",
        call.n,
        node=graph.name_of(node) if graph is not None and node is not None else "",
        node_uid=graph.uid[node] if graph is not None and node is not None else None,
        made_at=inner.place,
        failed_at=call.place,
        cause=inner.place,
        names=names,
        uids=(graph.uid[node],) if graph is not None and node is not None else (),
        fixes=(Fix("mend_the_code", f"Mend that line: {line}.", False, at(inner.place)),),
    )


def _what(record: Record, function: str) -> str:
    """The function that the engine called, and what it is for."""
    owner, _, method = function.rpartition(".")
    if method in ("backward", "vjp") and defined(record, owner.rsplit(".", 1)[-1]) is not None:
        return f"`{function}`, the derivative of a custom Function"
    found = handed_to(record, function)
    if found is None:
        return f"`{function}`"
    place = place_of(found.run, found.call.lineno)
    last = source.last_name(ast.unparse(found.call.func))
    kind = "which unpacks saved tensors" if last == "saved_tensors_hooks" else "a hook"
    return f"`{function}`, {kind}: {short(place.source)} ({where(place)}) registered it"


def handed_to(record: Record, function: str) -> CallText | None:
    """The only call that registers a function, or what the function around it returns, as a hook."""
    parts = [part for part in function.split(".") if part.isidentifier()]
    found = [
        one
        for one in calls(record, *REGISTERING)
        for given in (*one.call.args, *(keyword.value for keyword in one.call.keywords))
        if _mentions(given, parts)
    ]
    if not found and parts and parts[-1] == "<lambda>":
        return None
    return found[0] if len(found) == 1 else None


def _mentions(given: ast.expr, parts: list[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in parts) or (isinstance(node, ast.Attribute) and node.attr in parts)
        for node in ast.walk(given)
    )


def _applied(call: BackwardCall, function: str) -> tuple[str, int | None]:
    """Where the Function was applied whose backward it was, and its node."""
    graph, owner = call.graph, function.rpartition(".")[0].rsplit(".", 1)[-1]
    if graph is None or not owner:
        return "", None
    nodes = [
        index
        for index in range(len(graph))
        if graph.kind[index] == Kind.CUSTOM and graph.name_of(index) == f"{owner}Backward"
    ]
    places = {graph.place_of(index) for index in nodes}
    place = places.pop() if len(places) == 1 else None
    node = nodes[0] if len(nodes) == 1 else None
    return (f" `{owner}` was applied in {where(place)}." if place is not None and where(place) else "", node)


def _read(record: Record, sight: Sight) -> dict[str, Value]:
    """The measured values of what the line reads."""
    spot = at(sight.place)
    statement = Cells.of(record).statement(spot) if spot is not None else None
    read = source.paths_read(statement) if statement is not None and not hasattr(statement, "body") else set[str]()
    return {name: sight.values[name] for name in sorted(read) if name in sight.values}
