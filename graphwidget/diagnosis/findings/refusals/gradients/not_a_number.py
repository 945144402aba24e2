"""Anomaly mode's error: a node returned nan. Which one, and what its gradient came through."""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import recorded_at
from graphwidget.diagnosis.wording import at, root_name, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Snapshot

__all__ = ["POLES", "of_call"]

MOST_NODES = 100  # of one name that are looked at
_NODE = re.compile(r"Function '(\w+)' returned nan values in its (\d+)")
# Operations whose derivative is infinite or undefined at a value where they are defined themselves.
POLES = {
    "Sqrt": "the derivative of a root is infinite at 0",
    "Rsqrt": "a reciprocal root is infinite at 0",
    "Log": "the logarithm is infinite at 0",
    "Log2": "the logarithm is infinite at 0",
    "Log10": "the logarithm is infinite at 0",
    "Log1P": "the logarithm is infinite at -1",
    "Div": "a quotient is infinite where the divisor is 0",
    "Reciprocal": "a reciprocal is infinite at 0",
    "Pow": "a power below 1 has an infinite derivative at 0",
    "Acos": "the derivative is infinite at -1 and 1",
    "Asin": "the derivative is infinite at -1 and 1",
    "Acosh": "the derivative is infinite at 1",
    "Atanh": "the derivative is infinite at -1 and 1",
    "LinalgVectorNorm": "a norm has no derivative at 0",
    "Norm": "a norm has no derivative at 0",
    "Std": "a deviation has an infinite derivative where all values are equal",
    "Atan2": "it has no derivative at (0, 0)",
}


def of_call(record: Record, call: BackwardCall) -> Finding | None:
    """A call in which a node returned nan."""
    found, graph = _NODE.search(call.error or ""), call.graph
    if found is None:
        return None
    nodes = _nodes(call, graph, found[1]) if graph is not None else []
    node = nodes[0] if len(nodes) == 1 else None
    before = _giver(graph, node) if graph is not None and node is not None else None
    told, spot = "", at(call.place)
    place = _one_place(graph, nodes) if graph is not None else None
    cause = place
    if place is not None:
        told = f" {short(place.source)} ({where(place)}) made it."
    advice = "see which values it was given"
    if graph is not None:
        pole, chain = _shared_pole(graph, nodes)
        if pole is not None and chain is not None:
            cause = graph.place_of(pole) or place
            came = "It" if pole in nodes else f"Its gradient came through `{graph.name_of(pole)}`"
            line = f" ({short(cause.source)}, {where(cause)})" if cause is not None and pole not in nodes else ""
            can = " can do that" if pole in nodes else ""
            told += f" {came}{line}{can}: {chain}; infinity times zero is nan."
            advice = "keep its argument away from there, by a small number that is added inside, or by a `clamp` before"
        elif before is not None:
            told += f" Its gradient came from `{graph.name_of(before)}` ({where(graph.place_of(before)) or 'no line'})."
        spot = at(cause) or spot
    uid = graph.uid[node] if graph is not None and node is not None else None
    root = root_name(call)
    return Finding(
        "refused",
        "error",
        f"`{found[1]}` returned nan as gradient {int(found[2]) + 1}, and `detect_anomaly` stops at the first "
        f"nan.{told} `graphwidget.find_nan({root})` before the call shows the first value that is not finite.",
        f"The gradient becomes nan at `{found[1]}`.",
        call.n,
        node=found[1],
        node_uid=uid,
        made_at=cause or recorded_at(call, uid) or call.place,
        failed_at=call.place,
        uids=(uid,) if uid is not None else (),
        fixes=(Fix("finite_gradient", f"At that line, {advice}.", False, spot),),
    )


def _nodes(call: BackwardCall, graph: Snapshot, name: str) -> list[int]:
    """The nodes of that name at which the call may have stopped."""
    uids = (call.failed_uid,) if call.failed_uid is not None else call.stopped_at
    stopped = [graph.index_of[uid] for uid in uids if uid in graph.index_of]
    return [at for at in stopped if graph.name_of(at) == name] or [
        at for at in range(len(graph)) if graph.name_of(at) == name
    ]


def _one_place(graph: Snapshot, nodes: list[int]) -> Place | None:
    """Where all these nodes were made; None: at several lines, or at one that is not known."""
    places = [graph.place_of(node) for node in nodes]
    return places[0] if len({at(place) for place in places}) == 1 else None


def _shared_pole(graph: Snapshot, nodes: list[int]) -> tuple[int | None, str | None]:
    """The pole of all these nodes, each of which may be the one; None where they have not the same at one line."""
    if len(nodes) > MOST_NODES:
        return None, None
    poles = [_pole(graph, node) for node in nodes]
    found = [pole for pole, _ in poles if pole is not None]
    same = len(found) == len(nodes) and len({graph.name_of(pole) for pole in found}) == 1
    if not same or (len(found) > 1 and _one_place(graph, found) is None):
        return None, None
    own = {pole == node for pole, node in zip(found, nodes)}
    return poles[0] if len(own) == 1 else (None, None)


def _givers(graph: Snapshot, node: int) -> list[int]:
    """The nodes that give a node its gradient."""
    return [at for at in range(len(graph)) if node in graph.next(at)]


def _giver(graph: Snapshot, node: int) -> int | None:
    found = _givers(graph, node)
    return found[0] if len(found) == 1 else None


def _pole(graph: Snapshot, node: int) -> tuple[int | None, str | None]:
    """The nearest operation, from the node towards the root on its only way, whose derivative can be infinite."""
    at: int | None = node
    for _ in range(6):
        if at is None:
            break
        name = graph.name_of(at).split("Backward", 1)[0]
        # A power's own derivative is finite unless its exponent is below 1, which is not known here.
        if name in POLES and not (name == "Pow" and _giver(graph, at) is not None):
            return at, POLES[name]
        at = _giver(graph, at)
    return None, None
