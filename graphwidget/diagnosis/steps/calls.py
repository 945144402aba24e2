"""The steps of a call: foreseen on a graph, or of a recorded call, if the simulation agrees with what it did."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from graphwidget.diagnosis.steps.sentences import Telling, counted, leaf_name, listing
from graphwidget.diagnosis.wording import number, spoken
from graphwidget.diagnosis.written import Written, kept_by, recorded
from graphwidget.engine.walk import Turn, Walk, walk
from graphwidget.model import BackwardCall, Kind, Snapshot, Step, Steps, TensorRef, bytes_text

__all__ = ["ahead", "past"]

_ONE_QUEUE = ("cpu", "meta", "lazy")  # devices whose nodes the calling thread runs
_LINUX_ORDER = "Nodes that are ready at the same time and are equally old run in the order that they have on Linux."


def ahead(graph: Snapshot, call: Written, *, inputs: Sequence[TensorRef] | None = None, api: str = "backward") -> Steps:
    """The steps of a call on the roots of `graph` that has not been made. `inputs`, `api`: as for a forecast."""
    found = walk(
        graph,
        graph.roots,
        inputs=inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=api,
        grad_given=call.gradient,
    )
    returned = _names(inputs or ()) if api != "backward" else {}
    telling = Telling(found, graph, False, call.keeps, call.create_graph, returned, inputs is not None)
    text = call.on(graph.roots, api)
    why = _why_unknown(graph, found.turns)
    return _unknown(text, False, why) if why else _steps(telling, text)


def past(call: BackwardCall) -> Steps:
    """The steps of a recorded call."""
    text = recorded(call)
    if call.result == "running":
        return _unknown(text, True, "it is still running")
    if call.same_as is not None:
        like = number(call.same_as)
        return _unknown(text, True, f"it was only counted, because its graph is like that of {like}. Look at {like}")
    graph = call.graph
    if graph is None:
        return _unknown(text, True, "its graph was dropped to bound memory")
    found = walk(
        graph,
        call.roots,
        inputs=call.inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=call.api,
        grad_given=True,
    )
    why = "" if _agrees(call, found) else "what PyTorch did is not what the simulation says"
    why = why or _why_unknown(graph, found.turns)
    if why:
        return _unknown(text, True, why)
    keeps = kept_by(call.retain_graph, call.create_graph)
    returned = _names(call.inputs or ()) if call.api != "backward" else {}
    return _steps(Telling(found, graph, True, keeps, call.create_graph, returned, call.inputs is not None), text)


def _agrees(call: BackwardCall, found: Walk) -> bool:
    """Whether the call ran the nodes that the simulation runs, in the order that was recorded, to the same end."""
    forecast = found.forecast
    executes = [node.uid for node in forecast.executes]
    if executes != call.executed.tolist() or len(executes) != call.executed_count:
        return False
    if call.result == "ok":
        return forecast.ok is True
    at = forecast.fails_at.uid if forecast.fails_at else None
    return at == call.failed_uid and (forecast.ok is False or at is None)


def _names(inputs: Sequence[TensorRef]) -> dict[int, str]:
    """Node -> name, of the tensors in ``inputs=``."""
    names: dict[int, list[str]] = {}
    for tensor in inputs:
        if tensor.node >= 0:
            names.setdefault(tensor.node, []).append(spoken(tensor.path) if tensor.path else "an input")
    return {node: listing(found) for node, found in names.items()}


def _why_unknown(graph: Snapshot, turns: Sequence[Turn]) -> str:
    """Why the order is not known: each device has a thread of its own."""
    devices = {out.device for turn in turns for out in (graph.outputs_of(turn.node) or ())}
    queues = {"cpu" if device.split(":")[0] in _ONE_QUEUE else device for device in devices}
    if len(queues) < 2:
        return ""
    return f"{listing(sorted(queues))} have a thread each, and which of them is faster is not known"


def _unknown(text: str, is_past: bool, why: str) -> Steps:
    """A call whose order is not known."""

    def none(at: int) -> Step:
        raise IndexError(at)

    return Steps(text, is_past, False, f"In which order it runs its nodes is not known: {why}.", _make=none)


def _steps(telling: Telling, text: str) -> Steps:
    turns, forecast = telling.walk.turns, telling.walk.forecast
    assumes = forecast.assumes
    equal = len({telling.graph.seq[turn.node] for turn in turns}) < len(turns)
    if equal and sys.platform != "linux":
        assumes = (*assumes, _LINUX_ORDER)
    nodes = tuple(telling.graph.node(turn.node) for turn in turns)
    return Steps(text, telling.past, True, _ending(telling), assumes, nodes, forecast, _make=telling.step)


def _ending(telling: Telling) -> str:
    """What all steps together come to."""
    forecast, is_past = telling.walk.forecast, telling.past
    why = forecast.why.rstrip(".")
    if forecast.ok is None:
        at = f" from {forecast.unknown_at.name} on" if forecast.unknown_at else ""
        return f"What happens{at} is not known: {why}."
    ran = f"{counted(len(forecast.executes), 'node')} {'ran' if is_past else 'would run'}"
    if forecast.ok is False:
        raised = "raised" if is_past else "would raise"
        if forecast.fails_at is not None:
            return f"{ran}{_freed(telling)}; {forecast.fails_at.name} {raised}. {_grads(telling)}".strip()
        if not forecast.executes:
            return f"It {raised} before any node {'ran' if is_past else 'runs'}: {why}."
        return f"{ran}{_freed(telling)}; then it {raised}: {why}. {_grads(telling)}".strip()
    return f"{ran}{_freed(telling)}. {_grads(telling)}".strip()


def _freed(telling: Telling) -> str:
    forecast, is_past = telling.walk.forecast, telling.past
    slots = sum(map(len, forecast.frees.values()))
    if not slots:
        return f" and {'freed' if is_past else 'free'} nothing"
    freed = "freed" if is_past else "free"
    return f" and {freed} {counted(slots, 'saved tensor')}, {bytes_text(forecast.freed_bytes)}"


def _grads(telling: Telling) -> str:
    """Which leaves get what; which gradients are returned."""
    ways: dict[str, list[str]] = {}
    graph = telling.graph
    for at, turn in enumerate(telling.walk.turns):
        if turn.result == "runs" and graph.kind[turn.node] == Kind.ACCUMULATE:
            ways.setdefault(telling.grad(at), []).append(leaf_name(graph, turn.node))
    words = {"set": "set", "added": "added to", "replaced": "replaced by the sum"}
    parts = []
    for way, text in words.items():
        if way in ways:
            be = ("was" if len(ways[way]) == 1 else "were") if telling.past else "would be"
            parts.append(f"The .grad of {listing(ways[way])} {be} {text}.")
    return " ".join(parts)
